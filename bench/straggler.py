"""One of four workers is ten times slower: the data split beforehand, and handed out in shards. Ratios to the ideal.

    straggler.py BUILD PYTHON [RECORDS]          PYTHON has grpcio

A record takes so long of sleep, not of a processor: what is compared is who waits for whom, on a machine of any size. Time counts from
the moment at which all four are up.
"""

import concurrent.futures
import os
import pathlib
import re
import sys
import tempfile

build, python = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
records = int(sys.argv[3]) if len(sys.argv) > 3 else 3200
os.environ["TRAINYARD_BINARY"] = str(build / "trainyard")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/support"))
from yard import ROOT, Yard  # noqa: E402

WORKERS, SLOWER, SECONDS = 4, 10, 0.01
IDEAL = records * SECONDS / (WORKERS - 1 + 1 / SLOWER)  # nobody waits, up to the end

WORKER = """
import os, pathlib, sys, time
from trainyard import build_data_shard_service

records, workers, shard_size, slower, seconds = int(sys.argv[1]), *map(float, sys.argv[2:])
me = int(os.environ["TRAINYARD_INDEX"])
if shard_size:
    service = build_data_shard_service(batch_size=int(shard_size), num_minibatches_per_shard=1, dataset_size=records)
pathlib.Path(f"up-{me}").touch()
while len(list(pathlib.Path().glob("up-*"))) < workers:
    time.sleep(0.001)
print("began", time.time(), flush=True)

def train(numbers):
    for _ in numbers:
        time.sleep(seconds * (slower if me == 0 else 1))

if shard_size:
    while shard := service.fetch_shard():
        train(shard.records())
        service.report_batch_done()
else:
    train(range(me, records, int(workers)))
print("ended", time.time(), flush=True)
"""


def makespan(shard_size):
    """Seconds from the first worker's begin to the last one's end; the data is split beforehand if there are no shards."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as home:
        yard = Yard(home)
        yard.env["PYTHONPATH"] = str(ROOT / "python")
        elastic = ["--elastic", f"{WORKERS}:{WORKERS}"] if shard_size else []
        yard.run("run", "-w", WORKERS, *elastic, "--name", "a", "--python", python, yard.script(WORKER), "--", records, WORKERS, shard_size,
                 SLOWER, SECONDS, seconds=600)
        logs = "".join(yard.log("a", f"worker-{index}") for index in range(WORKERS))
        yard.close()
    began, ended = ([float(when) for when in re.findall(rf"^{word} (\S+)$", logs, re.M)] for word in ("began", "ended"))
    assert len(began) == len(ended) == WORKERS, logs
    return max(ended) - min(began)


def show(name, took):
    print(f"  {name:<44} {took:7.2f} s  {took / IDEAL:5.2f}x the ideal", flush=True)


print(f"{WORKERS} workers, one {SLOWER} times slower, {records} records of {SECONDS * 1000:g} ms: the ideal is {IDEAL:.2f} s (goal: within 20 %)")
with concurrent.futures.ThreadPoolExecutor(1) as beside:
    split = beside.submit(makespan, 0)  # takes as long as all the others, and sleeps
    for count in (20, 80, 160, 320):
        show(f"{count} shards of {records // count} records, handed out", makespan(records // count))
    show(f"split beforehand, {records // WORKERS} records each", split.result())
