"""The commands of docs/guide.md, run in their order."""

import os
import pathlib
import re
import subprocess

from yard import BINARY, ROOT

BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.M | re.S)


def test_every_command_of_the_guide_runs(yard):
    work = yard.home / "work"
    work.mkdir()
    text = (ROOT / "docs/guide.md").read_text()
    blocks = [(kind, dict(re.findall(r"(\w+)=(\S+)", options)), body) for kind, options, body in BLOCK.findall(text)]
    for _, options, body in blocks:
        if "file" in options:
            (work / options["file"]).write_text(body)
    env = {**yard.env, "PATH": f"{BINARY.parent}:{os.environ['PATH']}"}
    ran = 0
    for kind, options, body in blocks:
        if kind != "sh":
            continue
        for command in body.splitlines():
            done = subprocess.run(["bash", "-c", command], cwd=work, env=env, capture_output=True, text=True, timeout=60)
            assert done.returncode == int(options.get("exit", 0)), f"{command}\n{done.stdout}{done.stderr}"
            ran += 1
    assert ran >= 15


def test_the_readme_names_no_command_or_flag_that_does_not_exist():
    text = "\n".join(path.read_text() for path in [ROOT / "README.md", *pathlib.Path(ROOT / "docs").glob("*.md")])
    help_of = {}
    for command in set(re.findall(r"^\s*(?:\$ )?trainyard (\w+)", text, re.M)) | set(re.findall(r"`trainyard (\w+)", text)):
        done = subprocess.run([BINARY, command, "--help"], capture_output=True, text=True)
        assert done.returncode == 0, command
        help_of[command] = done.stdout
    for line in re.findall(r"trainyard (run .*)", text):
        for flag in re.findall(r"(--[a-z-]+)", line.split(" -- ")[0]):
            assert flag in help_of["run"], (line, flag)
