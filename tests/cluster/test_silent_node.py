"""A real node loses its power, or its kubelet, under real TensorFlow. The API server goes on saying that its pods run, and for
the time that Kubernetes takes to notice, the node's peers are the only ones to know.

No other pod may take the place of one on that node until Kubernetes has let go of it; then the job continues on the other node, and
nothing of it counts as a failure."""

import json
import os
import subprocess

import pytest
from cluster import Cluster, holds
from elastic_there import TRAIN, held, pod
from samples import job
from test_tensorflow_pods import check_model, counted, told
from there import There, shared_volume
from training import Training, upload_scripts
from trainyard_operator import install_crd, operator
from yard import BINARY, wait_for

pytestmark = pytest.mark.trains

SOAK = os.environ.get("SOAK") == "1"
in_soak = pytest.mark.skipif(not SOAK, reason="a minute or two each; the gate has a collective, SOAK=1 all")
SECOND = "trainyard.test/second"
SILENT = "node node2 does not answer"
# By default a pod is evicted five minutes after its node was marked.
EVICTED_AT_ONCE = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
MNIST = ["/scripts/endless.py", "/scripts/mnist.py"]
MNIST_PS = ["/scripts/endless.py", "/scripts/mnist_ps.py"]


def on_second(*tolerations):
    """The part of a pod spec that prefers the second node, where no other pod goes."""
    preferred = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node2"]}
    return {"tolerations": [{"key": SECOND, "operator": "Exists"}, *tolerations],
            "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 100, "preference": {"matchExpressions": [preferred]}}]}}}


def spread(name):
    """The same of several replicas, of which one goes to the second node."""
    labels = {"training.kubeflow.org/job-name": name, "training.kubeflow.org/replica-type": "worker"}
    return {"tolerations": [{"key": SECOND, "operator": "Exists"}, EVICTED_AT_ONCE],
            "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 100, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname",
                                                    "labelSelector": {"matchLabels": labels}}}]}}}


@pytest.fixture
def lab():
    """Two nodes, and the operator at work. A lost node does not come back, so each test has its own."""
    # Kubernetes waits for 50 s by default. The operator allows for 90 s, so the soak tests the default.
    with Cluster.up(nodes=2, grace=None if SOAK else 20) as cluster:
        cluster.kubectl("taint", "node", "node2", f"{SECOND}=:NoSchedule")
        install_crd(cluster)
        upload_scripts(cluster)
        with operator(cluster) as cluster.operator:
            yield cluster


def why(cluster, name, namespace="default"):
    done = subprocess.run([BINARY, "why", name, "-n", namespace, "--on", "kubernetes"], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig)})
    assert done.returncode == 0, done.stderr
    return done.stdout


def nodes_of(pods):
    return {replica: one["spec"].get("nodeName") for replica, one in pods.items()}


def start(lab, folder, *command, **options):
    """A training that has a checkpoint; which of its replicas is on the second node, and the pods."""
    run = Training(lab, folder, "2.15", *command, **options)
    run.wait_for_checkpoint()
    [silent] = [replica for replica, node in nodes_of(run.pods()).items() if node == "node2"]
    return run, silent, run.uids()


def exits(run, replica):
    """Waits until the replica has ended by itself; its status and its last words."""
    def ended():
        # The pod may be replaced at any time after the job knows.
        found = run.pods().get(replica, {}).get("status", {})
        return found.get("phase") == "Failed" and found["containerStatuses"][0]["state"]["terminated"]
    how = run.poll(ended, f"{replica} exits")
    return how["exitCode"], how.get("message", "")


def is_let_go(run, replica, before, *again):
    """Somebody who knows that the node is off deletes the pod by force. Then these replicas start again, on the first node."""
    run.cluster.kubectl("delete", "pod", f"{run.name}-{replica}", "--force", "--grace-period=0", "--wait=false")
    run.wait_for_restart(before, *again)
    assert set(nodes_of(run.pods()).values()) == {"node1"}


def all_uids(run):
    """Also of pods that are being deleted."""
    return {one["metadata"]["uid"] for one in run.of_job("pods")}


def test_a_collective_continues_after_the_node_of_a_worker_went_silent(lab, tmp_path):
    run, silent, first = start(lab, tmp_path / "mirrored", *MNIST, pods={"Worker": on_second()}, Chief=1, Worker=1)
    assert silent == "worker-0"
    lab.power_off("node2")
    code, message = exits(run, "chief-0")
    assert code == 1 and "UnavailableError" in message, message
    assert "chief/0 lost contact with a peer: waiting until it is known whether the node" in why(lab, run.name)
    assert run.pods()["worker-0"]["status"]["phase"] == "Running"

    run.wait(lambda: run.status()["disruptions"] == 1, "Kubernetes notices")
    run.wait(lambda: "worker-0" not in run.pods(), "it is to go")
    assert f"worker/0 waits: NodeNotReady: {SILENT}" in why(lab, run.name)
    assert all_uids(run) <= set(first.values()), "a pod started beside one that nobody has let go of"

    is_let_go(run, "worker-0", first, "chief-0", "worker-0")
    status = run.finish()
    assert counted(status) == {"restarts": 0, "disruptions": 1}
    assert told(status) == [("worker-0", f"was taken away: {SILENT}")]
    check_model(run, "chief-0")
    run.delete()


@in_soak
def test_a_collective_whose_node_has_lost_its_kubelet_continues_on_the_other(lab, tmp_path):
    """Its processes go on, and so does the training. The pod is evicted, but no kubelet confirms that it has ended."""
    run, silent, first = start(lab, tmp_path / "kubelet", *MNIST, pods={"Worker": on_second(EVICTED_AT_ONCE)}, Chief=1, Worker=1)
    assert silent == "worker-0"
    lab.kill("node2/kubelet")
    run.wait(lambda: "worker-0" not in run.pods(), "it is evicted")
    run.wait_for_checkpoint()
    assert f"worker/0 waits: NodeNotReady: {SILENT}" in why(lab, run.name)
    assert all_uids(run) <= set(first.values()), "a pod started beside one that nobody has let go of"

    lab.power_off("node2")
    is_let_go(run, "worker-0", first, "chief-0", "worker-0")
    status = run.finish()
    assert counted(status) == {"restarts": 0, "disruptions": 1}
    check_model(run, "chief-0")
    run.delete()


@in_soak
def test_a_job_continues_after_the_node_of_its_parameter_server_went_silent(lab, tmp_path):
    """The chief waits for it and does not exit: TensorFlow hears nothing from the node either."""
    run, silent, first = start(lab, tmp_path / "ps", *MNIST_PS, pods={"PS": on_second(EVICTED_AT_ONCE)}, Chief=1, PS=1, Worker=2)
    assert silent == "ps-0"
    lab.power_off("node2")
    run.wait(lambda: "ps-0" not in run.pods(), "it is evicted")
    assert f"ps/0 waits: NodeNotReady: {SILENT}" in why(lab, run.name)
    assert all_uids(run) <= set(first.values()), "a pod started beside one that nobody has let go of"

    is_let_go(run, "ps-0", first, "chief-0", "ps-0", "worker-0", "worker-1")
    status = run.finish()
    assert counted(status) == {"restarts": 0, "disruptions": 1}
    assert [replica for replica, _ in told(status)] == ["ps-0"]
    check_model(run, "chief-0")
    run.delete()


@in_soak
def test_a_job_with_parameter_servers_continues_after_the_node_of_a_worker_went_silent(lab, tmp_path):
    run, silent, first = start(lab, tmp_path / "one", *MNIST_PS, pods={"Worker": spread("one")}, Chief=1, PS=1, Worker=2)
    lab.power_off("node2")
    run.wait(lambda: silent not in run.pods(), "it is evicted")
    assert f"{silent.replace('-', '/')} waits: NodeNotReady: {SILENT}" in why(lab, run.name)
    assert all_uids(run) <= set(first.values()), "a pod started beside one that nobody has let go of"

    is_let_go(run, silent, first, "chief-0", silent)
    status = run.finish()
    assert counted(status) == {"restarts": 0, "disruptions": 1}
    check_model(run, "chief-0")
    run.delete()


@in_soak
def test_an_elastic_job_continues_after_the_node_of_a_worker_went_silent(lab, image, tmp_path):
    lab.load_image(image)
    there = There(tmp_path / "home", lab, "silent", security="privileged")
    with shared_volume(lab, tmp_path / "volume"):
        there.kubectl("create", "-f", "-", input=json.dumps(
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "models"},
             "spec": {"accessModes": ["ReadWriteMany"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}}))
        template = pod(command=["python3", "-c", TRAIN])
        template["spec"] |= spread("mine")
        elastic = job({"tfReplicaSpecs": {"Worker": {"replicas": 2, "template": template}}}, name="mine")
        elastic["metadata"]["annotations"] = {"trainyard.dev/elastic": "1:4", "trainyard.dev/output": "models/mine"}
        there.kubectl("create", "-f", "-", input=json.dumps(elastic))
        first = there.wait_for_pods("mine", "worker-0", "worker-1")
        placed = nodes_of(there.pods("mine"))
        [silent], [other] = ([replica for replica, node in placed.items() if node == name] for name in ("node2", "node1"))
        wait_for(lambda: all(held(there, replica) == 2 for replica in placed), "each holds a shard", 120)

        lab.power_off("node2")
        lab.wait(lambda: "deletionTimestamp" in lab.api.get(there.path("pods", f"mine-{silent}"))["metadata"], "it is evicted", 300)
        assert f"{silent.replace('-', '/')} waits: NodeNotReady: {SILENT}" in there.run("why", "mine")
        there.kubectl("delete", "pod", f"mine-{silent}", "--force", "--grace-period=0", "--wait=false")
        again = there.wait_for_pods("mine", silent, but=[first[silent]])
        assert again[silent] != first[silent] and nodes_of(there.pods("mine")) == {silent: "node1", other: "node1"}
        assert there.wait_for_pods("mine", other)[other] == first[other], "nobody else is restarted"
        there.touch("mine", silent, other, file="/tmp/go")
        assert "mine succeeded" in there.run("wait", "mine", seconds=120)
        status = there.status("mine")
        assert counted(status) == {"restarts": 0, "disruptions": 1}
        [audit] = json.loads(there.run("audit", "mine", "--json"))["sets"]
        assert audit["complete"] and audit["epochs"][0]["never"] == 0
        there.kubectl("delete", "tfjob", "mine")
        lab.wait(lambda: "mine" not in there.kubectl("get", "pods,services,configmaps,jobs", "-o", "name"), "nothing is left", 60)
    there.close()
