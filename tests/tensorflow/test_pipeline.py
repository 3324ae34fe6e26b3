"""The whole pipeline, as docs/pipeline.md tells it."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess

import pytest

from conftest import PYTHONS, SOAK
from docs import run_page
from yard import BINARY, ROOT, wait_for


@pytest.mark.skipif(not SOAK, reason="eleven trainings: script/soak")
def test_every_command_of_the_page_on_the_pipeline_runs(yard):
    work = yard.home / "work"
    work.mkdir()
    shutil.copy(ROOT / "examples/mnist.py", work)
    data = subprocess.run([ROOT / "script/mnist-data"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    env = {**yard.env, "MNIST_DATA": data, "PATH": f"{BINARY.parent}:{pathlib.Path(PYTHONS['2.15']).parent}:{os.environ['PATH']}"}
    try:
        assert run_page("pipeline.md", work, env, seconds=900) == 9
        asked = ["predict", "--port", 9200, "--model", "best", "--signature_name", "predict", "--scale", 255, "--image",
                 f"{data}/t10k-images-idx3-ubyte", "--index"]
        answers = [yard.run(*asked, index, "--json") for index in (4, 0)]  # a 4 and a 7
        assert ["4" in answers[0], "7" in answers[1]] == [True, True], answers
    finally:
        for pid in yard.processes():  # some end with others
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)
        wait_for(lambda: not yard.processes(), "all servers end", 30)
