"""ElasticDL's tutorial on this machine: its command line, an Estimator on iris, and the published clients as they are."""

import json
import os
import pathlib
import re
import shutil

import pytest
from conftest import PYTHONS, SOAK
from iris_tutorial import JOB, OLD_PROTOBUF, client_parts, command, write_data
from yard import ROOT, wait_for


def installed(yard, client):
    """A Python with TensorFlow and a published client, as an environment, and where the client's packages lie."""
    site = yard.home / "site"
    site.mkdir()
    for part in client_parts(client):
        (site / part.name).symlink_to(part)
    python = pathlib.Path(PYTHONS["2.15"])
    return {"TRAINYARD_ON": "local", "PYTHONPATH": str(site), "PATH": f"{python.parent}:{os.environ['PATH']}", "VIRTUAL_ENV": "",
            OLD_PROTOBUF[0]: OLD_PROTOBUF[1]}, site


def train(yard, client, *words):
    """The tutorial's command, with images and paths of its own."""
    data = yard.home / "data"
    data.mkdir()
    write_data(data)
    env, _ = installed(yard, client)
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


IMPORTS = """
import sitecustomize
from elasticai_api.common.data_shard_service import build_data_shard_service
from elasticai_api.tensorflow.hooks import ElasticDataShardReportHook
import elasticai_api, elasticai_api.tensorflow.hooks as hooks


class Service:
    reports = 0

    def report_batch_done(self):
        self.reports += 1
        raise RuntimeError("the master is away")


service = Service()
ElasticDataShardReportHook(service).after_run(None, None)
print("hook", service.reports, getattr(hooks, "OWN", ""), hasattr(hooks, "ReportModelMetricHook"), elasticai_api.__file__)
print("their sitecustomize", sitecustomize.THEIRS)
"""


@pytest.mark.parametrize("client, has_module", [("edl-1.0", False), ("edl-1.4", True)])
def test_the_tutorials_hook_is_there_whichever_client_is_installed(yard, client, has_module):
    """1.0.0 has no such module, 1.4.2 has it without the hook: a job's environment adds it, and leaves the rest as it was installed."""
    env, site = installed(yard, client)
    (site / "sitecustomize.py").write_text("THEIRS = True\n")
    (yard.home / "tutorial.py").write_text(IMPORTS)
    yard.run("elasticdl", "train", "--job_name=edl", "--job_command=python -m tutorial", "--num_workers=1", "--need_task_manager=false", env=env)
    yard.run("wait", "edl", seconds=120)
    log = yard.log("edl", "worker-0")
    assert f"hook 1  {has_module} {site}/elasticai_api/" in log, log
    assert "their sitecustomize True" in log


def test_a_client_that_has_the_hook_keeps_its_own(yard):
    env, site = installed(yard, "edl-1.0")
    client = site / "elasticai_api"
    published = client.resolve()
    client.unlink()
    shutil.copytree(published, client)
    (client / "tensorflow/hooks.py").write_text("OWN = 'theirs'\n\n\nclass ElasticDataShardReportHook:\n    def __init__(self, service):\n"
                                                "        self.service = service\n\n    def after_run(self, *_):\n        self.service.reports = 7\n")
    (site / "sitecustomize.py").write_text("THEIRS = True\n")
    yard.script(IMPORTS)
    yard.run("run", yard.home / "train.py", "--elastic", "1:1", "-w", "1", "--python", PYTHONS["2.15"], "--detach", env=env)
    wait_for(lambda: "hook 7 theirs" in yard.log("train-1", "worker-0"), "it says so", 120)
