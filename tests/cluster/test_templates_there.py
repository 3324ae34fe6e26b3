"""A template of the workshop's form on a real cluster, with its four parameters; and a manifest with more than a job."""

import json

import pytest

from there import IMAGE, There
from yard import ROOT

# Stands for the script that the workshop's image has: every role sees the same folder, only the chief exports.
TRAIN = """
import os, pathlib, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
role = os.environ['TRAINYARD_ROLE']
if role == 'ps':
    while True: time.sleep(1)
folder = pathlib.Path(os.environ['TF_MODEL_DIR'])
folder.mkdir(parents=True, exist_ok=True)
(folder / f"{role}-{os.environ['TRAINYARD_INDEX']}").write_text(os.environ['TF_TRAIN_STEPS'])
print('Training done')
"""


@pytest.fixture
def there(operated, tmp_path):
    yard = There(tmp_path / "home", operated, "templates", security="privileged")
    yield yard
    yard.close()


def test_the_template_of_the_workshop_runs_with_its_four_parameters(there, tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    # In place of an image with the script in it: the claim that all replicas share has it.
    template = (ROOT / "examples/tfjob-template.yaml").read_text()
    assert "/app/train.py" in template
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "templates"},
              "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "hostPath": {"path": str(folder)},
                       "claimRef": {"namespace": there.namespace, "name": "models"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "models"},
             "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}}
    there.script("\n---\n".join([json.dumps(volume), json.dumps(claim), template.replace("/app/", "/mnt/models/")]), "all.yaml")
    parameters = ["JOB_NAME=shop", f"IMAGE_NAME={IMAGE}", "WORKERS=2", "TRAIN_STEPS=10"]
    out = there.run("run", "-f", "all.yaml", *(word for one in parameters for word in ("--param", one)))
    assert "shop succeeded" in out
    # As the workshop's listing names them.
    assert sorted(pod["metadata"]["name"] for pod in there.cluster.pods(there.namespace)) == [
        "shop-chief-0", "shop-ps-0", "shop-worker-0", "shop-worker-1"]
    assert {path.name: path.read_text() for path in (folder / "shop").iterdir()} == {
        "chief-0": "10", "worker-0": "10", "worker-1": "10"}
    there.run("delete", "shop")
    there.kubectl("delete", "pvc", "models")
    there.cluster.kubectl("delete", "pv", "templates", "--wait=false")
