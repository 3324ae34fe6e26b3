"""ElasticDL's tutorial on this machine: its command line, an Estimator on iris, and the published clients as they are."""

import json
import os
import pathlib
import random
import re

import pytest
from conftest import PYTHONS, SOAK
from data_master import client_python
from yard import ROOT, wait_for

# What a client imports beyond TensorFlow's own packages.
PARTS = ["elasticai_api", "easydl", "packaging", "psutil", "typing_extensions.py"]


def train(yard, client, *words):
    """The tutorial's command, with images and paths of its own."""
    data, site = yard.home / "data", yard.home / "site"
    data.mkdir()
    site.mkdir()
    draw = random.Random(1)
    means = {"Iris-setosa": (5.0, 3.4, 1.5, 0.2), "Iris-versicolor": (5.9, 2.8, 4.3, 1.3), "Iris-virginica": (6.6, 3.0, 5.5, 2.0)}
    rows = [",".join(f"{draw.gauss(mean, 0.4):.1f}" for mean in of_one) + f",{name}" for name, of_one in means.items() for _ in range(50)]
    (data / "iris.data").write_text("\n".join(rows) + "\n")
    packages = next(pathlib.Path(client_python(client)).parents[1].glob("lib/python3*/site-packages"))
    for name in PARTS:
        if (packages / name).exists():
            (site / name).symlink_to(packages / name)
    python = pathlib.Path(PYTHONS["2.15"])
    env = {"TRAINYARD_ON": "local", "PYTHONPATH": str(site), "PATH": f"{python.parent}:{os.environ['PATH']}", "VIRTUAL_ENV": "",
           # The 1.0.0 client was made by a protobuf that is older than TensorFlow's.
           "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"}
    yard.run(
        "elasticdl", "train", "--image_name=elasticdl:1.0.0", "--worker_image=elasticdl:iris_estimator",
        "--ps_image=elasticdl:iris_estimator", "--job_command=python -m model_zoo.iris.dnn_estimator",
        "--master_resource_request=cpu=0.2,memory=1024Mi", "--master_resource_limit=cpu=1,memory=2048Mi", "--num_ps=1",
        "--ps_resource_request=cpu=0.2,memory=1024Mi", "--ps_resource_limit=cpu=1,memory=2048Mi", "--num_workers=1",
        "--worker_resource_request=cpu=0.3,memory=1024Mi", "--worker_resource_limit=cpu=1,memory=2048Mi",
        "--chief_resource_request=cpu=0.3,memory=1024Mi", "--chief_resource_limit=cpu=1,memory=2048Mi", "--num_evaluator=1",
        "--evaluator_resource_request=cpu=0.3,memory=1024Mi", "--evaluator_resource_limit=cpu=1,memory=2048Mi",
        "--job_name=test-iris-estimator", "--image_pull_policy=Never", "--distribution_strategy=ParameterServerStrategy",
        "--need_tf_config=true", f"--volume=host_path={data},mount_path=/data", *words, env=env, cwd=ROOT / "examples/elasticdl")
    return "test-iris-estimator"


def check_all_records(yard, job):
    """100 epochs of 150 records, and none left."""
    status = json.loads(yard.run("get", job, "-o", "json"))["status"]
    assert (status["shards"]["recordsTotal"], status["shards"]["recordsLeft"], status["shards"]["complete"]) == (15000, 0, True)
    assert status["verdict"]["cause"].startswith("all records")


@pytest.mark.skipif(not SOAK, reason="the same with a kill is enough for the gate: script/soak")
@pytest.mark.parametrize("client", ["edl-1.0", "edl-1.4"])
def test_the_tutorial_ends_by_itself_with_every_record(yard, client):
    job = train(yard, client)
    yard.run("wait", job, seconds=300)
    check_all_records(yard, job)
    for replica in ("chief-0", "worker-0"):
        assert re.search(r"Loss for final step: [\d.]+", yard.log(job, replica)), yard.log(job, replica)
    assert not os.path.exists("/data/iris.data")


def test_a_worker_that_is_killed_costs_no_record(yard):
    job = train(yard, "edl-1.4")
    wait_for(lambda: "loss = " in yard.log(job, "worker-0"), "the worker trains", 120)
    yard.kill(*yard.replica_pids(job, "worker-0"))
    yard.run("wait", job, seconds=300)
    check_all_records(yard, job)
    assert "worker/0 was killed" in yard.run("get", job, "-o", "json")
