"""deploy/storage-*.yaml: claims that the pods of a job share."""

import pytest

from cluster import ApiError
from samples import RESTRICTED
from yard import ROOT

NFS, HOSTPATH = ROOT / "deploy/storage-nfs.yaml", ROOT / "deploy/storage-hostpath.yaml"
PODS = "/api/v1/namespaces/default/pods"


def bound(cluster, claim):
    status = cluster.api.get(f"/api/v1/namespaces/default/persistentvolumeclaims/{claim}")["status"]
    return status["phase"] == "Bound" and status["accessModes"]


def test_the_claim_of_nfs_is_bound_and_its_server_has_a_namespace_where_it_may_be(tfjobs):
    """As far as an API server goes: no kernel of a test has NFS."""
    tfjobs.kubectl("apply", "-f", NFS)
    assert tfjobs.wait(lambda: bound(tfjobs, "nfs"), "the claim is bound") == ["ReadWriteMany"]
    [pod] = tfjobs.wait(lambda: tfjobs.pods("trainyard-storage"), "the pod of the server")
    tfjobs.kubectl("create", "namespace", "strict-storage")
    tfjobs.kubectl("label", "namespace", "strict-storage", "pod-security.kubernetes.io/enforce=restricted")
    with pytest.raises(ApiError, match='violates PodSecurity "restricted'):
        tfjobs.api.post("/api/v1/namespaces/strict-storage/pods", {"metadata": {"name": "a"}, "spec": {
            **{key: pod["spec"][key] for key in ("containers", "volumes")}, "automountServiceAccountToken": False}})
    tfjobs.kubectl("delete", "-f", NFS, "--wait=false")


@pytest.fixture
def hostpath(node):
    text = HOSTPATH.read_text().replace("busybox:1.36", "trainyard.test/small:1")
    node.kubectl("apply", "-f", "-", input=text)
    yield node
    node.kubectl("delete", "pod", "writes-to-the-node", "--ignore-not-found", "--grace-period=0")
    node.kubectl("delete", "-f", "-", "--wait=false", input=text)


def test_a_pod_that_is_not_root_writes_to_the_folder_of_its_node(hostpath):
    hostpath.wait(lambda: bound(hostpath, "hostpath"), "the claim is bound")
    hostpath.kubectl("wait", "--for=condition=complete", "job/open-hostpath", "--timeout=60s")
    container = {"name": "a", "image": "trainyard.test/small:1", "securityContext": {**RESTRICTED, "runAsUser": 1000},
                 "command": ["sh", "-c", "echo trained > /storage/model && cat /storage/model"],
                 "volumeMounts": [{"name": "storage", "mountPath": "/storage"}]}
    hostpath.api.post(PODS, {"metadata": {"name": "writes-to-the-node"}, "spec": {
        "restartPolicy": "Never", "containers": [container],
        "volumes": [{"name": "storage", "persistentVolumeClaim": {"claimName": "hostpath"}}]}})
    hostpath.wait(lambda: hostpath.api.get(f"{PODS}/writes-to-the-node")["status"]["phase"] in ("Succeeded", "Failed"), "it ends")
    assert hostpath.kubectl("logs", "writes-to-the-node") == "trained\n"
