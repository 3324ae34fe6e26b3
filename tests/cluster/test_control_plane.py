"""Clusters without a node: an API server with etcd and the controllers."""

import concurrent.futures
import os
import signal
import subprocess
import threading

import pytest

from cluster import ApiError, Cluster
from go_operator import go_operator
from lab import Failure, components, control, state
from play_kubelet import PlayKubelet
from yard import ROOT

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def cluster():
    with Cluster.up(audit=True) as cluster:
        yield cluster


def script(*words):
    return subprocess.run([ROOT / "script/cluster", *words], capture_output=True, text=True, check=True).stdout


def pod(name, annotations=None):
    return {"metadata": {"name": name, "annotations": annotations or {}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "tensorflow", "image": "none"}]}}


def job(name, workers):
    return {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name},
            "spec": {"tfReplicaSpecs": {"Worker": {"replicas": workers, "template": {"spec": pod("")["spec"]}}}}}


def phases(cluster, selector=""):
    return {pod["metadata"]["name"]: pod["status"]["phase"] for pod in cluster.pods(selector=selector)}


def test_two_at_once_know_nothing_of_each_other_and_leave_nothing():
    def make(name, seen):
        with Cluster.up() as cluster:
            cluster.api.post(CONFIGMAPS, {"metadata": {"name": name}})
            seen.wait(60)
            found = {item["metadata"]["name"] for item in cluster.api.get(CONFIGMAPS)["items"]}
            seen.wait(60)
            assert state.processes(cluster.dir)
        assert not state.processes(cluster.dir) and not cluster.dir.exists(), "down leaves something"
        return cluster.server, found - {"kube-root-ca.crt"}

    both = threading.Barrier(2)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        (one, in_one), (two, in_two) = pool.map(lambda name: make(name, both), ["a", "b"])
    assert one != two
    assert (in_one, in_two) == ({"a"}, {"b"})


@pytest.mark.parametrize("component", ["etcd", "apiserver"])
def test_a_restart_keeps_what_was_written(cluster, component):
    cluster.api.post(CONFIGMAPS, {"metadata": {"name": f"kept-by-{component}"}})
    cluster.restart(component)
    assert cluster.api.get(f"{CONFIGMAPS}/kept-by-{component}")["metadata"]["name"] == f"kept-by-{component}"


def test_without_etcd_the_api_server_fails_and_status_says_who_is_missing(cluster):
    cluster.kill("etcd")
    with pytest.raises((ApiError, OSError)):
        cluster.api.post(CONFIGMAPS + "?timeout=2s", {"metadata": {"name": "lost"}})
    assert "etcd ended" in next(line for line in script("status").splitlines() if line.startswith(f"{cluster.name}:"))
    script("restart", cluster.name, "etcd")
    cluster.api.post(CONFIGMAPS, {"metadata": {"name": "found"}})


def test_another_user_may_do_what_a_role_allows_and_nothing_else(cluster):
    them = f"--kubeconfig={cluster.as_user('system:serviceaccount:default:trainer')}"
    cluster.kubectl("get", "pods", them, status=1)
    assert "forbidden" in cluster.said
    cluster.kubectl("create", "role", "reader", "--verb=list", "--resource=pods")
    cluster.kubectl("create", "rolebinding", "reader", "--role=reader", "--serviceaccount=default:trainer")
    cluster.wait(lambda: cluster.kubectl("get", "pods", them, status=None) == "" and "No resources" in cluster.said)
    cluster.kubectl("get", "secrets", them, status=1)


def test_a_user_called_like_a_component_does_not_take_over_its_certificate(cluster):
    before = (cluster.dir / "pki/admin.crt").read_bytes()
    config = cluster.as_user("admin")
    assert (cluster.dir / "pki/admin.crt").read_bytes() == before
    cluster.kubectl("get", "pods", f"--kubeconfig={config}", status=1)


def test_the_audit_log_has_every_request_once(cluster):
    cluster.api.post(CONFIGMAPS, {"metadata": {"name": "seen"}})
    made = [r for r in cluster.requests() if r["verb"] == "create" and r.get("objectRef", {}).get("name") == "seen"]
    assert [(r["user"]["username"], r["responseStatus"]["code"]) for r in made] == [("admin", 201)]


def test_a_played_kubelet_runs_and_ends_pods(cluster):
    kubelet = PlayKubelet(cluster.api)
    for name in ("a", "b", "c"):
        cluster.api.post("/api/v1/namespaces/default/pods", pod(name))
        kubelet.running(name)
    assert phases(cluster) == {"a": "Running", "b": "Running", "c": "Running"}
    kubelet.ended("a")
    kubelet.ended("b", exit_code=137, reason="OOMKilled")
    assert phases(cluster) == {"a": "Succeeded", "b": "Failed", "c": "Running"}
    ended = cluster.api.get("/api/v1/namespaces/default/pods/b")["status"]["containerStatuses"][0]
    assert (ended["name"], ended["state"]["terminated"]["exitCode"]) == ("tensorflow", 137)
    cluster.api.delete("/api/v1/namespaces/default/pods/c")
    assert "c" not in phases(cluster)


def test_played_nodes_run_pods_and_end_them_as_annotated():
    with Cluster.up() as cluster:
        cluster.play_nodes(2)
        short = {"trainyard.test/runs-for": "100ms"}
        for each in (pod("stays"), pod("succeeds", short), pod("fails", {**short, "trainyard.test/exit-code": "3"})):
            cluster.api.post("/api/v1/namespaces/default/pods", each)
        wanted = {"stays": "Running", "succeeds": "Succeeded", "fails": "Failed"}
        cluster.wait(lambda: phases(cluster) == wanted, "pods that are played")


def test_the_operator_in_go_takes_a_job_to_its_end(cluster):
    with go_operator(cluster) as operator:
        cluster.api.post("/apis/kubeflow.org/v1/namespaces/default/tfjobs", job("mnist", workers=2))
        its_pods = "training.kubeflow.org/job-name=mnist"
        cluster.wait(lambda: len(phases(cluster, its_pods)) == 2, "the job's pods")
        for name in phases(cluster, its_pods):
            PlayKubelet(cluster.api).running(name)
            PlayKubelet(cluster.api).ended(name)
        cluster.kubectl("wait", "--for=condition=Succeeded", "tfjob/mnist", "--timeout=60s")
        assert "training_operator_jobs_successful_total" in operator.metrics()


def test_the_death_of_the_supervisor_is_the_end_of_all_and_down_clears_the_rest():
    with Cluster.up() as cluster:
        os.kill(control.supervisor_pid(cluster.state), signal.SIGKILL)
        cluster.wait(lambda: not state.processes(cluster.dir), "the end of all", 10)
        assert f"{cluster.name}: not up" in script("status")
    assert not cluster.dir.exists()


def test_an_up_that_fails_says_why_and_leaves_nothing(monkeypatch):
    monkeypatch.setattr(components, "apiserver", lambda c: [c.program("kube-apiserver"), "--no-such-flag"])
    with pytest.raises(Failure, match="(?s)apiserver ended with status 1.*no-such-flag"), Cluster.up(name="test-fails"):
        pass
    assert "test-fails" not in state.names()


def test_a_second_one_of_the_same_name_is_refused(cluster):
    with pytest.raises(Failure, match="is up already"), Cluster.up(name=cluster.name):
        pass
    assert cluster.api.get("/readyz") == "ok"
