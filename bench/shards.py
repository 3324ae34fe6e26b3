"""Handing out data shards: ours, durable, beside a master in Python that keeps all in memory. Ratios.

    shards.py BUILD PYTHON [SECONDS]          PYTHON has elasticai_api 1.4.2
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

build, python = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
seconds = sys.argv[3] if len(sys.argv) > 3 else "3"
os.environ["TRAINYARD_BINARY"] = str(build / "trainyard")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/support"))
from data_master import DataMaster  # noqa: E402

WORKERS, ROUNDS = 64, 3


def cpu(pid):
    """Seconds of processor time so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


class Side:
    """A master under load, in rounds: shards, the time they took, and processor time of the server and of the load."""

    def __init__(self, name, process, port, kind, most=1):
        self.name, self.process, self.port, self.kind, self.most = name, process, port, kind, most
        self.shards = self.took = self.spent = self.loading = 0

    def load(self, much):
        before = cpu(self.process.pid)
        shards, took, loading = subprocess.run([build / "bench/shards_load", str(self.port), self.kind, str(WORKERS), much, str(self.most)],
                                               stdout=subprocess.PIPE, text=True, check=True).stdout.split()
        self.shards, self.took, self.loading = self.shards + int(shards), self.took + float(took), self.loading + float(loading)
        self.spent += cpu(self.process.pid) - before
        return self

    @property
    def rate(self):
        return self.shards / self.took

    @property
    def call(self):
        """Microseconds of the server's processor for a call: a round trip has two."""
        return self.spent / (2 * self.shards / self.most) * 1e6

    def show(self, base=None):
        ratio = f"  {self.rate / base.rate:6.1f}x the shards  {base.call / self.call:5.1f}x less CPU a call" if base else ""
        print(f"  {self.name:<43} {self.rate:9.0f} shards/s {self.call:6.1f} us of CPU a call; server {self.spent / self.took:4.0%}, "
              f"load {self.loading / self.took:4.0%} of a core{ratio}", flush=True)


def start(directory):
    master = DataMaster(directory)
    for number in range(WORKERS):
        master.members[f"worker-{number}@0"] = (number, "live")
    master.say()
    return master


print(f"take and report, {WORKERS} workers, {ROUNDS} rounds of {seconds} s each; goals: 8x the pairs and 15x less CPU with the published protocol, "
      "50x the shards with ours")
theirs = subprocess.Popen([python, pathlib.Path(__file__).with_name("python_master.py")], stdout=subprocess.PIPE, text=True)
with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as directory:
    master = start(directory)
    base = Side("a master in Python, in memory", theirs, int(theirs.stdout.readline()), "published")
    ours = [Side("ours, on the disk, published protocol", master.process, master.port, "published")]
    ours += [Side(f"ours, on the disk, own protocol, {most} a call", master.process, master.port, "ours", most) for most in (16, 256)]
    for _ in range(ROUNDS):  # In turns, so that whatever else the machine does meets all of them.
        for side in [base, *ours]:
            side.load(seconds)
    base.show()
    for side in ours:
        side.show(base)
    master.process.kill()
    master.process.wait()
theirs.kill()
theirs.wait()

with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as directory:
    master = start(directory)
    Side("", master.process, master.port, "ours", 256).load("1000000x")
    print(f"1,000,000 shards of 10^10 records done: {memory(master.process.pid):.1f} MB resident (goal: 32), "
          f"log {os.path.getsize(master.directory / 'ledger/log') / 1e6:.0f} MB")
    for what in ("with its snapshot", "from the whole log"):
        master.process.kill()
        master.process.wait()
        master.hang_up()
        if what != "with its snapshot":
            (master.directory / "ledger/snapshot").unlink()
        begin = time.monotonic()
        master.start()
        print(f"  started again {what}: {time.monotonic() - begin:.2f} s (goal: 1)")
    master.close()
