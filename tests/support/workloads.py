"""The lives that tests of faults disturb: what a user and the processes do. Scripts wait for what they need, never for a time."""

from lives import Life

PARAMETER_SERVER = {"Chief": 1, "PS": 1, "Worker": 2}
FIRST = {"chief-0": 0, "ps-0": 0, "worker-0": 0, "worker-1": 0}


def plain_success(life: Life):
    life.submit(**PARAMETER_SERVER)
    life.up(FIRST)
    life.exits("chief-0", 0)
    life.shows("Succeeded")


def worker_retries(life: Life):
    life.submit(**PARAMETER_SERVER)
    life.up(FIRST)
    life.exits("worker-1", 137)
    life.up({**FIRST, "worker-1": 1})
    life.exits("chief-0", 0)
    life.shows("Succeeded")


def chief_fails(life: Life):
    life.submit(**PARAMETER_SERVER)
    life.up(FIRST)
    life.exits("chief-0", 1)
    life.shows("Failed")


def back_off_limit(life: Life):
    life.submit({"backoffLimit": 1}, **PARAMETER_SERVER)
    life.up(FIRST)
    life.exits("worker-1", 137)
    life.up({**FIRST, "worker-1": 1})
    life.exits("worker-1", 137, attempt=1)
    life.shows("Failed")


def deadline(life: Life):
    life.submit(**PARAMETER_SERVER)
    life.up(FIRST)
    life.edit(runPolicy={"activeDeadlineSeconds": 1})
    life.shows("Failed")


def time_to_live(life: Life):
    life.submit({"ttlSecondsAfterFinished": 1}, **PARAMETER_SERVER)
    life.up(FIRST)
    life.exits("chief-0", 0)
    life.empty("tfjobs", "pods", "services")


def suspend_resume(life: Life):
    life.submit(Worker=2)
    life.up({"worker-0": 0, "worker-1": 0})
    life.edit(runPolicy={"suspend": True})
    life.shows("Suspended")
    life.empty("pods", "services")
    life.edit(runPolicy={"suspend": False})
    life.up({"worker-0": 1, "worker-1": 1})
    life.exits("worker-0", 0, attempt=1)
    life.shows("Succeeded")


def scale(life: Life):
    life.submit(Worker=2)
    life.up({"worker-0": 0, "worker-1": 0})
    life.scale("Worker", 5)
    attempt = life.wait(lambda: life.status("shape", "Worker") == 5 and life.status("gang", "attempt"), "a larger shape")
    life.up({f"worker-{i}": attempt for i in range(5)})
    life.scale("Worker", 1)
    attempt = life.wait(lambda: life.status("shape", "Worker") == 1 and life.status("gang", "attempt"), "a smaller shape")
    life.up({"worker-0": attempt})
    life.exits("worker-0", 0, attempt)
    life.shows("Succeeded")


def ps_lost(life: Life):
    life.submit(**PARAMETER_SERVER)
    life.up(FIRST)
    life.kubelet.evicted("a-ps-0")
    life.up({**FIRST, "ps-0": 1, "chief-0": 1})
    life.exits("chief-0", 0, attempt=1)
    life.shows("Succeeded")


def gang_restart(life: Life):
    life.submit(Worker=3)
    life.up({f"worker-{i}": 0 for i in range(3)})
    life.exits("worker-1", 137)
    life.up({f"worker-{i}": 1 for i in range(3)})
    life.exits("worker-0", 0, attempt=1)
    life.shows("Succeeded")


def delete_in_mid_life(life: Life):
    life.submit(**PARAMETER_SERVER)
    life.up(FIRST)
    life.delete()
    life.empty("tfjobs", "pods", "services")


def delete_and_recreate(life: Life):
    life.submit(**PARAMETER_SERVER)
    life.up(FIRST)
    first = life.delete()
    life.wait(lambda: not life.job() or life.job()["metadata"]["uid"] != first, "the job is gone")
    life.submit(**PARAMETER_SERVER)
    second = life.wait(lambda: life.job() and life.job()["metadata"]["uid"], "the new job")
    life.up(FIRST, second)
    life.exits("chief-0", 0)
    life.shows("Succeeded")


WORKLOADS = {script.__name__: script for script in (
    plain_success, worker_retries, chief_fails, back_off_limit, deadline, time_to_live, suspend_resume, scale, ps_lost,
    gang_restart, delete_in_mid_life, delete_and_recreate)}
