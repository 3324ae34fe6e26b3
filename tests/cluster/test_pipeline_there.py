"""The learnk8s tutorial's whole story on a real cluster, with real TensorFlow: by our commands, and by its own files with kubectl."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import urllib.request

import pytest

from cluster import holds
from docs import run_page
from learnk8s import EXAMPLE, MNIST, load_images
from there import There, shared_volume
from training import mnist
from yard import BINARY, ROOT, wait_for

pytestmark = pytest.mark.trains

SOAK = os.environ.get("SOAK") == "1"
SERVING = "trainyard.test/serving:2.15"
NFS = sorted(EXAMPLE.glob("kube/*nfs*.yaml")) + sorted(EXAMPLE.glob("kube/pvc-*.yaml"))


@pytest.fixture(scope="module")
def images(operated):
    load_images(operated)
    operated.load_serving_image(SERVING, "2.15", BINARY)
    return operated


@pytest.fixture
def there(images, tmp_path, request):
    """A namespace that admits only what is restricted, with a claim named nfs: a folder of the node, which has no NFS."""
    with shared_volume(images, tmp_path / "volume") as volume:
        yard = There(tmp_path / "home", images, f"story-{abs(hash(request.node.name)) % 10**8}")
        yard.kubectl("apply", "-f", "-", input=json.dumps(
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "nfs"}, "spec": {
                "accessModes": ["ReadWriteMany"], "storageClassName": "", "resources": {"requests": {"storage": "10Gi"}}}}))
        yard.volume = volume
        yield yard
        yard.close()


def test_the_files_of_the_tutorial_are_admitted(tfjobs):
    """NFS only so far: no kernel of a test has it. Everything else also by Pod Security "restricted"."""
    tfjobs.kubectl("create", "namespace", "learnk8s")
    tfjobs.kubectl("label", "namespace", "learnk8s", "pod-security.kubernetes.io/enforce=restricted",
                   "pod-security.kubernetes.io/warn=restricted")
    for path in sorted(EXAMPLE.glob("kube/*.yaml")):
        space = "default" if path in NFS else "learnk8s"
        out = tfjobs.kubectl("create", "--dry-run=server", "--validate=strict", "-n", space, "-f", path)
        assert out.count("(server dry run)") == path.read_text().count("\nkind: "), path
        assert "PodSecurity" not in tfjobs.said, path
    assert len(NFS) == 4


def get(url):
    with urllib.request.urlopen(url, timeout=30) as reply:
        return json.load(reply)


def ready(there, deployment):
    there.kubectl("rollout", "status", "deployment", deployment, "--timeout=120s")


@pytest.mark.skipif(not SOAK, reason="two trainings by hand and two of a sweep: script/soak")
def test_the_files_of_the_tutorial_do_what_it_says(there):
    kube = EXAMPLE / "kube"
    for name in ("job", "tfjob", "tensorboard"):
        there.kubectl("create", "-f", kube / f"{name}.yaml")
    there.cluster.wait(lambda: holds(there.job("tfjob1"), "Succeeded"), "tfjob1 has succeeded", 300)
    there.kubectl("wait", "--for=condition=Complete", "job/job1", "--timeout=180s")
    assert "accuracy: 0.9" in there.kubectl("logs", "job/job1")
    there.cluster.wait(lambda: "ps-0" not in there.pods("tfjob1"), "the parameter server was ended")
    [version] = (there.volume / "models").iterdir()
    assert version.name.isdigit() and (version / "saved_model.pb").exists()

    ready(there, "tensorboard")
    with there.forwarded("deployment/tensorboard", 6006) as port:
        wait_for(lambda: {"vars", "vars/eval"} <= set(get(f"http://localhost:{port}/data/runs")), "the runs are shown", 60)

    # Nothing can be pulled: in place of TensorFlow's own server, ours with the same ports, paths and names.
    server = {"name": "tf-serving", "image": SERVING, "env": [{"name": "HOME", "value": "/tmp"}], "command": [
        "trainyard", "serve", "/tmp/tensorflow/models", "--name", "test", "--port", "9000", "--host", "0.0.0.0", "--open"]}
    there.kubectl("create", "-f", kube / "serving.yaml")
    there.kubectl("patch", "deployment", "tf-serving", "-p", json.dumps({"spec": {"template": {"spec": {"containers": [server]}}}}))
    ready(there, "tf-serving")
    with there.forwarded("deployment/tf-serving", 9000) as port:
        out = there.run("predict", "--host", "localhost", "--port", port, "--image", EXAMPLE / "data/4.png",
                        "--signature_name", "predict", "--model", "test")
    assert "int64_val: 4" in out

    # In place of run.sh, with two of its nine.
    out = there.run("sweep", EXAMPLE / "templated/sweep.yaml", "--parallel", 1, "--param", "learning_rate=0.01,0.00001",
                    "--param", "hidden_layers=1", seconds=600)
    assert "best    trial 0: accuracy 0.9" in out
    folders = {path.relative_to(there.volume).parts for path in there.volume.glob("templated/*/output/*/saved_model.pb")}
    assert {parts[:3] for parts in folders} == {("templated", f"00{i}-learning_rate={rate},hidden_layers=1", "output")
                                               for i, rate in enumerate(("0.01", "0.00001"))}
    roles = there.job("templated-t0")["spec"]["tfReplicaSpecs"]
    flags = {role: one["template"]["spec"]["containers"][0]["args"][:2] for role, one in roles.items()}
    assert flags == {role: ["--learning_rate=0.01", "--hidden_layers=1"] for role in ("Master", "Worker", "PS")}


@pytest.mark.skipif(not SOAK, reason="ten trainings: script/soak")
def test_every_command_of_the_page_on_the_pipeline_runs_on_a_cluster(there):
    work = there.home / "work"
    work.mkdir()
    shutil.copy(ROOT / "examples/mnist.py", work)
    data = mnist()
    env = {**there.env, "IMAGE": MNIST.removeprefix("docker.io/"), "SERVING": SERVING, "MNIST_DATA": data,
           "PATH": f"{BINARY.parent}:{os.environ['PATH']}"}
    env.pop("TRAINYARD_ON")  # the page says it
    try:
        assert run_page("pipeline.md", work, env, seconds=900, on="kubernetes") == 11
        trials = [json.loads(line) for line in there.run("sweep", "show", "nine", "--json").splitlines()]
        assert [trial["state"] for trial in trials] == ["complete"] * 9
        folders = {path.name for path in (there.volume / "nine").iterdir()}
        assert len(folders) == 9 and "004-learning-rate=0.01,hidden-layers=2" in folders
        wait_for(lambda: len(get("http://localhost:6206/data/runs")) == 9, "a run for each trial", 60)
        best = max(trials, key=lambda trial: trial["value"])["trial"]
        assert there.kubectl("get", "deployment", f"nine-t{best}-serve", "-o", "name")
        asked = ["predict", "--port", 9200, "--model", "best", "--signature_name", "predict", "--scale", 255, "--image",
                 f"{data}/t10k-images-idx3-ubyte", "--index"]
        answers = [json.loads(there.run(*asked, index, "--json"))["outputs"]["classes"] for index in (4, 0)]
        assert answers == [[4], [7]]
    finally:
        for pid in there.processes():  # some end with others
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)
        wait_for(lambda: not there.processes(), "all servers end", 60)
    there.cluster.wait(lambda: there.kubectl("get", "deployments", "-o", "name") == "", "nothing stands beside the jobs")
