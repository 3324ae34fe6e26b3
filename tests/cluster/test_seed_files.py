"""The original files of the four seed projects, unmodified, on a real node: tests/support/seed_files.py says where they come from.

What cannot be unmodified: `extensions/v1beta1`, which no Kubernetes since 1.16 serves, and NFS, which no kernel of a test has.
"""

import json
import os
import re
import shutil
import subprocess
import time

import pytest

from cluster import holds, node
from iris_tutorial import JOB, command, write_data
from seed_files import ELASTICDL, FILES, LEARNK8S, SPAWNER, TENSORFLOW_1, WORKSHOP, load_images
from there import There, shared_volume
from training import mnist
from yard import BINARY, ROOT, wait_for

pytestmark = [pytest.mark.trains, pytest.mark.skipif(
    not FILES.is_dir(), reason="SEED_FILES names no folder with the original files, which are not part of this repository")]
PLACE = "trainyard.test/place"  # an extended resource of the node
PICTURE = ROOT / "examples/learnk8s/data/4.png"


@pytest.fixture(scope="module")
def seeds(operated, tmp_path_factory):
    buckets = tmp_path_factory.mktemp("buckets")
    buckets.chmod(0o777)
    load_images(operated, buckets)
    operated.buckets = buckets
    return operated


@pytest.fixture
def there(seeds, tmp_path, request):
    yard = There(tmp_path / "home", seeds, f"seed-{abs(hash(request.node.name)) % 10**8}", security=None)
    yield yard
    yard.close()


@pytest.fixture
def learnk8s(there, tmp_path):
    """The tutorial after its chapter on NFS: the claim `nfs` of pvc-minikube.yaml is there."""
    with shared_volume(there.cluster, tmp_path / "volume") as there.volume:
        claim = (LEARNK8S / "kube/pvc-minikube.yaml").read_text().split("---")[1]
        there.kubectl("create", "-f", "-", input=claim)
        yield there


def took(what, began):
    print(f"\n{what}: {time.monotonic() - began:.0f} s")


def finished(there, name, seconds=300):
    def ended():
        assert not holds(there.job(name), "Failed"), json.dumps(there.status(name), indent=1)
        return holds(there.job(name), "Succeeded")
    there.cluster.wait(ended, f"{name} has succeeded", seconds)


def current(text):
    """A Deployment of extensions/v1beta1 as kubectl convert writes it: in apps/v1, with the selector that was implied."""
    out = re.sub("extensions/v1beta1", "apps/v1", text)
    if "selector:\n    matchLabels" not in out:
        label = re.search(r"template:\n\s+metadata:\n\s+labels:\n\s+app: (\S+)", out)[1]
        out = re.sub(r"\n(\s+)template:\n", rf"\n\1selector: {{matchLabels: {{app: {label}}}}}\n\1template:\n", out, count=1)
    return out


# -- TF-Spawner

def spawn(there, *words, seconds=300):
    """`./tf-spawner` in a checkout of the original, with the original's files."""
    home = there.home / "tf-spawner"
    if not home.exists():
        shutil.copytree(SPAWNER, home)
        (home / "tf-spawner").unlink(missing_ok=True)
        (home / "tf-spawner").symlink_to(BINARY)
    done = subprocess.run(["./tf-spawner", *words], cwd=home, env=there.env, capture_output=True, text=True, timeout=seconds)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_tf_spawner_trains_its_example_with_its_own_templates(there):
    began = time.monotonic()
    assert spawn(there, "examples/mnist.py") == "generated with label training_attempt=tf-spawner\n"

    def phases():
        pods = there.cluster.pods(there.namespace, "training_attempt=tf-spawner")
        found = {pod["metadata"]["name"]: pod["status"]["phase"] for pod in pods}
        assert "Failed" not in found.values(), there.kubectl("logs", "worker0") + there.kubectl("logs", "worker1")
        return found
    there.cluster.wait(lambda: phases() == {"worker0": "Succeeded", "worker1": "Succeeded"}, "both workers have succeeded", 600)
    for worker in ("worker0", "worker1"):
        log = there.kubectl("logs", worker)
        assert "Now training the distributed model" in log and "Finished training." in log
        accuracy = re.findall(r"accuracy: ([\d.]+)", log)
        assert float(accuracy[-1]) > 0.95
    assert [pod["spec"]["containers"][0]["resources"]["requests"] for pod in there.cluster.pods(there.namespace)] == [
        {"cpu": "1", "memory": "1Gi"}] * 2
    took("tf-spawner examples/mnist.py", began)
    assert spawn(there, "-d", "--yes").count("removing ") == 5
    assert there.objects() == []


def test_tf_spawner_takes_its_gpu_template_and_its_entry_point(there):
    spawn(there, "-w", "2", "--pod-file", "pod-gpu.yaml", "-c", "examples/entrypoint.sh", "-e", "examples/envfile.example",
          "examples/mnist.py")
    pods = there.cluster.pods(there.namespace)
    assert [pod["spec"]["containers"][0]["resources"]["limits"] for pod in pods] == [{"nvidia.com/gpu": "1"}] * 2
    spawn(there, "-d", "--yes")


# -- learnk8s

def test_learnk8s_job(learnk8s):
    began = time.monotonic()
    learnk8s.kubectl("create", "-f", LEARNK8S / "kube/job.yaml")
    learnk8s.kubectl("wait", "--for=condition=Complete", "job/job1", "--timeout=280s")
    assert "Loss for final step" in learnk8s.kubectl("logs", "job/job1")
    took("kube/job.yaml", began)


def test_learnk8s_tfjob_tensorboard_serving_and_client(learnk8s):
    began = time.monotonic()
    learnk8s.kubectl("create", "-f", LEARNK8S / "kube/tfjob.yaml")
    finished(learnk8s, "tfjob1")
    learnk8s.cluster.wait(lambda: "ps-0" not in learnk8s.pods("tfjob1"), "the parameter server was ended")
    [version] = (learnk8s.volume / "models").iterdir()
    assert (version / "saved_model.pb").exists() and (learnk8s.volume / "vars/checkpoint").exists()
    took("kube/tfjob.yaml", began)

    serving = LEARNK8S / "kube/serving.yaml"
    learnk8s.kubectl("create", "-f", serving, status=1)
    assert 'no matches for kind "Deployment" in version "extensions/v1beta1"' in learnk8s.cluster.said
    learnk8s.kubectl("delete", "service", "tf-serving", "--ignore-not-found")
    began = time.monotonic()
    learnk8s.kubectl("create", "-f", "-", input=current(serving.read_text()))
    learnk8s.kubectl("rollout", "status", "deployment", "tf-serving", "--timeout=300s")
    with learnk8s.forwarded("deployment/tf-serving", 9000) as port:
        def answer():
            process = learnk8s.start("predict", "--host", "localhost", "--port", port, "--image", PICTURE, "--signature_name", "predict",
                                     "--model", "test", env={"TRAINYARD_ON": ""})
            out, err = process.communicate(timeout=60)
            return out if process.returncode == 0 else print(err)
        assert re.search(r"int64_val: \d", wait_for(answer, "an answer"))
        # As client.py asks; its file is not among those that were found.
        asked = subprocess.run([node.python_of("2.15"), "-c", ASK, str(port), str(PICTURE)], capture_output=True, text=True, timeout=120)
        assert asked.returncode == 0 and "time elapased: " in asked.stdout, asked.stderr
    took("kube/serving.yaml in apps/v1, and the client", began)


ASK = """
import struct, sys, time, zlib, grpc, numpy as np
from tensorflow import make_tensor_proto
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc
import tensorflow as tf
image = tf.io.decode_png(open(sys.argv[2], "rb").read(), channels=1).numpy().astype(np.float32)
stub = prediction_service_pb2_grpc.PredictionServiceStub(grpc.insecure_channel("localhost:" + sys.argv[1]))
began = time.time()
request = predict_pb2.PredictRequest()
request.model_spec.name, request.model_spec.signature_name = "test", "predict"
request.inputs["image"].CopyFrom(make_tensor_proto(image, shape=[1, 28, 28, 1]))
print(stub.Predict(request, 10.0))
print("time elapased:", time.time() - began)
"""


def test_learnk8s_nine_jobs_on_eight_places(learnk8s):
    """run.sh as it is. A LimitRange, as in the tutorial's workspaces, and a node with eight places make room for two jobs at a time."""
    learnk8s.cluster.api.post(learnk8s.path("limitranges"), {"metadata": {"name": "places"}, "spec": {"limits": [
        {"type": "Container", "default": {PLACE: "1"}, "defaultRequest": {PLACE: "1"}}]}})
    learnk8s.cluster.offer(**{PLACE: "8"})
    programs = os.path.dirname(learnk8s.cluster.state.program("kubectl"))
    env = {**learnk8s.env, "PATH": f"{programs}:{os.environ['PATH']}"}
    began = time.monotonic()
    out = subprocess.run(["bash", "run.sh"], cwd=LEARNK8S / "templated", env=env, capture_output=True, text=True, timeout=120)
    assert out.stdout.count(" created") == 9, out.stdout + out.stderr
    names = [f"tfjob-rate{i}-layer{j}" for i in range(3) for j in range(3)]
    ends = {}

    def over():
        for name in names:
            for verdict in ("Succeeded", "Failed"):
                if name not in ends and holds(learnk8s.job(name), verdict):
                    ends[name] = (verdict, round(time.monotonic() - began))
                    print(name, *ends[name], f"{learnk8s.status(name).get('restarts', 0)} restarts", flush=True)
        return len(ends) == 9 or time.sleep(0.5)
    try:
        learnk8s.cluster.wait(over, "all nine have ended", 400)
        events = learnk8s.cluster.api.get(learnk8s.path("events"))["items"]
        away = sorted(event["involvedObject"]["name"] for event in events if event["reason"] == "TFJobBackedOff")
        took(f"run.sh, back-offs: {away}", began)
        # The tutorial gives the number of layers to the master alone. Where it is not the workers' two, their graphs do not fit.
        assert {ends[f"tfjob-rate{i}-layer1"][0] for i in range(3)} == {"Succeeded"}
    finally:
        learnk8s.kubectl("delete", "tfjobs", "--all", "--wait=false")
        learnk8s.cluster.wait(lambda: not learnk8s.cluster.pods(learnk8s.namespace), "its pods are gone")
        learnk8s.cluster.offer(**{PLACE: None})


# -- the workshop

def render(there, template, *parameters):
    return there.run("render", "-f", WORKSHOP / "openshift" / template, *(word for one in parameters for word in ("--param", one)))


def test_the_workshop_from_templates_to_the_web_client(there):
    began = time.monotonic()
    parameters = [word for one in ("JOB_NAME=training-user1", "IMAGE_NAME=training-user1:1", "BUCKET=user1", "TRAIN_STEPS=50")
                  for word in ("--param", one)]
    out = there.run("run", "-f", WORKSHOP / "openshift/tf-job-template.yaml", *parameters, seconds=600)
    assert "training-user1 succeeded" in out
    export = there.cluster.buckets / "user1/inception/export"
    assert len(list(export.glob("*/saved_model.pb"))) == 1
    took("tf-job-template.yaml", began)

    began = time.monotonic()
    manifest = render(there, "tf-job_distributed-template.yaml", "JOB_NAME=training-distributed-user1", "IMAGE_NAME=training-user1:1",
                      "BUCKET=user1", "WORKERS=2", "TRAIN_STEPS=50", "LIMIT_CPU=0.4")
    there.kubectl("apply", "-f", "-", input=manifest)
    finished(there, "training-distributed-user1", 600)
    roles = there.job("training-distributed-user1")["spec"]["tfReplicaSpecs"]
    assert {role: spec["replicas"] for role, spec in roles.items()} == {"Chief": 1, "PS": 1, "Worker": 2}
    versions = sorted(int(path.parent.name) for path in export.glob("*/saved_model.pb"))
    assert len(versions) == 2
    took("tf-job_distributed-template.yaml", began)

    began = time.monotonic()
    serving = render(there, "tf-serving-template.yaml", "APPLICATION_NAME=tf-serving-user1", "BUCKET=user1")
    serving = current(re.sub('cpu: "?4"?', "cpu: 500m", serving))  # four processors are more than the machine has
    there.kubectl("create", "-f", "-", input=serving)
    there.kubectl("rollout", "status", "deployment", "tf-serving-user1", "--timeout=300s")
    with there.forwarded("deployment/tf-serving-user1", 9000) as port:
        env = {**os.environ, "PYTHONPATH": f"{TENSORFLOW_1.parent}:{WORKSHOP / 'containers/web-ui'}", "TENSORFLOW_1": "1",
               "MNIST_DATA": mnist(), "PYTHONDONTWRITEBYTECODE": "1"}
        code = ("import mnist_client as c\nx, y, _ = c.random_mnist()\n"
                f"p, scores, version = c.get_prediction(x, server_host='localhost', server_port={port}, server_name='mnist')\n"
                "print('ANSWER', y, p, len(scores), version.value)")

        def answer():
            done = subprocess.run([node.python_of("2.15"), "-c", code], env=env, capture_output=True, text=True, timeout=120)
            found = re.search(r"ANSWER (\d) (\d) (\d+) (\d+)", done.stdout)
            return found or print(done.stderr)
        found = wait_for(answer, "an answer to the web client")
        assert int(found[3]) == 10 and int(found[4]) == versions[-1]
    took("tf-serving-template.yaml in apps/v1, and mnist_client.py", began)


# -- ElasticDL

@pytest.fixture
def tutorial(seeds, tmp_path):
    """The tutorial's user, in the namespace that its file of rights is for."""
    yard = There(tmp_path / "home", seeds, "default", security=None)
    yield yard
    yard.kubectl("delete", "--ignore-not-found", "--wait=false", "pod", f"elasticdl-{JOB}-master")
    yard.kubectl("delete", "--ignore-not-found", "-f", ROOT / "deploy/elasticdl-rbac.yaml", "-f", ORIGINAL_RIGHTS)
    yard.close()


ORIGINAL_RIGHTS = ELASTICDL / "elasticdl/manifests/elasticdl-rbac.yaml"


def test_elasticdl_trains_its_iris_estimator(tutorial, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    write_data(folder)
    tutorial.kubectl("apply", "-f", ORIGINAL_RIGHTS)
    assert "add to the rules of its Role" in tutorial.refused("elasticdl", *command(folder), env={"TRAINYARD_ON": ""})
    tutorial.kubectl("apply", "-f", ROOT / "deploy/elasticdl-rbac.yaml")
    began = time.monotonic()
    assert f"{JOB} submitted" in tutorial.run("elasticdl", *command(folder), env={"TRAINYARD_ON": ""})
    tutorial.run("wait", JOB, seconds=400)
    status = json.loads(tutorial.run("get", JOB, "-o", "json"))["status"]
    assert status["shards"]["recordsTotal"] == 15000 and status["shards"]["recordsLeft"] == 0
    assert "Loss for final step: " in tutorial.kubectl("logs", f"{JOB}-edljob-chief-0")
    assert (folder / "ckpts/checkpoint").exists()
    [audit] = json.loads(tutorial.run("audit", JOB, "--json"))["sets"]
    assert audit["complete"]
    took("elasticdl train of model_zoo/iris", began)
