"""Jobs that compete for places on nodes without a gang scheduler: the scheduler of Kubernetes, nodes and pods played by kwok."""

import pytest

import jobs
from cluster import Cluster, holds
from play_kubelet import PlayKubelet
from trainyard_operator import install_crd, operator
from trials import SOAK

PLACES = 8  # on the only node, which has 1,000 processors


def pod(**spec):
    container = {"name": "tensorflow", "image": "played", "resources": {"requests": {"cpu": str(1000 // PLACES)}}}
    return {"spec": {"containers": [container], **spec}}


def gang(workers=2, **spec):
    return {"runPolicy": {}, "tfReplicaSpecs": {"Worker": {"replicas": workers, "restartPolicy": "ExitCode", "template": pod(**spec)}}}


@pytest.fixture(scope="module")
def small():
    """A node with eight places, and the operator."""
    with Cluster.up() as cluster:
        install_crd(cluster)
        cluster.play_nodes(1)
        cluster.api.post("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 1000})
        with operator(cluster):
            yield cluster


class Space:
    def __init__(self, cluster, name):
        self.cluster, self.name = cluster, jobs.namespace(cluster, name)
        self.kubelet = PlayKubelet(cluster.api, name)
        cluster.wait(lambda: cluster.api.get(f"/api/v1/namespaces/{name}/serviceaccounts/default"), "the service account")

    def submit(self, name, **spec):
        jobs.create(self.cluster, self.name, name, gang(**spec))

    def wait(self, predicate, what, seconds=60):
        return self.cluster.wait(predicate, what, seconds)

    def pods(self, prefix):
        return [pod for pod in self.cluster.pods(self.name) if pod["metadata"]["name"].startswith(f"{prefix}-")]

    def job(self, name):
        return self.cluster.api.get(jobs.path(self.name, name))

    def runs(self, name, workers=2):
        return sum(pod["status"]["phase"] == "Running" for pod in self.pods(name)) == workers and holds(self.job(name), "Running")

    def finish(self, name, workers=2):
        self.wait(lambda: self.runs(name, workers), f"{name} runs")
        for worker in self.pods(name):
            self.kubelet.ended(worker)
        self.wait(lambda: holds(self.job(name), "Succeeded"), f"{name} has succeeded")

    def counted(self, name):
        status = self.job(name)["status"]
        return status.get("restarts", 0), status.get("disruptions", 0)


@pytest.fixture
def space(small, request):
    space = Space(small, request.node.name.removeprefix("test_").replace("_", "-")[:40].rstrip("-"))
    yield space
    small.kubectl("delete", "namespace", space.name, "--wait=false")
    space.wait(lambda: not small.pods(space.name), "its pods are gone")


def test_a_preempted_job_runs_again_when_there_is_room(space):
    space.submit("low", workers=PLACES)
    space.wait(lambda: space.runs("low", PLACES), "low runs")
    space.submit("high", priorityClassName="high")
    space.wait(lambda: space.runs("high"), "high runs")
    space.wait(lambda: space.counted("low") == (0, 1), "a disruption, and no failure")
    assert not holds(space.job("low"), "Failed")
    space.finish("high")
    space.finish("low", PLACES)
    assert space.counted("high") == (0, 0) and space.counted("low")[0] == 0


@pytest.mark.skipif(not SOAK, reason="takes minutes: script/soak; src/backend/sim/gangs_test.cc has the same with a simulated scheduler")
def test_nine_jobs_at_once_finish_on_eight_places(space):
    names = [f"job{number}" for number in range(9)]
    for name in names:
        space.submit(name, workers=4)
    left = set(names)
    while left:
        name = space.wait(lambda: next((name for name in left if space.runs(name, 4)), None), f"one of {left} runs", 180)
        space.finish(name, 4)
        left.remove(name)
    assert {space.counted(name) for name in names} == {(0, 0)}
