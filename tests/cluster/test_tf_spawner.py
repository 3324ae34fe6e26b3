"""`tf-spawner` on a real cluster: what its manual says works, its known bugs do not come back, and no more is touched than was
asked for."""

import contextlib
import json
import os
import pathlib
import pty
import re
import secrets
import signal
import subprocess

import pytest

from docs import run_page
from fault_proxy import FaultProxy
from training import mnist
from yard import BINARY, ROOT, wait_for

KINDS = ("configmaps", "secrets", "services", "pods")
IMAGE = "trainyard.test/tensorflow:2.15"
# Every worker calls all others by the names that it is given, and says whom it has met.
MEETS = """
import json, os, socket, threading, time
config = json.loads(os.environ["TF_CONFIG"])
index, workers = config["task"]["index"], config["cluster"]["worker"]
server = socket.create_server(("", int(workers[index].split(":")[1])))

def call(address):
    host, port = address.split(":")
    while True:
        try:
            with socket.create_connection((host, int(port)), timeout=1) as peer:
                return peer.makefile().readline()
        except OSError:
            time.sleep(0.05)

def answer():
    for _ in workers[1:]:
        peer, _ = server.accept()
        peer.sendall(f"{os.environ['GREETING']} {os.environ['WORKER_NUMBER']} of {os.environ['TOT_WORKERS']}".encode())
        peer.close()

answering = threading.Thread(target=answer)
answering.start()
for other, address in enumerate(workers):
    if other != index:
        print("met", call(address))
answering.join()
"""


def pod(**more):
    container = {"name": "tensorflow", "image": IMAGE, "env": [{"name": "GREETING", "value": "nobody"}]}
    return {"kind": "Pod", "spec": {"shareProcessNamespace": True, "containers": [container], **more}}


# No node takes it, so that it is there at once and gone at once.
PARKED = pod(nodeSelector={"nowhere": "at-all"})


class Spawner:
    """`tf-spawner` in a folder and a namespace of its own."""

    def __init__(self, cluster, home, namespace):
        self.cluster, self.home, self.namespace = cluster, home, namespace
        (home / "tf-spawner").symlink_to(BINARY)
        self.write("parked.yaml", json.dumps(PARKED))
        self.write("train.py", "print('trained')\n")
        config = home / "kubeconfig"
        config.write_text(cluster.kubeconfig.read_text())
        cluster.kubectl("--kubeconfig", config, "config", "set-context", "--current", f"--namespace={namespace}")
        self.env = {**os.environ, "KUBECONFIG": str(config)}

    def write(self, name, text):
        (self.home / name).write_text(text)
        return name

    def start(self, *words, **options):
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
        return subprocess.Popen(["./tf-spawner", *map(str, words)], cwd=self.home, env=self.env, **options)

    def run(self, *words, status=0, **options):
        process = self.start(*words, **options)
        out, self.err = process.communicate(timeout=150)
        assert process.returncode == status, f"exit {process.returncode}\n{out}\n{self.err}"
        return out

    def refused(self, *words):
        """The one line; nothing is changed by it."""
        before = self.objects()
        assert self.run(*words, status=2) == ""
        assert self.objects() == before
        assert self.err.count("\n") == 1, self.err
        return self.err

    def list(self, kind, namespace=None):
        return self.cluster.api.get(f"/api/v1/namespaces/{namespace or self.namespace}/{kind}")["items"]

    def objects(self, namespace=None):
        """Version by kind and name of what was made here; pods change by themselves and have their UID."""
        return {f"{kind}/{o['metadata']['name']}": o["metadata"]["uid" if kind == "pods" else "resourceVersion"]
                for kind in KINDS for o in self.list(kind, namespace) if o["metadata"]["name"] != "kube-root-ca.crt"}

    def pod(self, name):
        return self.cluster.api.get(f"/api/v1/namespaces/{self.namespace}/pods/{name}")

    def log(self, name):
        """Of a pod that has succeeded."""
        def phase():
            found = self.pod(name)["status"]["phase"]
            assert found != "Failed", self.cluster.kubectl("logs", "-n", self.namespace, name)
            return found
        wait_for(lambda: phase() == "Succeeded", f"{name} has succeeded", seconds=60)
        return self.cluster.kubectl("logs", "-n", self.namespace, name)


@pytest.fixture
def make_namespace(node):
    """With what pods need in it; gone in the end."""
    made = []

    def make(**labels):
        name = f"spawner-{secrets.token_hex(3)}"
        node.api.post("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
        made.append(name)
        node.wait(lambda: node.api.get(f"/api/v1/namespaces/{name}/serviceaccounts/default"), "a service account")
        return name
    yield make
    for name in made:
        node.api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def spawner(node, tmp_path, make_namespace):
    return Spawner(node, tmp_path, make_namespace())


def expected(*tags, workers=2, secret=False):
    made = set()
    for tag in tags:
        before = "" if tag == "tf-spawner" else f"{tag}-"
        made |= {f"configmaps/{before}script"} | ({f"secrets/{before}script-env"} if secret else set())
        made |= {f"{kind}/{before}worker{i}" for kind in ("services", "pods") for i in range(workers)}
    return made


def test_two_tags_train_side_by_side_to_the_end_and_go_one_by_one(spawner):
    spawner.write("train.py", MEETS)
    spawner.write("pod.yaml", json.dumps(pod()))
    spawner.write("a.env", "GREETING=a=1\n")
    spawner.write("b.env", "# of the other\n\nGREETING=b\nTOT_WORKERS=99\n")
    assert spawner.run("-e", "a.env", "train.py") == "generated with label training_attempt=tf-spawner\n"
    assert spawner.run("-w", 3, "-p", 2345, "-t", "x", "-e", "b.env", "train.py") == "generated with label training_attempt=x\n"
    assert "trainyard logs -f x --on kubernetes\n" in spawner.err
    assert set(spawner.objects()) == expected("tf-spawner", secret=True) | expected("x", workers=3, secret=True)
    assert spawner.log("worker0") == "met a=1 1 of 2\n"
    assert spawner.log("worker1") == "met a=1 0 of 2\n"
    assert spawner.log("x-worker1") == "met b 0 of 99\nmet b 2 of 99\n"

    before = spawner.objects()
    out = spawner.run("-d", "x", "--yes")
    assert out.splitlines() == [*(f"removing 'x-worker{i}' service" for i in range(3)), "removing 'x-script' config map",
                                "removing 'x-script-env' secret", *(f"removing 'x-worker{i}' pod" for i in range(3))]
    assert spawner.objects() == {key: value for key, value in before.items() if "/x-" not in key}
    spawner.run("-d", "-y")
    assert spawner.objects() == {}


@pytest.mark.skipif(os.environ.get("SOAK") != "1", reason="half a minute more; the test before it has the same without TensorFlow")
def test_a_collective_of_tensorflow_trains(spawner):
    template = pod(volumes=[{"name": "data", "hostPath": {"path": mnist()}}])
    template["spec"]["containers"][0] |= {"volumeMounts": [{"name": "data", "mountPath": "/data"}], "workingDir": "/tmp"}
    spawner.write("pod.yaml", json.dumps(template))
    spawner.write("env", "MNIST_DATA=/data\n")
    spawner.write("command.sh", "python /script/training-script.py --epochs 1 --steps-per-epoch 100\n")
    spawner.run("-e", "env", "-c", "command.sh", ROOT / "examples/mnist.py")
    for worker in ("worker0", "worker1"):
        assert float(spawner.log(worker).split("test accuracy: ")[1].split()[0]) >= 0.8


def test_the_built_in_template_runs_under_pod_security_restricted(node, tmp_path, make_namespace):
    spawner = Spawner(node, tmp_path, make_namespace(**{"pod-security.kubernetes.io/enforce": "restricted"}))
    spawner.write("train.py", "import os, tempfile; print(os.getuid(), os.getcwd(), tempfile.TemporaryFile().write(b'x'))")
    spawner.run("-w", 1, "-i", IMAGE, "-e", spawner.write("e", "A=b\n"), "train.py")
    assert spawner.log("worker0") == "1000 /tmp 1\n"
    spawner.run("-d", "-y")
    spawner.run("-w", 1, "train.py")
    assert spawner.pod("worker0")["spec"]["containers"][0]["image"] == "tensorflow/tensorflow:2.15.0"


def test_another_namespace_than_that_of_the_context(spawner, make_namespace):
    other = make_namespace()
    spawner.run("-n", other, "--pod-file", "parked.yaml", "train.py")
    assert (spawner.objects(), set(spawner.objects(other))) == ({}, expected("tf-spawner"))
    assert f"tf-spawner -d -t tf-spawner -n {other}\n" in spawner.err
    spawner.run("-n", other, "-d", "-y")
    assert spawner.objects(other) == {}


def test_a_command_is_run_as_it_is_written(spawner):
    command = spawner.write("command.sh", "# a comment first\nif true; then\n  echo prepared\nfi\nfalse || echo went on\n"
                                          "python \\\n  /script/training-script.py\nfalse\necho not reached\n")
    spawner.write("pod.yaml", json.dumps(pod(restartPolicy="Never")))
    spawner.run("-w", 1, "-c", command, "train.py")
    wait_for(lambda: spawner.pod("worker0")["status"]["phase"] == "Failed", "the command has failed")
    assert spawner.cluster.kubectl("logs", "-n", spawner.namespace, "worker0") == "prepared\nwent on\ntrained\n"


def test_a_running_job_is_gone_when_the_deletion_returns(spawner):
    spawner.write("train.py", "import time\nprint('up', flush=True)\ntime.sleep(1000)\n")
    spawner.write("pod.yaml", json.dumps(pod()))
    spawner.run("train.py")
    wait_for(lambda: spawner.pod("worker1")["status"]["phase"] == "Running", "it runs")
    spawner.run("-d", "-y")
    assert spawner.objects() == {}
    spawner.run("--pod-file", "parked.yaml", "train.py")


def test_a_tag_by_chance_names_services(spawner):
    said = spawner.run("-r", "-t", "ignored", "--pod-file", "parked.yaml", "train.py")
    tag = re.fullmatch(r"generated with label training_attempt=([a-f][0-9a-f]{7})\n", said)[1]
    assert set(spawner.objects()) == expected(tag)
    spawner.run("-d", "-t", tag, "--yes")
    assert spawner.objects() == {}


def test_a_tag_in_use_is_refused_with_the_command_that_frees_it(spawner):
    spawner.run("--pod-file", "parked.yaml", "train.py")
    line = spawner.refused("train.py")
    assert "a job with label training_attempt=tf-spawner exists already" in line and "tf-spawner -d -t tf-spawner" in line


def test_nothing_to_delete(spawner):
    spawner.run("--pod-file", "parked.yaml", "train.py")
    assert f"nothing in namespace {spawner.namespace} has the label training_attempt=train.py" in spawner.refused(
        "-d", "--yes", "train.py")


@pytest.mark.parametrize("answer, status", [("y", 0), ("n", 2), ("", 2), ("yes", 2)])
def test_a_deletion_asks_first(spawner, answer, status):
    spawner.run("-w", 1, "--pod-file", "parked.yaml", "train.py")
    before = spawner.objects()
    keyboard, terminal = pty.openpty()
    with contextlib.ExitStack() as open_ones:
        open_ones.callback(os.close, keyboard)
        open_ones.callback(os.close, terminal)
        os.write(keyboard, answer.encode() + b"\n")
        out = spawner.run("-d", stdin=terminal, status=status)
    assert out.startswith("This will delete the resources tagged with: tf-spawner. Confirm with y/[n]")
    assert spawner.objects() == ({} if status == 0 else before)


def test_a_refused_pod_takes_back_what_was_made(spawner):
    space = f"/api/v1/namespaces/{spawner.namespace}"
    spawner.cluster.api.post(f"{space}/resourcequotas", {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}})
    spawner.cluster.wait(lambda: spawner.cluster.api.get(f"{space}/resourcequotas/few")["status"].get("hard"), "a quota")
    spawner.run("-w", 3, "-e", spawner.write("e", "A=hunter2\n"), "--pod-file", "parked.yaml", "train.py", status=2)
    assert spawner.err.count("\n") == 1 and "exceeded quota: few" in spawner.err and "is taken back" in spawner.err
    assert spawner.objects() == {}


def test_a_template_that_the_server_refuses_leaves_nothing(spawner):
    bad = spawner.write("bad.yaml", json.dumps(pod(volumes=[{"name": "Not A Name", "emptyDir": {}}])))
    line = spawner.refused("-e", spawner.write("e", "A=hunter2\n"), "--pod-file", bad, "train.py")
    assert 'pod: POST' in line and "Not A Name" in line and "hunter2" not in line


@pytest.mark.parametrize("fault, status", [("lose", 0), ("429", 0), ("500 before", 69), ("500 stored", 69), ("409", 2)])
def test_a_pod_without_its_answer_is_known_again(spawner, tmp_path, fault, status):
    with FaultProxy(spawner.cluster.server, spawner.cluster.dir / "pki", "admin") as proxy:
        spawner.env["KUBECONFIG"] = str(proxy.kubeconfig(tmp_path / "proxied"))
        proxy.fault("POST pods/worker1#1", fault)
        spawner.run("-n", spawner.namespace, "--pod-file", "parked.yaml", "train.py", status=status)
        assert set(spawner.objects()) == (expected("tf-spawner") if status == 0 else set())
        assert not proxy.violations


def test_a_name_that_a_stranger_has_is_left_alone(spawner):
    spawner.cluster.kubectl("-n", spawner.namespace, "create", "service", "clusterip", "worker1", "--tcp=80")
    assert "already exists" in spawner.refused("--pod-file", "parked.yaml", "train.py")


def test_ctrl_c_takes_back_what_was_made(spawner):
    process = spawner.start("-w", 300, "--pod-file", "parked.yaml", "train.py")
    wait_for(lambda: len(spawner.list("services")) > 5, "it is under way")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=150)
    assert (process.returncode, out) == (130, "")
    assert err == "trainyard: interrupted; what had been made is taken back\n"
    assert spawner.objects() == {}


def test_what_an_env_file_says_is_in_the_secret_alone(spawner):
    env = spawner.write("e", "AWS_SECRET_ACCESS_KEY=hunter2\n")
    said = spawner.run("-t", "x", "-e", env, "--pod-file", "parked.yaml", "train.py") + spawner.err
    seen = {kind: json.dumps(spawner.list(kind)) for kind in KINDS}
    assert "hunter2" not in said + seen["pods"] + seen["configmaps"] + seen["services"]
    assert spawner.list("secrets")[0]["data"] == {"AWS_SECRET_ACCESS_KEY": "aHVudGVyMg=="}
    # However the script is deleted, the credentials go with it.
    spawner.cluster.kubectl("-n", spawner.namespace, "delete", "configmap", "-l", "training_attempt=x")
    wait_for(lambda: not spawner.list("secrets"), "the secret is gone", seconds=30)


def test_a_namespace_that_does_not_exist(spawner):
    assert 'namespaces "nowhere" not found' in spawner.refused("-n", "nowhere", "train.py")


def test_no_right_to_make_pods(spawner):
    spawner.env["KUBECONFIG"] = str(spawner.cluster.as_user("mallory"))
    spawner.run("-n", spawner.namespace, "train.py", status=2)
    assert spawner.err.count("\n") == 1 and 'User "mallory" cannot list' in spawner.err


def test_who_may_not_see_secrets_can_do_without(spawner):
    make = ("-n", spawner.namespace, "create")
    spawner.cluster.kubectl(*make, "role", "some", "--resource=configmaps,services,pods", "--verb=get,list,create,delete")
    spawner.cluster.kubectl(*make, "rolebinding", "some", "--role=some", "--user=peter")
    spawner.env["KUBECONFIG"] = str(spawner.cluster.as_user("peter"))
    spawner.run("-n", spawner.namespace, "--pod-file", "parked.yaml", "train.py")
    spawner.run("-n", spawner.namespace, "-d", "-y")
    assert spawner.objects() == {}


def test_json_for_machines(spawner):
    assert json.loads(spawner.run("--json", "-w", 1, "--pod-file", "parked.yaml", "train.py")) == {
        "tag": "tf-spawner", "namespace": spawner.namespace, "workers": 1}
    assert json.loads(spawner.run("--json", "-d", "-y")) == {
        "tag": "tf-spawner", "namespace": spawner.namespace, "deleted": True}


def test_every_command_of_its_manual_runs(spawner):
    for name in ("examples", "pod-gpu.yaml"):
        (spawner.home / name).symlink_to(ROOT / name)
    programs = pathlib.Path(spawner.cluster.state.program("kubectl")).parent
    assert run_page("tf-spawner.md", spawner.home, {**spawner.env, "PATH": f"{programs}:{os.environ['PATH']}"}) >= 7
    assert spawner.objects() == {}
