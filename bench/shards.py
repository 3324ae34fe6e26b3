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
seconds = sys.argv[3] if len(sys.argv) > 3 else "5"
os.environ["TRAINYARD_BINARY"] = str(build / "trainyard")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/support"))
from data_master import DataMaster  # noqa: E402

WORKERS = 64


def cpu(pid):
    """Seconds of processor time so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def load(process, port, kind, much=seconds, most=1):
    """Shards a second, and microseconds of the server's processor for a call (a pair is two)."""
    before = cpu(process.pid)
    shards, took = subprocess.run([build / "bench/shards_load", str(port), kind, str(WORKERS), much, str(most)],
                                  stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    shards, spent = int(shards), cpu(process.pid) - before
    return {"rate": shards / float(took), "call": spent / (2 * shards / most) * 1e6}


def show(name, found, base=None):
    ratio = f"  {found['rate'] / base['rate']:6.1f}x the shards  {base['call'] / found['call']:5.1f}x less CPU a call" if base else ""
    print(f"  {name:<44} {found['rate']:9.0f} shards/s  {found['call']:6.1f} us of CPU a call{ratio}", flush=True)


def start(directory):
    master = DataMaster(directory)
    for number in range(WORKERS):
        master.members[f"worker-{number}@0"] = (number, "live")
    master.say()
    return master


print(f"take and report, {WORKERS} workers, {seconds} s each; goals: 8x the pairs and 15x less CPU with the published protocol, 50x the shards with ours")
theirs = subprocess.Popen([python, pathlib.Path(__file__).with_name("python_master.py")], stdout=subprocess.PIPE, text=True)
base = load(theirs, int(theirs.stdout.readline()), "published")
theirs.kill()
theirs.wait()
show("a master in Python, in memory", base)
with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as directory:
    master = start(directory)
    show("ours, on the disk, published protocol", load(master.process, master.port, "published"), base)
    for most in (16, 256):
        show(f"ours, on the disk, own protocol, {most} a call", load(master.process, master.port, "ours", most=most), base)
    master.process.kill()
    master.process.wait()

with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as directory:
    master = start(directory)
    load(master.process, master.port, "ours", much="1000000x", most=256)
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
