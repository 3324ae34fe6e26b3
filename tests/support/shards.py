"""Elastic jobs whose workers take shards with the published client, and what became of every record."""

import collections
import json
import os
import re

import pytest
from yard import ROOT, alive, proc_file, wait_for

# Pythons with the published clients: elasticdl_api 1.0.0, which takes any error for the end of the data, and elasticai_api 1.4.2.
PYTHONS = {version: os.environ.get(f"TRAINYARD_TEST_EDL_{version}", "") for version in ("10", "14")}
needs_client = pytest.mark.skipif(not all(PYTHONS.values()),
                                  reason="TRAINYARD_TEST_EDL_10 and _14 are not set: script/test sets them")

# Trains nothing: notes each shard in a file of its own, and reports it. A file `hold` keeps all at the shard they have,
# `hold-worker-1` one of them.
WORKER = """
import os, sys, time
pause = time.sleep
time.sleep = lambda seconds: pause(min(seconds, LONGEST_PAUSE))
from IMPORT

name = "{TRAINYARD_ROLE}-{TRAINYARD_INDEX}".format(**os.environ)
service = DataShardService(batch_size=SHARD, num_epochs=EPOCHS, dataset_size=SIZE, num_minibatches_per_shard=1,
                           dataset_name="numbers")
held = 0
while (shard := service.fetch_shard()) is not None:
    with open(f"has-{name}.{os.environ['TRAINYARD_ATTEMPT']}", "a") as file:
        file.write(f"{os.getpid()} {os.environ['WORKER_ID']} {shard.start} {shard.end}\\n")
    held += 1
    time.sleep(PACE)
    while os.path.exists("hold") or os.path.exists(f"hold-{name}"):
        time.sleep(0.01)
    BEFORE
    with open(f"trained-{name}.{os.environ['TRAINYARD_ATTEMPT']}", "a") as file:
        file.write(f"{shard.start} {shard.end}\\n")
    try:
        service.report_batch_done()
    except Exception as error:  # 1.0.0 does not try again, and ElasticDL's tutorial goes on
        print("not reported:", error, flush=True)
print("no more data after", held, "shards", flush=True)
"""
PUBLISHED = "elasticai_api.common.data_shard_service import DataShardService"
IMPORTS = {"10": PUBLISHED, "14": PUBLISHED, "ours": "trainyard import build_data_shard_service as DataShardService"}


class Shards:
    """One elastic job of a yard. hurried: the published client, which tries again after 15 seconds, does so after half a one."""

    def __init__(self, yard, size=300, shard=10, epochs=1, pace=0.0, before="pass", client="14", hurried=False):
        self.python = PYTHONS["14" if client == "ours" else client]  # which has grpcio as well
        if client == "ours":
            yard.env["PYTHONPATH"] = str(ROOT / "python")
        self.yard, self.size, self.epochs, self.shard = yard, size, epochs, shard
        words = {"SHARD": shard, "SIZE": size, "EPOCHS": epochs, "LONGEST_PAUSE": 0.5 if hurried else 3600, "PACE": pace,
                 "BEFORE": before, "IMPORT": IMPORTS[client]}
        yard.script(re.sub("|".join(words), lambda word: str(words[word[0]]), WORKER))
        self.run = None

    def start(self, *flags, elastic="1:8"):
        self.run = self.yard.start("run", "--elastic", elastic, "--python", self.python, *flags, self.yard.home / "train.py")
        return self.run

    def hold(self, who=""):
        (self.yard.home / f"hold{'-' + who if who else ''}").touch()

    def release(self, who=""):
        (self.yard.home / f"hold{'-' + who if who else ''}").unlink()

    def holders(self):
        """Living workers that took a shard, with their pids."""
        out = {}
        for file in self.yard.home.glob("has-*"):
            lines = file.read_text().splitlines()
            if lines and alive(int(lines[-1].split()[0])):
                out[file.name[4:].split(".")[0]] = int(lines[-1].split()[0])
        return out

    def wait_for_holders(self, *names, but=()):
        def there():
            found = {name: pid for name, pid in self.holders().items() if name in names and pid not in but}
            return found if len(found) == len(names) else None
        return wait_for(there, f"{names} with a shard", seconds=90)

    def trained(self):
        """How often each record was trained."""
        count = collections.Counter()
        for file in self.yard.home.glob("trained-*"):
            for line in file.read_text().splitlines():
                start, end = map(int, line.split())
                count.update(range(start, end))
        return count

    def shards_trained(self):
        return sum(len(file.read_text().splitlines()) for file in self.yard.home.glob("trained-*"))

    def furthest(self):
        """Where the last shard begins that a worker has got."""
        starts = [int(line.split()[2]) for file in self.yard.home.glob("has-*") for line in file.read_text().splitlines()]
        return max(starts, default=0)

    def master_pid(self):
        for pid in self.yard.processes():
            if any(word.endswith(b"/trainyard-master") for word in proc_file(pid, "cmdline").split(b"\0")):
                return pid
        return None

    def status(self, job="train-1"):
        return self.yard.status(job)

    def check_complete(self, job="train-1", doubles=0):
        """Every record of every epoch was trained, at most so many shards twice, and the job says so."""
        trained = self.trained()
        missing = [record for record in range(self.size) if trained[record] < self.epochs]
        assert not missing, f"never trained: {missing}"
        assert sum(trained.values()) <= (self.size * self.epochs) + doubles * self.shard
        (audit,) = json.loads(self.yard.run("audit", job, "--json"))["sets"]
        assert audit["complete"] and len(audit["epochs"]) == self.epochs, audit
        for epoch in audit["epochs"]:
            assert epoch["once"] + epoch["more"] + epoch["assumed"] == self.size and epoch["never"] == 0, audit
            assert epoch["more"] <= doubles * self.shard, audit
        status = self.status(job)
        assert status["verdict"]["result"] == "succeeded", status["verdict"]
        assert status["verdict"]["cause"].startswith("all records"), status["verdict"]
        assert status["shards"]["recordsLeft"] == 0 and status["shards"]["complete"], status["shards"]
