"""What `adopt` refuses, and that what fails or is interrupted leaves everything as it was.

Kubeflow's own manifests on an API server without a node: no pod ever starts, so neither does our operator.
"""

import signal

import kubeflow_install as kubeflow
import pytest
from cluster import Cluster
from samples import job, replicas
from yard import Yard, wait_for

CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/tfjobs.kubeflow.org"
JOBS = "/apis/kubeflow.org/v1/namespaces/default/{}"


@pytest.fixture(scope="module")
def cluster():
    """Their definitions, and two live TFJobs: with the webhook, which nobody answers, none could be made."""
    with Cluster.up() as cluster:
        kubeflow.apply(cluster, "base/crds")
        for name in ("a", "b"):
            cluster.wait(lambda: cluster.api.post(JOBS.format("tfjobs"), job(replicas(Worker={"replicas": 1}), name)), "a TFJob")
        yield cluster


@pytest.fixture
def yard(cluster, tmp_path):
    yard = Yard(tmp_path / "home")
    yard.env |= {"KUBECONFIG": str(cluster.kubeconfig), "TRAINYARD_ON": "kubernetes"}
    yield yard
    yard.close()


@pytest.fixture
def theirs(cluster):
    kubeflow.apply(cluster)
    return cluster


def about(thing):
    return {key: thing["metadata"].get(key) for key in ("name", "uid", "labels", "annotations")}


def everything(cluster):
    """All that an adoption may touch, as far as somebody has said it."""
    kinds = "namespaces,clusterroles,clusterrolebindings,customresourcedefinitions"
    deployment = cluster.api.get(kubeflow.DEPLOYMENT)
    # The controller writes its own when it comes to it.
    deployment["metadata"].setdefault("annotations", {}).pop("deployment.kubernetes.io/revision", None)
    changed = [deployment, cluster.api.get(kubeflow.WEBHOOKS), cluster.api.get(CRD)]
    return [set(cluster.kubectl("get", kinds, "-o", "name").split()),
            [(about(thing), thing.get("spec"), thing.get("webhooks")) for thing in changed]]


def undone(cluster, before):
    cluster.wait(lambda: everything(cluster) == before, "everything is as it was before")


def test_without_another_operator_there_is_nothing_to_adopt(yard):
    assert "no training-operator was found" in yard.refused("adopt", "--yes")
    assert yard.refused("adopt", "--operator", "team/other") == "--operator: there is no Deployment team/other"


def test_nobody_said_yes(theirs, yard):
    before = everything(theirs)
    assert "nothing was changed" in yard.refused("adopt")
    assert everything(theirs) == before


def test_jobs_of_other_kinds_are_not_left_alone(theirs, yard):
    torch = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "t"}, "spec": {"pytorchReplicaSpecs": {}}}
    theirs.api.delete(kubeflow.WEBHOOKS)
    theirs.wait(lambda: theirs.api.post(JOBS.format("pytorchjobs"), torch), "a PyTorchJob")
    kubeflow.apply(theirs)
    before = everything(theirs)
    assert yard.refused("adopt", "--yes") == ("1 PyTorchJob would be left alone without kubeflow/training-operator: "
                                              "with --leave-others it stays for them, without TFJob")
    # With it, theirs is to start again without TFJob. It cannot, here.
    process = yard.start("adopt", "--yes", "--leave-others", "--timeout", "1m")
    asked = wait_for(lambda: theirs.api.get(kubeflow.DEPLOYMENT)["spec"]["template"]["spec"]["containers"][0].get("args"), "flags")
    assert "--enable-scheme=pytorchjob" in asked and "--enable-scheme=tfjob" not in asked
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=150)
    assert "restart without TFJob: Deployment kubeflow/training-operator" in out
    assert process.returncode == 130 and "everything is as it was before" in err, err
    undone(theirs, before)
    theirs.api.delete(JOBS.format("pytorchjobs") + "/t")


def test_a_job_that_ours_cannot_read_is_not_taken(theirs, yard):
    theirs.api.delete(kubeflow.WEBHOOKS)
    odd = job(replicas(Worker={"replicas": 1}, Helper={"replicas": 1}), "odd")
    theirs.wait(lambda: theirs.api.post(JOBS.format("tfjobs"), odd), "a TFJob")
    assert "TFJob default/odd cannot be taken over: " in yard.refused("adopt", "--yes")
    theirs.api.delete(JOBS.format("tfjobs") + "/odd")


@pytest.mark.parametrize("interrupt", [False, True])
def test_what_does_not_come_to_an_end_is_undone(theirs, yard, interrupt):
    before = everything(theirs)
    process = yard.start("adopt", "--yes", "--timeout", "1m" if interrupt else "8s")
    wait_for(lambda: theirs.api.get(CRD)["spec"]["versions"][-1]["name"] != "v1", "our definition is there")
    webhooks = theirs.api.get(kubeflow.WEBHOOKS)["webhooks"]
    assert [hook["name"].split(".")[1] for hook in webhooks] == ["jaxjob", "paddlejob", "pytorchjob", "xgboostjob"]
    assert theirs.api.get(kubeflow.DEPLOYMENT)["spec"]["replicas"] == 0
    theirs.wait(lambda: theirs.pods("trainyard-system"), "a pod of ours")
    assert theirs.pods("kubeflow") == []
    if interrupt:
        process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=150)
    assert "take over: 2 live TFJobs; no pod is restarted" in out
    assert process.returncode == (128 + signal.SIGTERM if interrupt else 69), err
    assert ("interrupted" if interrupt else "Deployment trainyard-system/trainyard-operator to be ready") in err
    assert err.endswith("everything is as it was before\n"), err
    undone(theirs, before)
