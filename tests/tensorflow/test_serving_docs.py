"""The commands of docs/serving.md, run in their order."""

import os
import pathlib
import signal

from docs import run_page
from serving import PYTHONS
from yard import BINARY, wait_for


def test_every_command_of_the_page_on_serving_runs(yard):
    work = yard.home / "work"
    work.mkdir()
    env = {**yard.env, "PATH": f"{BINARY.parent}:{pathlib.Path(PYTHONS['2.15']).parent}:{os.environ['PATH']}"}
    try:
        assert run_page("serving.md", work, env) >= 9
    finally:
        for pid in yard.processes():
            yard.kill(pid, sig=signal.SIGTERM)  # a shell without job control starts it with SIGINT ignored
        wait_for(lambda: not yard.processes(), "the server ends", 30)
    said = (work / "serve.log").read_text()
    assert "test version 2 is served" in said and "stopping" in said, said
