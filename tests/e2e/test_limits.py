"""Memory and CPU limits: who is killed, by what means, and what the verdict says."""

import glob
import os
import pathlib

import pytest
from yard import cgroups, wait_for

# A quarter of a gigabyte, touched page by page, slowly enough for a look ten times a second.
EATS = """
import time
food = []
for _ in range(64):
    food.append(bytearray(b'x') * (4 << 20))
    time.sleep(0.01)
"""
EATS_IN_A_CHILD = f"""
import subprocess, sys
sys.exit(9 if subprocess.run([sys.executable, '-c', {EATS!r}]).returncode else 0)
"""
SLEEPS = "import time; time.sleep(600)"


def writable(pattern):
    return any(os.access(path, os.W_OK) for path in glob.glob(pattern))


needs_v1 = pytest.mark.skipif(not writable("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
                              reason="no writable cgroup v1 memory controller on this machine")
needs_v2 = pytest.mark.skipif("memory" not in "".join(pathlib.Path(p).read_text() for p in
                                                      glob.glob("/sys/fs/cgroup/cgroup.controllers")),
                              reason="no cgroup v2 memory controller on this machine")
MEANS = [pytest.param("cgroup-v2", marks=needs_v2), pytest.param("cgroup-v1", marks=needs_v1), "polling"]
BY = {"cgroup-v1": "cgroup v1", "cgroup-v2": "cgroup v2", "polling": "polling"}


@pytest.mark.parametrize("means", MEANS)
@pytest.mark.parametrize("program", [EATS, EATS_IN_A_CHILD], ids=["itself", "a child"])
def test_the_verdict_names_replica_limit_means_and_flag(yard, means, program):
    script = yard.script(f"import os\nif os.environ['TRAINYARD_INDEX'] == '1':\n    exec({program!r})\nelse:\n    exec({SLEEPS!r})")
    out = yard.run("run", "--worker-memory", "128Mi", "--restart", "Never", script,
                   env={"TRAINYARD_LIMITS": means}, status=yard_status(program, means))
    first, *rest = out[out.index("train-1 failed"):].splitlines()
    assert "worker/1 ran out of memory (killed at its limit of 128Mi" in first
    assert f"by {BY[means]}" in first
    assert "--worker-memory 192Mi" in "\n".join(rest)
    assert not yard.leftovers()


def yard_status(program, means):
    """A child that the kernel kills leaves its parent to exit by itself; we kill all of the replica."""
    return 9 if program is EATS_IN_A_CHILD and means != "polling" else 137


@pytest.mark.parametrize("means", MEANS)
def test_what_stays_below_its_limit_is_left_alone(yard, means):
    yard.run("run", "--worker-memory", "512Mi", yard.script(EATS), env={"TRAINYARD_LIMITS": means})


@pytest.mark.parametrize("means", MEANS)
def test_running_out_restarts_and_the_end_proposes_more(yard, means):
    out = yard.run("run", "-w", 1, "--worker-memory", "128Mi", "--backoff-limit", 1, yard.script(EATS), status=64,
                   env={"TRAINYARD_LIMITS": means})
    assert "ran out of memory" in out and "--worker-memory 192Mi" in out
    # A limit that suffices is given on the way.
    yard.run("resume", "--worker-memory", "512Mi", env={"TRAINYARD_LIMITS": means})


def test_a_manifest_s_limits_hold(yard):
    yard.script(EATS)
    manifest = yard.script("""
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: limited}
spec:
  tfReplicaSpecs:
    Worker:
      restartPolicy: Never
      template:
        spec:
          containers:
            - {name: tensorflow, image: a, command: [python3, train.py], resources: {limits: {memory: 128Mi}}}
""", "job.yaml")
    out = yard.run("run", "-f", manifest, status=137)
    assert "worker/0 ran out of memory (killed at its limit of 128Mi" in out


def test_an_absurd_limit_in_a_manifest_is_refused_with_its_path(yard):
    manifest = yard.script("""
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: limited}
spec:
  tfReplicaSpecs:
    Worker:
      template:
        spec:
          containers: [{name: tensorflow, image: a, command: ["true"], resources: {limits: {memory: lots}}}]
""", "job.yaml")
    assert "spec.tfReplicaSpecs.Worker" in yard.refused("run", "-f", manifest)


@needs_v1
def test_cgroups_are_gone_after_a_killed_supervisor_and_after_a_killed_guard(yard):
    run = yard.start("run", "--worker-memory", "128Mi", yard.staying(), env={"TRAINYARD_LIMITS": "cgroup-v1"})
    before = yard.up("worker-0", "worker-1")
    made = cgroups() - yard.cgroups_before
    assert len(made) >= 2
    yard.kill(*yard.guard_pids("train-1", "worker-1"))
    yard.up(*before, but=before.values())
    wait_for(lambda: not cgroups() & made, "the first cgroups gone")
    run.kill()
    run.wait()
    wait_for(lambda: not yard.processes(), "no process left", seconds=1)
    wait_for(lambda: not cgroups() - yard.cgroups_before, "all cgroups gone", seconds=10)
    yard.run("delete")


@needs_v1
def test_cgroups_of_a_job_whose_every_guard_was_killed_go_with_the_resume(yard):
    run = yard.start("run", "-w", 1, "--worker-memory", "128Mi", yard.staying(
        "import subprocess; subprocess.Popen(['setsid', 'sleep', '600'])"), env={"TRAINYARD_LIMITS": "cgroup-v1"})
    before = yard.up("worker-0")
    yard.kill(run.pid, *yard.guard_pids("train-1", "worker-0"))
    run.wait()
    run = yard.start("resume", env={"TRAINYARD_LIMITS": "cgroup-v1"})
    yard.up("worker-0", but=before.values())
    yard.finish()
    yard.end(run)
    assert not yard.processes()


@needs_v1
def test_worker_cpu_sets_the_quota(yard):
    run = yard.start("run", "-w", 1, "--worker-cpu", "0.5", yard.staying(), env={"TRAINYARD_LIMITS": "cgroup-v1"})
    pid = yard.up("worker-0")["worker-0"]
    (group,) = [path for path in cgroups() - yard.cgroups_before if str(pid) in members(path)]
    quota, period = (int(pathlib.Path(group, f"cpu.cfs_{name}_us").read_text()) for name in ("quota", "period"))
    assert quota / period == 0.5
    yard.finish()
    yard.end(run)


def members(group):
    try:
        return pathlib.Path(group, "cgroup.procs").read_text().split()
    except FileNotFoundError:
        return []


def test_a_cpu_limit_that_cannot_be_enforced_is_said(yard):
    out = yard.run("run", "-w", 1, "--worker-cpu", "0.5", yard.script("pass"), env={"TRAINYARD_LIMITS": "polling"})
    assert "worker/0 runs without the CPU limit: no cgroup" in out
