"""ElasticDL's tutorial on this machine: its command line, an Estimator on iris, and the published clients as they are."""

import json
import os
import pathlib
import re

import pytest
from conftest import PYTHONS, SOAK
from iris_tutorial import JOB, OLD_PROTOBUF, client_parts, command, write_data
from yard import ROOT, wait_for


def train(yard, client, *words):
    """The tutorial's command, with images and paths of its own."""
    data, site = yard.home / "data", yard.home / "site"
    data.mkdir()
    site.mkdir()
    write_data(data)
    for part in client_parts(client):
        (site / part.name).symlink_to(part)
    python = pathlib.Path(PYTHONS["2.15"])
    env = {"TRAINYARD_ON": "local", "PYTHONPATH": str(site), "PATH": f"{python.parent}:{os.environ['PATH']}", "VIRTUAL_ENV": "",
           OLD_PROTOBUF[0]: OLD_PROTOBUF[1]}
    yard.run("elasticdl", *command(data), *words, env=env, cwd=ROOT / "examples/elasticdl")
    return JOB


def check_all_records(yard, job):
    """100 epochs of 150 records, and none left."""
    status = json.loads(yard.run("get", job, "-o", "json"))["status"]
    assert (status["shards"]["recordsTotal"], status["shards"]["recordsLeft"], status["shards"]["complete"]) == (15000, 0, True)
    assert status["verdict"]["cause"].startswith("all records")


def is_on_its_way(yard, job):
    """The worker trains; or the chief does alone, since the worker found no model yet and looks for one every 30 seconds."""
    status = json.loads(yard.run("get", job, "-o", "json"))["status"]
    return "loss = " in yard.log(job, "worker-0") or 0 < status.get("shards", {}).get("recordsLeft", 0) < 10000


@pytest.mark.skipif(not SOAK, reason="the same with a kill is enough for the gate: script/soak")
@pytest.mark.parametrize("client", ["edl-1.0", "edl-1.4"])
def test_the_tutorial_ends_by_itself_with_every_record(yard, client):
    job = train(yard, client)
    yard.run("wait", job, seconds=300)
    check_all_records(yard, job)
    trained = [replica for replica in ("chief-0", "worker-0") if "loss = " in yard.log(job, replica)]
    assert "chief-0" in trained  # which may be done before the worker looks for the model again, every 30 seconds
    for replica in trained:
        assert re.search(r"Loss for final step: [\d.]+", yard.log(job, replica)), yard.log(job, replica)
    assert not os.path.exists("/data/iris.data")


def test_a_worker_that_is_killed_costs_no_record(yard):
    job = train(yard, "edl-1.4")
    wait_for(lambda: is_on_its_way(yard, job), "it trains", 120)
    yard.kill(*yard.replica_pids(job, "worker-0"))
    yard.run("wait", job, seconds=300)
    check_all_records(yard, job)
    assert "worker/0 was killed" in yard.run("get", job, "-o", "json")
