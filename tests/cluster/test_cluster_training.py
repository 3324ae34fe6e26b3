"""`run` with real TensorFlow on a real cluster: the same words as on one machine, and a model that comes home."""

import json
import os
import re
import subprocess

import pytest

from there import IMAGE, There, shared_volume
from training import mnist
from trainyard_operator import remove_deployed
from yard import ROOT, wait_for

pytestmark = pytest.mark.trains

MNIST = ROOT / "examples/mnist.py"
PLACES = re.compile(r"  (model|kept|logs|next) ")
PROGRESS = re.compile(r"\d+/\d+ - loss")
CHANCE = re.compile(r"coordination_service|Local rendezvous|To enable the following instructions")
# The last words of a replica that is killed, or whose peer was: how many there are is a matter of microseconds.
BEGINS, ENDS = "oneDNN custom operations are on", re.compile(r"Aborting RingReduce|SIGTERM caught|UNAVAILABLE|Traceback")


def said_by(transcript, job):
    """What each replica said and what became of the job, without times, numbers, addresses, progress and our own words in
    between. Sorted: of lines that two replicas say at once, one stands for both."""
    lines, ending = {}, set()
    for line in transcript.splitlines()[1:]:
        if PLACES.match(line) or line.startswith("trainyard: "):
            continue
        replicas, text = ["the job"], line
        if match := re.match(r"(\w+)/(\d+|\* x(\d+)) +(.*)", line):
            replicas = [f"{match[1]}/{i}" for i in range(int(match[3]))] if match[3] else [f"{match[1]}/{match[2]}"]
            text = match[4]
        if PROGRESS.match(text) or CHANCE.search(text):
            continue
        text = re.sub(r"grpc://\S+", "grpc://ADDRESS", text)
        text = re.sub(r"/\S+/output/", "OUTPUT/", re.sub(rf"\b{job}\b", "JOB", text))
        text = re.sub(r"after \S+", "after TIME", re.sub(r"\d+(\.\d+)?", "N", text).split("; the last time ")[0])
        for replica in replicas:
            (ending.add if ENDS.search(text) else ending.discard if BEGINS in text else str)(replica)
            if replica not in ending:
                lines.setdefault(replica, []).append(text)
    return {replica: sorted(said) for replica, said in lines.items()}


@pytest.fixture
def volume(node, tmp_path):
    with shared_volume(node, tmp_path / "volume"):
        yield


@pytest.fixture
def there(node, tmp_path, request):
    # The data lies in a folder of the machine, which only a lenient namespace lets a pod see.
    yard = There(tmp_path / "home", node, f"training-{abs(hash(request.node.name)) % 10**8}", security="privileged")
    yard.pod = yard.script(json.dumps({"spec": {
        "shareProcessNamespace": True, "terminationGracePeriodSeconds": 1, "volumes": [{"name": "data", "hostPath": {"path": mnist()}}],
        "containers": [{"name": "tensorflow", "image": IMAGE, "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                        "env": [{"name": "MNIST_DATA", "value": "/data"}, {"name": "HOME", "value": "/tmp"}]}]}}), "pod.json")
    yield yard
    yard.close()


def steps(text):
    """How many different numbers of steps were told of."""
    return len(set(re.findall(r"(\d+)/\d+ - loss", text)))


def train(yard, arguments):
    """Trains on two workers, one deleted on the way, to the end; what was told."""
    with (yard.home / "out").open("w") as out:
        run = yard.start("run", "--pod-file", yard.pod, *arguments, stdout=out)
    text = lambda: (yard.home / "out").read_text()  # noqa: E731
    wait_for(lambda: steps(text()) >= 4 or run.poll() is not None, "it trains", 180)
    first = {name: pod["metadata"]["uid"] for name, pod in yard.pods("mnist-1").items()}
    yard.kubectl("delete", "pod", "mnist-1-worker-1", "--wait=false")
    yard.end(run, seconds=300)
    assert {name: pod["metadata"]["uid"] for name, pod in yard.pods("mnist-1").items()}.items().isdisjoint(first.items())
    status = json.loads(yard.run("get", "-o", "json"))["status"]
    assert (status["disruptions"], status["restarts"]) == (1, 0)
    assert "resuming from step" in text()
    return text()


def check_that_the_model_comes_home(yard, python):
    """After the pods are gone, and the job with them."""
    yard.run("delete")
    assert yard.run("fetch", "mnist-1", "home", "-i", IMAGE).endswith("  model   home/output/1\n")
    loads = "import sys, tensorflow as tf; m = tf.saved_model.load(sys.argv[1]); print(sorted(m.signatures))"
    done = subprocess.run([python, "-c", loads, yard.home / "home/output/1"], capture_output=True, text=True,
                          env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})
    assert done.stdout == "['predict', 'serving_default']\n", done.stderr
    assert yard.run("delete", "mnist-1", "--with-output") == "mnist-1 deleted\n"


@pytest.fixture(scope="module")
def python():
    return subprocess.run([ROOT / "script/python-env", "2.15"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


ARGUMENTS = ["-w", 2, MNIST, "--", "--epochs", 2, "--checkpoint-every", 40]


@pytest.mark.skipif(os.environ.get("SOAK") != "1", reason="a minute more; test_master has the same with small programs")
def test_without_an_operator_and_with_rights_in_one_namespace_only(with_image, there, volume, python):
    remove_deployed(with_image)
    there.kubectl("create", "rolebinding", "hers", "--clusterrole=admin", "--user=her")
    there.use(with_image.as_user("her"))
    there.kubectl("auth", "can-i", "list", "pods", "--namespace=default", "--as=her", status=1)
    assert "by a master of its own · 2 workers" in train(there, ARGUMENTS).splitlines()[0]
    check_that_the_model_comes_home(there, python)
    kinds = "configmaps,secrets,pods,services,jobs,roles,rolebindings,serviceaccounts,pvc"
    usual = {"configmap/kube-root-ca.crt", "rolebinding.rbac.authorization.k8s.io/hers", "serviceaccount/default"}
    there.cluster.wait(lambda: set(there.kubectl("get", kinds, "-o", "name").split()) == usual, "nothing is left")


def test_a_pod_is_deleted_on_the_way_and_the_model_comes_home(operated, there, volume, python):
    transcript = train(there, ARGUMENTS)
    # The same on this machine, a worker killed on the way.
    with (there.home / "here").open("w") as out:
        here = there.start("run", "--python", python, *ARGUMENTS, stdout=out,
                           env={"TRAINYARD_ON": "local", "MNIST_DATA": mnist()})
    wait_for(lambda: steps((there.home / "here").read_text()) >= 4, "it trains here", 180)
    there.kill(*there.replica_pids("mnist-1", "worker-1"))
    there.end(here, seconds=300)
    assert said_by(transcript, "mnist-1") == said_by((there.home / "here").read_text(), "mnist-1")
    check_that_the_model_comes_home(there, python)
    there.cluster.wait(lambda: there.objects() == [], "nothing is left")
