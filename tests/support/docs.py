"""Pages of docs/ whose commands are run: blocks of `sh`, line by line and in their order, with the files that other blocks name.

    ```sh exit=2             ```python file=train.py             ```sh on=kubernetes
"""

import re
import subprocess

from yard import ROOT

BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.M | re.S)


def run_page(name, folder, env, seconds=60, on=None):
    """Runs the commands of a page in a folder, each within so many seconds, and says how many there were. Those of blocks that
    name a place are run only there."""
    text = (ROOT / "docs" / name).read_text()
    blocks = [(kind, dict(re.findall(r"(\w+)=(\S+)", options)), body) for kind, options, body in BLOCK.findall(text)]
    for _, options, body in blocks:
        if "file" in options:
            (folder / options["file"]).write_text(body)
    ran = 0
    for kind, options, body in blocks:
        if kind != "sh" or options.get("on") != on:
            continue
        for command in body.splitlines():
            done = subprocess.run(["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True, timeout=seconds)
            assert done.returncode == int(options.get("exit", 0)), f"{command}\n{done.stdout}{done.stderr}"
            ran += 1
    return ran
