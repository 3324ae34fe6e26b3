import os
import re

import pytest

from yard import ROOT, wait_for

PYTHONS = {"2.15": os.environ["TRAINYARD_TEST_PYTHON_215"], "2.21": os.environ["TRAINYARD_TEST_PYTHON_221"]}
SOAK = os.environ.get("SOAK") == "1"


@pytest.fixture(params=PYTHONS)
def version(request):
    return request.param


class Training:
    """A training under way, started by `trainyard run` on one of the examples."""

    def __init__(self, yard, version, example, *words, job, args=()):
        self.yard = yard
        self.job = job
        self.path = yard.home / f"{job}.out"
        self.out = self.path.open("w+")
        self.process = yard.start("run", "--python", PYTHONS[version], "--name", job, *words, ROOT / "examples" / example,
                                  "--", *args, stdout=self.out, stderr=self.out)

    def log(self, replica):
        return self.yard.log(self.job, replica)

    def steps(self, replica):
        """All progress lines of a replica's log: (epoch, step) in the order printed."""
        found, epoch = [], 0
        for line in self.log(replica).splitlines():
            if match := re.match(r"Epoch (\d+)/", line):
                epoch = int(match[1])
            elif match := re.match(r"(\d+)/\d+ - loss", line):
                found.append((epoch, int(match[1])))
        return found

    def wait_for_steps(self, replica, more=1, seconds=180):
        """Until the replica has printed that many more progress lines than now."""
        have = len(self.steps(replica))
        wait_for(lambda: self.check() and len(self.steps(replica)) >= have + more, f"{replica} steps on", seconds)

    def check(self):
        assert self.process.poll() is None, self.output()
        return True

    def kill(self, *replicas):
        """Kills replicas and returns their processes of before."""
        pids = {replica: self.yard.replica_pids(self.job, replica) for replica in replicas}
        for of_one in pids.values():
            assert of_one, pids
            for pid in of_one:
                self.yard.kill(pid)
        return pids

    def pids(self, *replicas):
        return {replica: self.yard.replica_pids(self.job, replica) for replica in replicas}

    def wait_for_restart(self, replica, old, seconds=60):
        """Until the replica runs again, as another process."""
        return wait_for(lambda: self.check() and (now := self.yard.replica_pids(self.job, replica)) and now != old and now,
                        f"{replica} runs again", seconds)

    def output(self):
        self.out.flush()
        return self.path.read_text()

    def finish(self, status=0, seconds=300):
        self.process.wait(timeout=seconds)
        text = self.output()
        assert self.process.returncode == status, text
        return text


@pytest.fixture
def train(yard):
    def start(*args, **options):
        return Training(yard, *args, **options)

    return start
