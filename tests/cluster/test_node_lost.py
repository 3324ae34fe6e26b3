"""A node is lost: its pods are on their way out, and nobody ever says that they are gone. Kubernetes waits then, for somebody who
knows that nothing runs there any more, and so does the operator. From that word on its finalizer holds up nothing."""

import contextlib
import os

import pytest
from cluster import ApiError, holds
from samples import pod
from trials import QUIET

SOAK = os.environ.get("SOAK") == "1"
LOST = "trainyard.test/lost"
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
EVICTED = "was taken away: DeletionByTaintManager: Taint manager: deleting due to NoExecute taint"
WORKERS = {"worker-0": 0, "worker-1": 0}


class Node:
    """Worker 1 of the life's job is on it, everybody else on the node that answers."""

    def __init__(self, life):
        self.life, self.api, self.name = life, life.api, f"lost-{life.namespace}"
        self.path = f"/api/v1/nodes/{self.name}"
        self.api.post("/api/v1/nodes", {"metadata": {"name": self.name}})
        self.say_ready("True")
        life.witness.still.add(life.namespace)
        life.submit({"backoffLimit": 0}, Worker=2)
        for replica, node in (("worker-0", "played"), ("worker-1", self.name)):
            life.wait(lambda: life.pod(replica), f"the pod of {replica}")
            life.kubelet.place(f"a-{replica}", node)
            life.kubelet.running(f"a-{replica}")
        life.up(WORKERS)
        self.uid = life.pod("worker-1")["metadata"]["uid"]

    def say_ready(self, status):
        self.api.patch(f"{self.path}/status", {"status": {"conditions": [{"type": "Ready", "status": status}]}}, "strategic")

    def taint(self, *keys):
        """What Kubernetes does to a node that is silent, and an administrator to one that he has switched off."""
        self.api.patch(self.path, {"spec": {"taints": [{"key": key, "effect": "NoExecute"} for key in keys]}}, "merge")

    def is_lost(self):
        """Kubernetes evicts its pod, by a deletion that the node never hears of."""
        self.say_ready("Unknown")
        self.taint(LOST)
        self.life.wait(lambda: "deletionTimestamp" in self.life.pod("worker-1")["metadata"], "it is evicted")

    def is_let_go(self):
        """The pod of the lost node is gone; then the other node does its part, and all run again."""
        life = self.life
        life.wait(lambda: self.uid in life.witness.gone[life.namespace, "pods/a-worker-1"], "the pod is gone", 120)
        life.witness.still.discard(life.namespace)
        life.witness.look_again(life.namespace)
        life.up({"worker-0": 1, "worker-1": 1})
        assert (life.status("restarts"), life.status("disruptions")) == (0, 1)
        return life.status("incidents")[0]["what"]

    def close(self):
        with contextlib.suppress(ApiError):
            self.api.delete(self.path)


@pytest.fixture
def life(stage):
    with stage.life() as life:
        yield life
        assert not life.violations()


@pytest.fixture
def lost(life):
    lost = Node(life)
    yield lost
    lost.close()


def succeed(life):
    life.exits("worker-0", 0, 1)
    life.shows("Succeeded")
    life.settle(QUIET)


def test_a_pod_on_a_lost_node_is_replaced_when_it_is_deleted_by_force(life, lost):
    lost.is_lost()
    life.settle(QUIET)
    assert life.runs("worker-0", 0), "nobody can know yet that the other has ended"
    assert (life.status("restarts"), life.status("disruptions")) == (0, 0)
    life.stage.cluster.kubectl("-n", life.namespace, "delete", "pod", "a-worker-1", "--force", "--grace-period=0", "--wait=false")
    assert lost.is_let_go() == EVICTED
    succeed(life)


def test_a_job_with_a_pod_on_a_lost_node_can_be_deleted(life, lost):
    lost.is_lost()
    life.delete()
    life.wait(lambda: not life.pod("worker-1")["metadata"].get("finalizers"), "nobody holds the pod")
    life.kubelet.gone("a-worker-1", lost.uid)
    life.wait(lambda: not life.pod("worker-1"), "it is gone")


@pytest.mark.skipif(not SOAK, reason="Kubernetes looks for such pods every 20 s only, SOAK=1 waits for it")
@pytest.mark.parametrize("how", ["out-of-service", "deleted"])
def test_a_pod_on_a_lost_node_is_replaced_when_kubernetes_clears_it_away(life, lost, how):
    lost.is_lost()
    if how == "deleted":
        lost.close()
        assert lost.is_let_go() == "was taken away: DeletionByPodGC: PodGC: node no longer exists"
    else:
        lost.taint(LOST, OUT_OF_SERVICE)
        assert lost.is_let_go() == EVICTED
    succeed(life)


STAYS_UNTIL_DONE = "until test -e /tmp/done; do sleep 0.2; done"


def test_a_job_survives_that_its_kubelet_is_away(operated):
    """A real one: what it ran goes on without it, and ends when it is back."""
    container = {"name": "tensorflow", "image": "trainyard.test/small:1", "command": ["sh", "-c", STAYS_UNTIL_DONE]}
    template = pod(container, terminationGracePeriodSeconds=1)
    path = "/apis/kubeflow.org/v1/namespaces/default/tfjobs"
    operated.api.post(path, {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "away"},
                             "spec": {"tfReplicaSpecs": {"Worker": {"template": template}}}})

    def running(but=None):
        return [one["metadata"]["uid"] for one in operated.pods("default", "training.kubeflow.org/job-name=away")
                if one["status"]["phase"] == "Running" and one["metadata"]["uid"] != but]
    [first] = operated.wait(running, "it runs")
    operated.kill("kubelet")
    try:
        operated.kubectl("delete", "pod", "away-worker-0", "--force", "--grace-period=0", "--wait=false")
        operated.wait(lambda: [one["metadata"]["uid"] for one in operated.pods("default", "training.kubeflow.org/job-name=away")]
                      not in ([], [first]), "another pod takes its place")
    finally:
        operated.restart("kubelet")
    operated.wait(lambda: running(first), "it runs again", 120)
    operated.kubectl("exec", "away-worker-0", "--", "touch", "/tmp/done")
    operated.wait(lambda: holds(operated.api.get(f"{path}/away"), "Succeeded"), "it succeeds")
    status = operated.api.get(f"{path}/away")["status"]
    assert (status["restarts"], status["disruptions"]) == (0, 1)
    operated.kubectl("delete", "tfjob", "away")
    operated.wait(lambda: not operated.pods("default", "training.kubeflow.org/job-name=away"), "nothing is left")
