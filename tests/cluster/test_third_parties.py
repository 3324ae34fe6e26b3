"""Others have their hands in a namespace too: they delete, edit and forbid. A job goes on, or says what keeps it."""

import pytest

from cluster import ApiError
from trials import QUIET

WORKERS = {"worker-0": 0, "worker-1": 0}
OWN = "training.kubeflow.org/operator-name"


@pytest.fixture
def life(stage):
    with stage.life() as life:
        yield life
        assert not life.violations()


def path(life, resource, name):
    return f"/api/v1/namespaces/{life.namespace}/{resource}/{name}"


def succeed(life, attempt):
    life.up({replica: attempt for replica in WORKERS})
    life.exits("worker-0", 0, attempt)
    life.shows("Succeeded")
    life.settle(QUIET)


def is_told(life, reason, text=""):
    """An event of the job says so."""
    return life.stage.cluster.wait(lambda: [message for its, message in life.events() if its == reason and text in message],
                                   f"an event {reason} with '{text}'; there are {sorted(set(life.events()))}")


def test_a_pod_that_somebody_deletes_is_a_disruption(life):
    life.submit({"backoffLimit": 0}, Worker=2)
    life.up(WORKERS)
    life.api.delete(path(life, "pods", "a-worker-1"))
    succeed(life, 1)
    assert (life.status("restarts"), life.status("disruptions")) == (0, 1)


def test_a_pod_deleted_before_it_ran_is_made_again(life):
    life.witness.still.add(life.namespace)  # no node takes them yet
    life.submit(Worker=2)
    life.wait(lambda: life.pod("worker-0") and life.pod("worker-1"), "both pods")
    life.api.delete(path(life, "pods", "a-worker-1"))
    uid = life.pod("worker-1")["metadata"]["uid"]
    life.wait(lambda: life.pod("worker-1") and life.pod("worker-1")["metadata"]["uid"] != uid, "another pod")
    life.witness.still.discard(life.namespace)
    life.witness.look_again(life.namespace)
    attempt = life.wait(lambda: life.status("gang", "attempt"), "a new attempt")
    succeed(life, attempt)


def test_a_service_that_somebody_deletes_is_made_again(life):
    life.submit(Worker=2)
    life.up(WORKERS)
    life.api.delete(path(life, "services", "a-worker-1"))
    life.wait(lambda: len(life.witness.made[life.namespace, "services/a-worker-1"]) == 2, "another service")
    succeed(life, 0)


def test_without_its_finalizer_a_pod_still_counts(life):
    life.submit(Worker=2)
    life.up(WORKERS)
    for replica in WORKERS:
        life.api.patch(path(life, "pods", f"a-{replica}"), {"metadata": {"finalizers": None}})
    succeed(life, 0)
    assert (life.status("restarts"), life.status("disruptions")) == (0, 0)


def test_a_pod_that_vanishes_without_a_trace_is_a_disruption(life):
    life.submit(Worker=2)
    life.up(WORKERS)
    life.operator.pause()
    life.api.patch(path(life, "pods", "a-worker-1"), {"metadata": {"finalizers": None}})
    life.api.delete(path(life, "pods", "a-worker-1"), {"gracePeriodSeconds": 0})
    life.operator.go_on()
    succeed(life, 1)
    assert (life.status("restarts"), life.status("disruptions")) == (0, 1)


@pytest.mark.parametrize("edit", [
    pytest.param({"labels": {OWN: None}}, id="label"),
    pytest.param({"labels": {"training.kubeflow.org/job-name": "other"}}, id="other-job"),
    pytest.param({"ownerReferences": None}, id="owner"),
])
def test_a_pod_that_somebody_takes_from_its_job_is_taken_back(life, edit):
    life.submit({"backoffLimit": 0}, Worker=2)
    life.up(WORKERS)
    uid = life.pod("worker-1")["metadata"]["uid"]
    life.api.patch(path(life, "pods", "a-worker-1"), {"metadata": edit})
    is_told(life, "TakenBackPod", "a-worker-1")
    succeed(life, 0)
    pod = life.api.get(path(life, "pods", "a-worker-1")) if life.pod("worker-1") else None
    assert pod is None or pod["metadata"]["uid"] == uid
    assert (life.status("restarts"), life.status("disruptions")) == (0, 0)
    assert life.witness.tally(life.namespace)["pods/a-worker-1"] == (1, 1)


def test_a_stranger_with_the_name_of_a_pod_is_told_of_until_it_is_gone(life):
    pod = {"metadata": {"name": "a-worker-1"}, "spec": {"automountServiceAccountToken": False,
                                                         "containers": [{"name": "c", "image": "played"}]}}
    life.api.post(f"/api/v1/namespaces/{life.namespace}/pods", pod)
    life.submit(Worker=2)
    is_told(life, "FailedCreatePod", "a-worker-1")
    life.api.delete(path(life, "pods", "a-worker-1"), {"gracePeriodSeconds": 0})
    succeed(life, 0)


def test_a_full_quota_is_told_and_waited_for(life):
    quotas = f"/api/v1/namespaces/{life.namespace}/resourcequotas"
    life.api.post(quotas, {"metadata": {"name": "full"}, "spec": {"hard": {"pods": "1"}}})
    life.stage.cluster.wait(lambda: life.api.get(quotas + "/full")["status"].get("hard"), "the quota counts")
    life.submit(Worker=2)
    is_told(life, "FailedCreatePod", "exceeded quota")
    life.api.delete(quotas + "/full")
    succeed(life, 0)
    assert (life.status("restarts"), life.status("disruptions")) == (0, 0)
