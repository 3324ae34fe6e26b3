"""The judge of elastic training: a model that counts how often it was trained on each record, under kills of everything."""

import random
import re

import pytest

import tally
from conftest import PYTHONS, SOAK
from yard import ROOT, proc_file, wait_for

EVERY_TIME = "every record was trained 3 times"


def master_of(yard):
    for pid in yard.processes():
        if proc_file(pid, "cmdline").split(b"\0")[0].endswith(b"trainyard-master"):
            return pid
    return None


class Storm:
    """Kills workers, the master and the supervisor of a job, and resumes it, until it has ended."""

    def __init__(self, yard, version, seed):
        self.yard, self.dice = yard, random.Random(seed)
        yard.env["PYTHONPATH"] = str(ROOT / "python")
        self.flags = ["--python", PYTHONS[version], "--name", "count", "--elastic", "1:4", "-w", 3]
        self.path = yard.home / "out"
        self.run = None
        self.killed = []

    def start(self, *words):
        with self.path.open("a") as out:
            self.run = self.yard.start(*words, stdout=out, stderr=out)

    def start_anew(self):
        args = ["--records", 2000, "--seconds-per-batch", 0.03]
        self.start("run", *self.flags, ROOT / "examples/elastic_count.py", "--", *args)

    def rounds(self):
        """Rounds that the workers have said to be committed."""
        logs = self.yard.dir("count") / "logs"
        return sum(len(re.findall(r"^\d+/6000$", log.read_text(), re.M)) for log in logs.glob("worker-*.log"))

    def ended(self):
        return self.run.poll() is not None

    def wait_for_rounds(self, more):
        have = self.rounds()
        wait_for(lambda: self.ended() or self.rounds() >= have + more, "the workers go on", seconds=180)
        return not self.ended()

    def strike(self, target):
        if target == "supervisor":
            self.run.kill()
            self.run.wait()
            wait_for(lambda: not self.yard.processes(), "no process left", seconds=20)
            self.start("resume", "count")
        elif target == "master":
            wait_for(lambda: self.ended() or master_of(self.yard), "a master")
            if pid := master_of(self.yard):
                self.yard.kill(pid)
        else:
            for pid in self.yard.replica_pids("count", target):
                self.yard.kill(pid)
        self.killed.append(target)


@pytest.mark.parametrize("seed", range(10 if SOAK else 1))
def test_under_a_storm_of_kills_every_record_is_in_the_models_as_often_as_there_are_epochs(yard, version, seed):
    storm = Storm(yard, version, seed)
    passed = False
    try:
        weather(storm)
        passed = True
    finally:
        if SOAK:
            left = yard.status("count").get("shards", {}).get("recordsLeft", 6000)
            tally.add("tensorflow", [target.split("-")[0] for target in storm.killed], 6000, left, not passed)


def weather(storm):
    yard = storm.yard
    storm.start_anew()
    targets = ["worker-0", "worker-1", "worker-2", "master", "supervisor"]
    for target in storm.dice.sample(targets, len(targets)):
        if not storm.wait_for_rounds(storm.dice.randrange(1, 4)):
            break
        storm.strike(target)
    assert storm.run.wait(timeout=300) == 0, storm.path.read_text()
    said = [yard.log("count", f"worker-{i}") for i in range(3)]
    assert EVERY_TIME in "".join(said), "\n".join(said)
    assert not any("were not trained" in log for log in said)
    assert len(storm.killed) >= 3, f"it was over after {storm.killed}"
    assert yard.status("count")["shards"]["recordsLeft"] == 0
