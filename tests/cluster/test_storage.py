"""deploy/storage-*.yaml: claims that the pods of a job share."""

import shutil

import pytest

from cluster import ApiError
from lab import images
from there import IMAGE, There
from trainyard_operator import remove_deployed
from yard import ROOT

NFS = ROOT / "deploy/storage-nfs.yaml"


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
def there(with_image, tmp_path):
    """Nothing of ours is installed, and the node has the image that opens the folder."""
    remove_deployed(with_image)
    images.write_small(tmp_path / "busybox.tar", "docker.io/library/busybox:1.36")
    with_image.load_image(tmp_path / "busybox.tar")
    yard = There(tmp_path / "home", with_image, "storage", security="baseline")
    yield yard
    yard.close()
    shutil.rmtree("/var/lib/trainyard-storage", ignore_errors=True)  # the node is this machine


TRAIN = "import os, pathlib\npathlib.Path(os.environ['TRAINYARD_OUTPUT_DIR'], 'model').write_text('trained')\n"


def test_a_folder_of_the_node_is_storage_from_install_to_uninstall(there):
    assert "create  PersistentVolumeClaim storage/hostpath" in there.run("install", "--storage", "hostpath", "--yes")
    assert "succeeded" in there.run("run", "-i", IMAGE, "-w", 1, "--output", "hostpath/one", "--name", "one", there.script(TRAIN))
    there.run("fetch", "one", "home")
    assert (there.home / "home/output/model").read_text() == "trained"
    there.run("delete", "one")
    there.run("uninstall", "--storage", "hostpath", "--yes")
    there.cluster.wait(lambda: there.kubectl("get", "pods,jobs,pvc", "-o", "name") == "", "nothing is left")
    assert there.kubectl("get", "pv", "trainyard-hostpath", "--ignore-not-found") == ""
