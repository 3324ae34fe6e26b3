"""A `trainyard board` that runs, and what it shows."""

import json
import re
import urllib.request

from yard import wait_for


class Board:
    def __init__(self, yard, *words):
        self.process = yard.start("board", *words)
        line = self.process.stdout.readline()
        assert (found := re.match(r"TensorBoard at (http://127\.0\.0\.1:\d+/) · (\d+) runs? · Ctrl-C ends it\n", line)), \
            line + self.process.stderr.read()
        self.url, self.count = found[1], int(found[2])

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=30) as reply:
            return json.load(reply)

    def runs(self):
        return set(self.get("data/runs"))

    def wait_for_runs(self, *names):
        wait_for(lambda: self.runs() == set(names), f"{names} are shown", 60)

    def losses(self, run):
        """(step, value) of the scalar "loss"."""
        return [(step, value) for _, step, value in self.get(f"data/plugin/scalars/scalars?run={run}&tag=loss")]
