"""`install`, `doctor` and `uninstall` on an empty cluster, with the operator's own image on a real node."""

import pytest

from there import IMAGE
from trainyard_operator import remove_deployed
from yard import Yard


@pytest.fixture
def yard(with_image, tmp_path):
    remove_deployed(with_image)  # by other tests on this node
    yard = Yard(tmp_path / "home")
    yard.env |= {"KUBECONFIG": str(with_image.kubeconfig), "TRAINYARD_ON": "kubernetes"}
    yield yard
    yard.close()


def everything(cluster):
    """What an installation may touch, by kind and name; namespaces of other tests come and go."""
    kinds = "namespaces,customresourcedefinitions,clusterroles,clusterrolebindings"
    names = set(cluster.kubectl("get", kinds, "-o", "name").split())
    return {name for name in names if not name.startswith("namespace/") or name == "namespace/trainyard-system"}


def test_it_is_ready_doctor_is_content_and_nothing_is_left(with_image, yard):
    before = everything(with_image)
    sick = yard.run("doctor", status=1)
    assert "TFJob is not defined\n      fix: trainyard install" in sick
    assert "nothing was changed" in yard.refused("install")  # nobody said yes
    assert everything(with_image) == before

    out = yard.run("install", "--yes")
    assert "create  CustomResourceDefinition tfjobs.kubeflow.org" in out
    assert out.endswith("ready: trainyard run SCRIPT --on kubernetes\n")
    assert "update  Deployment trainyard-system/trainyard-operator" in yard.run("install", "--yes")

    with_image.kubectl("apply", "-f", "-", input=VOLUME)
    fit = yard.run("doctor")
    assert [line for line in fit.splitlines() if not line.startswith("ok")] == [], fit

    job = yard.run("run", "-w", 1, "-i", IMAGE, "--output", "none", "--name", "first", yard.script("print('hello')"))
    assert "first succeeded" in job
    assert "1 TFJob would be deleted with it" in yard.refused("uninstall", "--yes")
    yard.run("delete", "first")
    with_image.kubectl("delete", "pv", "free", "--wait=false")

    assert "delete  Namespace trainyard-system" in yard.run("uninstall", "--yes")
    assert everything(with_image) == before
    assert "there is nothing of Trainyard" in yard.refused("uninstall", "--yes")


def test_an_image_that_is_not_there_undoes_the_installation(with_image, yard):
    before = everything(with_image)
    yard.run("install", "--yes", "--image", "trainyard.test/no-such:1", "--timeout", "15s", status=69)
    assert "ImagePull" in yard.err and "everything is as it was before" in yard.err
    with_image.wait(lambda: everything(with_image) == before, "nothing is left")


VOLUME = """
apiVersion: v1
kind: PersistentVolume
metadata: {name: free}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteMany]
  hostPath: {path: /tmp}
"""
