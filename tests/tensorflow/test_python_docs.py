"""The commands of docs/python.md, run in their order."""

import json
import os
import pathlib

import pytest
from conftest import PYTHONS, SOAK
from docs import run_page
from yard import BINARY, ROOT


@pytest.mark.parametrize("version", PYTHONS if SOAK else ["2.15"])
def test_every_command_about_python_runs(yard, version):
    work = yard.home / "work"
    work.mkdir()
    path = f"{BINARY.parent}:{pathlib.Path(PYTHONS[version]).parent}:{os.environ['PATH']}"
    env = {**yard.env, "PATH": path, "VIRTUAL_ENV": "", "PYTHONPATH": str(ROOT / "python")}
    assert run_page("python.md", work, env, seconds=180) == 5
    for job in ("train-1", "fit-1"):
        status = json.loads(yard.run("get", job, "-o", "json"))["status"]
        assert status["shards"].get("complete") and status["shards"]["recordsTotal"] == 60_000, status
        assert status["verdict"]["cause"] == "all records" and status["restarts"] == 0
    models = [line for index in (0, 1) for line in yard.log("train-1", f"worker-{index}").splitlines() if line.startswith("y = ")]
    assert len(models) == 2 and "y = 2.0 x + 1.0" in models, models
