"""Many jobs at once: none is starved by others, and a new operator changes nothing of those that run."""

import pytest

import jobs
from trainyard_operator import operator
from trials import QUIET, SOAK, in_parallel

CROWD = 200 if SOAK else 30
LIVE = 100 if SOAK else 15


def test_one_job_is_not_held_up_by_a_crowd_in_another_namespace(tfjobs):
    crowded, lonely = jobs.namespace(tfjobs, "crowded"), jobs.namespace(tfjobs, "lonely")
    for namespace in (crowded, lonely):
        tfjobs.wait(lambda: tfjobs.api.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/default"), "the service account")
    in_parallel(lambda number: jobs.create(tfjobs, crowded, f"job{number}", jobs.worker(10)), range(CROWD))
    jobs.create(tfjobs, lonely, "mine", jobs.worker(10))

    def versions(namespace):
        """Of its pods, in the order in which they were created: nobody changes them later."""
        return sorted(int(pod["metadata"]["resourceVersion"]) for pod in tfjobs.pods(namespace))
    with operator(tfjobs):
        tfjobs.wait(lambda: len(versions(crowded)) == 10 * CROWD and len(versions(lonely)) == 10, "all pods", 300)
    last = versions(lonely)[-1]
    before = sum(version < last for version in versions(crowded))
    assert before < 5 * CROWD, f"{before} of {10 * CROWD} pods of the others came first"
    tfjobs.kubectl("delete", "namespace", crowded, lonely, "--wait=false")


@pytest.fixture
def life(stage):
    with stage.life() as life:
        yield life
        assert not life.violations()


def test_a_new_operator_changes_nothing_of_the_jobs_that_run(life):
    names = [f"j{number}" for number in range(LIVE)]
    in_parallel(lambda name: life.submit(name=name, Chief=1, Worker=1), names)
    life.wait(lambda: all(life.runs("worker-0", 0, name=name) and life.runs("chief-0", 0, name=name) and
                          life.status("replicaStatuses", "Worker", "active", name=name) == 1 for name in names), "all run", 600)
    life.settle(QUIET, 600)
    before = len(life.proxy.writes)
    life.operator.kill_and_start()
    life.settle(QUIET, 600)
    assert [write.label for write in life.proxy.writes[before:]] == []
    in_parallel(lambda name: life.kubelet.ended(life.pod("chief-0", name), 0), names)
    life.wait(lambda: all(life.has("Succeeded", name) for name in names), "all succeed", 600)
    tally = life.witness.tally(life.namespace)
    assert {tally[f"pods/{name}-{replica}"][0] for name in names for replica in ("chief-0", "worker-0")} == {1}
