"""A node is lost: its pods are on their way out, and nobody ever says that they are gone. Kubernetes waits then, for somebody who
knows that nothing runs there any more, and so does the operator. From that word on its finalizer holds up nothing."""

import contextlib
import os
import subprocess

import pytest
from cluster import ApiError, holds
from samples import pod
from trials import QUIET
from yard import BINARY

SOAK = os.environ.get("SOAK") == "1"
LOST = "trainyard.test/lost"
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
EVICTED = "was taken away: DeletionByTaintManager: Taint manager: deleting due to NoExecute taint"


class Node:
    """One replica of the life's job is on it, everybody else on the node that answers."""

    def __init__(self, life, replica="worker-1", **replicas):
        replicas = replicas or {"Worker": 2}
        names = [f"{role.lower()}-{i}" for role, count in replicas.items() for i in range(count)]
        self.life, self.api, self.name = life, life.api, f"lost-{life.namespace}"
        self.path = f"/api/v1/nodes/{self.name}"
        self.api.post("/api/v1/nodes", {"metadata": {"name": self.name}})
        self.say_ready("True")
        life.witness.still.add(life.namespace)
        self.replica = replica
        life.submit({"backoffLimit": 0}, **replicas)
        for one in names:
            life.wait(lambda: life.pod(one), f"the pod of {one}")
            life.kubelet.place(f"a-{one}", self.name if one == replica else "played")
            life.kubelet.running(f"a-{one}")
        life.up(dict.fromkeys(names, 0))
        self.uid = life.pod(replica)["metadata"]["uid"]

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

    def falls_silent(self):
        """Kubernetes notices that it does not hear of the node any more. That takes 40 s and more; SOAK=1 waits for it."""
        pod = f"/api/v1/namespaces/{self.life.namespace}/pods/a-{self.replica}"
        if SOAK:
            self.life.wait(lambda: not holds(self.api.get(pod), "Ready"), "Kubernetes notices", 120)
        else:
            self.api.patch(f"{pod}/status", {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, "strategic")

    def is_let_go(self, again=None):
        """The pod of the lost node is gone; then the other node does its part, and all run again."""
        life = self.life
        life.wait(lambda: self.uid in life.witness.gone[life.namespace, f"pods/a-{self.replica}"], "the pod is gone", 120)
        life.witness.still.discard(life.namespace)
        life.witness.look_again(life.namespace)
        life.up(again or {"worker-0": 1, "worker-1": 1})
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


PEER_LOST = "UnavailableError: Collective ops is aborted by: Socket closed"


def why(life):
    done = subprocess.run([BINARY, "why", "a", "-n", life.namespace], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "KUBECONFIG": str(life.stage.cluster.kubeconfig), "TRAINYARD_ON": "kubernetes"})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("replicas, silent, follows, again", [
    ({"Worker": 2}, "worker-1", "worker-0", {"worker-0": 1, "worker-1": 1}),
    ({"Chief": 1, "PS": 1, "Worker": 1}, "ps-0", "chief-0", {"chief-0": 1, "ps-0": 1, "worker-0": 1}),
], ids=["collective", "parameter servers"])
def test_peers_of_a_replica_on_a_silent_node_do_not_fail_the_job(life, replicas, silent, follows, again):
    """They exit within seconds, long before Kubernetes knows that the node is silent."""
    node = Node(life, silent, **replicas)
    try:
        life.kubelet.ended(life.pod(follows), 1, message=PEER_LOST)
        life.settle(QUIET)
        assert not life.has("Failed")
        spoken = follows.replace("-", "/")
        assert f"{spoken} lost contact with a peer: waiting until it is known whether the node" in why(life)
        node.falls_silent()
        life.wait(lambda: life.status("disruptions") == 1, "it is known why")
        life.wait(lambda: "deletionTimestamp" in life.pod(silent)["metadata"], "it is to go")
        life.settle(QUIET)
        assert f"{silent.replace('-', '/')} waits: NodeNotReady: node {node.name} does not answer" in why(life)
        assert not life.pod(follows), "nothing starts yet"
        life.stage.cluster.kubectl("-n", life.namespace, "delete", "pod", f"a-{silent}", "--force", "--grace-period=0", "--wait=false")
        assert node.is_let_go(again) == f"was taken away: node {node.name} does not answer"
    finally:
        node.close()


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
