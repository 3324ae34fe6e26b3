"""The commands of docs/guide.md and docs/sweeps.md, run in their order."""

import os
import pathlib
import re
import subprocess

from docs import run_page
from yard import BINARY, ROOT

def test_every_command_of_the_guide_runs(yard):
    work = yard.home / "work"
    work.mkdir()
    assert run_page("guide.md", work, {**yard.env, "PATH": f"{BINARY.parent}:{os.environ['PATH']}"}) >= 15


def test_every_command_about_sweeps_runs(yard):
    work = yard.home / "work"
    work.mkdir()
    assert run_page("sweeps.md", work, {**yard.env, "PATH": f"{BINARY.parent}:{os.environ['PATH']}"}) >= 18


def test_the_readme_names_no_command_or_flag_that_does_not_exist():
    text = "\n".join(path.read_text() for path in [ROOT / "README.md", *pathlib.Path(ROOT / "docs").glob("*.md")])
    help_of = {}
    for command in set(re.findall(r"^\s*(?:\$ )?trainyard (\w[\w-]*)", text, re.M)) | set(re.findall(r"`trainyard (\w[\w-]*)", text)):
        done = subprocess.run([BINARY, command, "--help"], capture_output=True, text=True)
        assert done.returncode == 0, command
        help_of[command] = done.stdout
    for line in re.findall(r"trainyard (run .*)", text):
        for flag in re.findall(r"(--[a-z-]+)", line.split(" -- ")[0]):
            assert flag in help_of["run"], (line, flag)
