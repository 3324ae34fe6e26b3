"""`serve` on a cluster: a server beside the job, on what the job has exported."""

import json
import re
import signal
import urllib.request

import pytest

from image_archive import config_of, config_said_by
from there import IMAGE, There, shared_volume
from yard import BINARY, ROOT

SERVING = "docker.io/library/trainyard-serving:latest"  # what is meant where nothing else is said

DOUBLES = """
import os
import tensorflow as tf

class Doubles(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    def double(self, x):
        return {"y": 2 * x}

module = Doubles()
tf.saved_model.save(module, os.environ["TRAINYARD_OUTPUT_DIR"] + "/1", signatures=module.double)
"""


@pytest.fixture(scope="module")
def there(operated, tmp_path_factory):
    archive = operated.load_serving_image(SERVING, "2.15", BINARY)
    folder = tmp_path_factory.mktemp("serving")
    with shared_volume(operated, folder / "volume"):
        yard = There(folder / "home", operated, "serving")
        yard.archive = archive
        yield yard
        yard.close()


def objects(there):
    return there.kubectl("get", "deployments,services,ingresses,pods", "-l", "app.kubernetes.io/name=doubles-serve",
                         "-o", "name").split()


def predict(address):
    request = urllib.request.Request(address + ":predict", json.dumps({"instances": [1.5, 2]}).encode())
    with urllib.request.urlopen(request, timeout=30) as reply:
        return json.load(reply)["predictions"]


def test_a_model_is_served_until_ctrl_c_though_its_pod_is_lost(there):
    there.run("run", "-i", IMAGE, "-w", 1, "--name", "doubles", there.script(DOUBLES))
    serve = there.start("serve", "doubles", "--server", "trainyard", "--port", 0, "--rest-port", 0)
    line = serve.stdout.readline()
    found = re.fullmatch(r"the server of doubles · gRPC 127\.0\.0\.1:\d+ · REST (http://127\.0\.0\.1:\d+/v1/models/doubles)"
                         r" · Ctrl-C ends it\n", line)
    assert found, line + serve.stderr.read()
    assert predict(found[1]) == [3.0, 4.0]
    # The model's own page answers while the model is still being loaded: that is not ready.
    assert there.kubectl("get", "deployment", "doubles-serve", "-o",
                         "jsonpath={..readinessProbe.httpGet.path}") == "/v1/models/doubles/metadata"
    there.kubectl("delete", "pods", "-l", "app.kubernetes.io/name=doubles-serve")
    there.cluster.wait(lambda: predict(found[1]) == [3.0, 4.0], "another pod has its place", 60)
    serve.send_signal(signal.SIGINT)
    assert serve.wait(150) == 0, serve.stderr.read()
    there.cluster.wait(lambda: objects(there) == [], "nothing is left")

    # Left there, with a name for others, until the job goes.
    out = there.run("serve", "doubles", "--server", "trainyard", "-i", SERVING, "--name", "two", "--ingress", "two.example", "-d")
    assert out == ("the server of two · gRPC doubles-serve.serving.svc:8500 · "
                   "REST http://doubles-serve.serving.svc:8501/v1/models/two\n")
    assert len(objects(there)) == 4
    there.run("delete", "doubles", "--with-output")
    there.cluster.wait(lambda: objects(there) == [], "nothing is left")


def test_the_dockerfile_says_what_the_archive_says(there):
    assert config_said_by(ROOT / "deploy/serving.Dockerfile") == config_of(there.archive)


def test_what_cannot_be_served_is_refused(there):
    assert "no job named nobody" in there.refused("serve", "nobody")
    there.run("run", "-i", IMAGE, "-w", 1, "--name", "none", "--output", "none", there.script("pass"))
    assert "none keeps no output" in there.refused("serve", "none")
    assert there.refused("serve", "none", "--batch", 4) == "--batch is for this machine, not for clusters"
