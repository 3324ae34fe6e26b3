"""What happens while the operator does not look is not lost on it: it is stopped (SIGSTOP), pods end and are deleted, and jobs
change, and when it goes on everything is counted once and nothing is run again."""

import time

import pytest

from trials import QUIET, SOAK, in_parallel

JOBS = 1000 if SOAK else 20


@pytest.fixture
def life(stage):
    with stage.life() as life:
        yield life
        assert not life.violations()


def start_many(life):
    """Jobs of two workers each that all run, and what they are called."""
    names = [f"j{number}" for number in range(JOBS)]
    in_parallel(lambda name: life.submit(name=name, Chief=1, PS=1, Worker=1), names)
    life.wait(lambda: all(life.runs("worker-0", 0, name=name) and life.runs("chief-0", 0, name=name) and
                          life.status("replicaStatuses", "Worker", "active", name=name) == 1 for name in names), "all run", 600)
    return names


def end_and_delete(life, names, code):
    """The worker of each job ends, and later somebody deletes its pod."""
    in_parallel(lambda name: life.kubelet.ended(life.pod("worker-0", name), code), names)
    time.sleep(2)  # the API's times are whole seconds: so that these tell which came first
    in_parallel(lambda name: life.api.delete(f"/api/v1/namespaces/{life.namespace}/pods/{name}-worker-0"), names)


def stored(life):
    """Writes that the server took; one that was decided on a version in between it refuses."""
    return [write for write in life.proxy.writes if write.status < 300]


def finish(life, names):
    in_parallel(lambda name: life.kubelet.ended(life.wait(lambda: life.pod("chief-0", name), "chief"), 0), names)
    life.wait(lambda: all(life.has("Succeeded", name) for name in names), "all succeed", 600)
    life.wait(lambda: not any(space == life.namespace and pod["metadata"].get("finalizers")
                              for (space, _), pod in life.witness.objects["pods"].items()), "no finalizer holds a pod", 600)
    life.settle(QUIET, 600)


def test_a_worker_that_finished_and_vanished_unseen_is_not_run_again(life):
    names = start_many(life)
    life.operator.pause()
    end_and_delete(life, names, 0)
    life.operator.go_on()
    life.wait(lambda: all(life.status("completed", "Worker", name=name) == "0" for name in names), "all are counted", 600)
    finish(life, names)
    tally = life.witness.tally(life.namespace)
    again = [name for name in names if tally[f"pods/{name}-worker-0"] != (1, 1)]
    assert not again, f"run again: {again}"


def test_a_failure_that_vanished_unseen_counts_once(life):
    names = start_many(life)
    life.operator.pause()
    end_and_delete(life, names, 137)
    life.operator.go_on()
    life.wait(lambda: all(life.runs("worker-0", 1, name=name) for name in names), "all run again", 600)
    finish(life, names)
    wrong = {name: life.status(name=name) for name in names
             if (life.status("restarts", name=name), life.status("disruptions", name=name)) != (1, 0)}
    assert not wrong
    tally = life.witness.tally(life.namespace)
    assert {tally[f"pods/{name}-worker-0"] for name in names} == {(2, 2)}


def test_a_job_deleted_and_made_again_unseen_is_a_new_one(life):
    life.submit(Chief=1, Worker=1)
    life.up({"chief-0": 0, "worker-0": 0})
    life.operator.pause()
    first = life.delete()
    life.wait(lambda: not life.job(), "it is gone")
    life.submit(Chief=1, Worker=1)
    life.operator.go_on()
    second = life.wait(lambda: life.job() and life.job()["metadata"]["uid"], "the new one")
    assert first != second
    life.up({"chief-0": 0, "worker-0": 0}, second)
    life.exits("chief-0", 0)
    life.shows("Succeeded")
    life.settle(QUIET)
    assert (life.status("restarts"), life.status("disruptions")) == (0, 0)
    assert life.witness.tally(life.namespace)["pods/a-worker-0"] == (2, 2)


def test_a_change_taken_back_unseen_is_none(life):
    life.submit(Worker=2)
    life.up({"worker-0": 0, "worker-1": 0})
    before = life.settle(QUIET)
    writes = len(stored(life))
    life.operator.pause()
    life.scale("Worker", 3)
    life.scale("Worker", 2)
    life.edit(runPolicy={"suspend": True})
    life.edit(runPolicy={"suspend": False})
    life.operator.go_on()
    after = life.settle(QUIET)
    assert after.tally == before.tally
    assert len(stored(life)) == writes, life.told()
    assert life.runs("worker-0", 0) and life.runs("worker-1", 0)
