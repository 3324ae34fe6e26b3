"""ElasticDL's tutorial on a cluster, step by step: its rights, its images, its command, its pods; with real TensorFlow."""

import json
import os
import pathlib
import re
import signal

import pytest

from cluster import node as machine
from iris_tutorial import JOB, OLD_PROTOBUF, client_parts, command, write_data
from lab import images
from lab.components import write_json
from there import There
from yard import ROOT, write_image

pytestmark = pytest.mark.trains

MASTER, WORKER = "docker.io/library/elasticdl:1.0.0", "docker.io/library/elasticdl:iris_estimator"
PODS = {f"elasticdl-{JOB}-master", *(f"{JOB}-edljob-{replica}-0" for replica in ("chief", "evaluator", "ps", "worker"))}


def add(layer, path, name):
    if path.is_dir():
        layer.folder(name)
        for each in sorted(path.iterdir()):
            if each.name != "__pycache__":
                add(layer, each, f"{name}/{each.name}")
    else:
        layer.file(name, path.read_bytes(), path.stat().st_mode & 0o777)


def write_worker(target, python, client):
    """As the tutorial's Dockerfile: TensorFlow, the client, and the model zoo in the working directory."""
    layer = images.Layer()
    images.accounts(layer)
    layer.folder("usr", "opt", "opt/client")
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        if pathlib.Path("/", name).is_symlink():
            layer.link(name, f"usr/{name}")
    layer.file("etc/ld.so.cache", pathlib.Path("/etc/ld.so.cache").read_bytes())
    for part in client_parts(client):
        add(layer, part, f"opt/client/{part.name}")
    add(layer, ROOT / "examples/elasticdl/model_zoo", "model_zoo")
    images.archive(target, WORKER, [layer.done()], {
        "Env": [f"PATH={pathlib.Path(python).parent}:{images.PATH}", "PYTHONPATH=/opt/client", "PYTHONUNBUFFERED=0",
                "=".join(OLD_PROTOBUF)], "WorkingDir": "/"})


@pytest.fixture(params=["edl-1.4", pytest.param("edl-1.0", marks=pytest.mark.skipif(
    os.environ.get("SOAK") != "1", reason="one client is enough for the gate: script/soak"))])
def tutorial(node, tmp_path, request):
    """Somebody at the tutorial's last step: the images are there, and so are the rights."""
    folder, table, python = node.dir / "images", node.dir / "image-mounts.json", machine.python_of("2.15")
    write_json(table, {**json.loads(table.read_text()), WORKER: images.shared_folders(python)})
    write_worker(folder / "6-iris.tar", python, request.param)
    write_image(folder / "7-elasticdl.tar", "--tag", MASTER)
    for name in ("6-iris.tar", "7-elasticdl.tar"):
        node.load_image(folder / name)
    yard = There(tmp_path / "home", node, "default", security=None)
    yard.client = request.param
    yard.kubectl("apply", "-f", ROOT / "deploy/elasticdl-rbac.yaml")
    yield yard
    yard.kubectl("delete", "--ignore-not-found", "--wait=false", "pod", f"elasticdl-{JOB}-master")
    yard.kubectl("delete", "-f", ROOT / "deploy/elasticdl-rbac.yaml")
    yard.close()


def submit(tutorial, folder):
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    write_data(folder)
    return tutorial.run("elasticdl", *command(folder), env={"TRAINYARD_ON": ""})


def pods(tutorial):
    return {pod["metadata"]["name"]: pod for pod in tutorial.cluster.pods("default", f"elasticdl-job-name={JOB}")}


def log(tutorial, replica):
    return tutorial.kubectl("logs", f"{JOB}-edljob-{replica}-0")


def is_on_its_way(tutorial):
    """The worker trains; or the chief does alone, since the worker found no model yet and looks for one every 30 seconds. Not for long: on a
    busy machine much of the data is done by the time that all pods run, and a worker that is deleted when all is done is not replaced."""
    return "loss = " in log(tutorial, "worker") or 0 < records_left(tutorial) < 15000


def records_left(tutorial):
    return json.loads(tutorial.run("get", JOB, "-o", "json"))["status"].get("shards", {}).get("recordsLeft", 0)


def kill_master(tutorial):
    """The process that is the master's container, from outside of it."""
    [pid] = [int(entry.name) for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit()
             and (words := read_words(entry)) and words[0].endswith(b"trainyard") and words[1:3] == [b"master", JOB.encode()]]
    os.kill(pid, signal.SIGKILL)


def read_words(process):
    try:
        return (process / "cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return []


def master_restarts(tutorial):
    [container] = pods(tutorial)[f"elasticdl-{JOB}-master"]["status"]["containerStatuses"]
    return container["restartCount"] if container["ready"] else -1


def test_the_tutorial_ends_by_itself_though_a_worker_is_deleted_and_the_master_killed(tutorial, tmp_path):
    assert f"{JOB} submitted" in submit(tutorial, tmp_path / "data")
    wait = tutorial.cluster.wait
    wait(lambda: {name for name, pod in pods(tutorial).items() if pod["status"]["phase"] == "Running"} == PODS, "its pods run", 120)
    assert "is a job" in tutorial.refused("elasticdl", *command(tmp_path / "data"), env={"TRAINYARD_ON": ""})
    wait(lambda: is_on_its_way(tutorial), "it trains", 120)
    first = pods(tutorial)[f"{JOB}-edljob-worker-0"]["metadata"]["uid"]
    # Python is the first process of its container and does not end by SIGTERM: with its 30 seconds the others might train all the data meanwhile.
    tutorial.kubectl("delete", "pod", f"{JOB}-edljob-worker-0", "--wait=false", "--grace-period=1")
    left = records_left(tutorial)
    wait(lambda: pods(tutorial).get(f"{JOB}-edljob-worker-0", {"metadata": {"uid": first}})["metadata"]["uid"] != first,
         f"another worker; {left} records were left", 60)
    chief = pods(tutorial)[f"{JOB}-edljob-chief-0"]["metadata"]["uid"]
    kill_master(tutorial)
    wait(lambda: master_restarts(tutorial) == 1, "the master is back", 60)
    during = json.loads(tutorial.run("audit", JOB, "--json"))
    assert [each["name"] for each in during["sets"]] == ["iris_training_data"]
    tutorial.run("wait", JOB, seconds=300)
    status = json.loads(tutorial.run("get", JOB, "-o", "json"))["status"]
    assert status["verdict"]["cause"].startswith("all records"), status["verdict"]
    assert status["shards"]["recordsTotal"] == 15000 and status["shards"]["recordsLeft"] == 0
    if tutorial.client == "edl-1.0":  # to which a master that dies is the end of the data: its chief is replaced too, and may find none left
        assert "Loss for final step: " in log(tutorial, "chief")
    else:
        assert pods(tutorial)[f"{JOB}-edljob-chief-0"]["metadata"]["uid"] == chief, "nobody else was restarted"
        assert re.search(r"Loss for final step: [\d.]+", log(tutorial, "chief"))
    wait(lambda: pods(tutorial)[f"elasticdl-{JOB}-master"]["status"]["phase"] == "Succeeded", "the master has ended", 60)
    [audit] = json.loads(tutorial.run("audit", JOB, "--json"))["sets"]
    assert audit["complete"] and len(audit["epochs"]) == 100
    assert all(epoch["never"] == 0 and epoch["once"] + epoch["more"] + epoch["assumed"] == 150 for epoch in audit["epochs"]), audit
    # As in ElasticDL, all goes with the master.
    tutorial.kubectl("delete", "pod", f"elasticdl-{JOB}-master")
    wait(lambda: tutorial.kubectl("get", "pods,services,configmaps", "-l", f"elasticdl-job-name={JOB}", "-o", "name") == "", "nothing is left", 60)
