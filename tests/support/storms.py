"""A storm: an elastic job with plain Python clients whose workers, master and supervisor are killed at random, and what became of
its records.

The second half of the data is held back until the storm is over, so that the job cannot end before it was struck as often as planned.
"""

import json
import os
import random
import signal

from shards import Shards
from yard import wait_for

CLIENTS = ("10", "14", "ours")
KILLS = ("worker", "master", "supervisor")
WORKERS = 4
SECONDS = 30  # for what takes a few


class Storm:
    """Storms of nine seeds in a row begin with each kind of kill for each client; the rest is chance."""

    def __init__(self, yard, seed):
        self.yard, self.chance = yard, random.Random(seed)
        self.client = client = CLIENTS[seed % 3]
        self.plan = [KILLS[seed // 3 % 3], *self.chance.choices(["worker", "worker", "master", "supervisor", "scale"], k=3)]
        self.half = 400
        self.job = Shards(yard, size=2 * self.half, pace=0.03, client=client, hurried=True,
                          before=f"while shard.start >= {self.half} and not os.path.exists('calm'): time.sleep(0.01)")
        # Shards that may be trained twice: those of a worker that dies, or whose client does not say again what got no answer.
        self.costs = {"worker": 1, "master": WORKERS if client == "10" else 0, "supervisor": WORKERS, "scale": WORKERS - 1}
        self.process = None
        self.struck = []
        self.never = 0

    def run(self):
        # 1.0.0 raises where there is no master to register with: an error of the script's, which is for --restart.
        again = ["--restart", "OnFailure", "--backoff-limit", 99] if self.client == "10" else []
        self.process = self.job.start("-w", 3, *again, elastic=f"1:{WORKERS}")
        for name in self.plan:
            self.wait_for_some_shards()
            getattr(self, name)()
            self.struck.append(name)
        (self.yard.home / "calm").touch()
        self.yard.end(self.process, seconds=2 * SECONDS)

    def judge(self):
        (audit,) = json.loads(self.yard.run("audit", "train-1", "--json"))["sets"]
        self.never = sum(epoch["never"] for epoch in audit["epochs"])
        self.job.check_complete(doubles=sum(self.costs[name] for name in self.struck))
        assert self.client == "10" or self.yard.status("train-1")["restarts"] == 0

    def wait_for_some_shards(self):
        goal = self.job.shards_trained() + self.chance.randint(1, 10)
        wait_for(lambda: self.job.shards_trained() >= goal or self.job.furthest() >= self.half or self.ended(), "it goes on", SECONDS)
        assert not self.ended(), self.process.communicate()

    def ended(self):
        return self.process.poll() is not None

    # -- strikes

    def worker(self):
        def kill_one():
            pids = sorted(self.job.holders().values())
            return pids and self.kill(self.chance.choice(pids))
        wait_for(kill_one, "a worker to kill", SECONDS)

    def master(self):
        wait_for(lambda: self.kill(self.job.master_pid()), "a master to kill", SECONDS)

    def supervisor(self):
        before = set(self.job.holders().values())
        self.process.kill()
        self.process.communicate()
        self.process = self.yard.start("resume", "train-1")
        wait_for(lambda: self.ended() or set(self.job.holders().values()) - before, "the workers are back", SECONDS)

    def scale(self):
        self.yard.run("scale", f"worker={self.chance.randint(1, WORKERS)}")

    def kill(self, pid):
        """False: there is no such process of ours any more."""
        if pid not in self.yard.processes():
            return False
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True
