#!/usr/bin/env python3
"""Reading event files: ours beside TensorBoard's RustBoard and its Python loader, in one run.

    bench/events_bench.py [--bench build/release/bench/events_bench] [--megabytes 400] [--rounds 3]

One event file of scalars, as tf.summary.scalar writes them, read by each:

    ours           find, check every checksum, decode, keep series (events_bench read)
    scan + CRC     records and their checksums alone (events_bench scan), what reading costs at least
    RustBoard      tensorboard-data-server --reload once, by its own "Finished load cycle"
    Python         tensorboard's EventFileLoader on a slice, scaled; it has no series to keep

Rounds take turns, so that a busy machine disturbs all alike, and the best of each counts. Wall time
is what a user waits; CPU time is steadier when others use the machine. TensorBoard is installed from
PyPI, once, into a virtual environment in the cache directory.
"""

import argparse
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import venv

PACKAGES = ["tensorboard==2.20.0", "tensorboard-data-server==0.7.2", "setuptools<81"]
SLICE_MEGABYTES = 10

PYTHON_LOADER = """
import sys, time
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
begin, cpu, count = time.perf_counter(), time.process_time(), 0
for event in EventFileLoader(sys.argv[1]).Load():
    count += 1
print(time.perf_counter() - begin, time.process_time() - cpu, count)
"""


def environment():
    """The Python of an environment with TensorBoard in it, made at the first use."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    version = PACKAGES[0].partition("==")[2]
    path = cache / "trainyard" / f"bench-tensorboard-{version}"
    python = path / "bin" / "python"
    if not (path / "complete").exists():
        print("installing TensorBoard for comparison ...", file=sys.stderr)
        venv.create(path, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
        (path / "complete").touch()
    return python


def cpu_of_children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def time_ours(bench, what, where):
    result = json.loads(subprocess.run([bench, what, where], check=True, capture_output=True).stdout)
    return result["seconds"], result["cpu_seconds"]


def time_rustboard(server, logdir, checksum):
    before = cpu_of_children()
    process = subprocess.Popen(
        [server, "--logdir", logdir, "--port", "0", "--reload", "once", "-v",
         "--checksum" if checksum else "--no-checksum"],
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        for line in process.stderr:
            if found := re.search(r"Finished load cycle \(([0-9.]+)(ms|s)\)", line):
                wall = float(found[1]) / (1000 if found[2] == "ms" else 1)
                break
        else:
            raise RuntimeError("RustBoard ended before it had loaded")
    finally:
        process.kill()
        process.wait()
    return wall, cpu_of_children() - before


def time_python(python, path):
    output = subprocess.run([python, "-c", PYTHON_LOADER, path], check=True, capture_output=True,
                            text=True).stdout
    wall, cpu, _ = map(float, output.split())
    return wall, cpu


def main():
    here = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", default=here / "build/release/bench/events_bench")
    parser.add_argument("--megabytes", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()

    python = environment()
    server = subprocess.run(
        [python, "-c", "import tensorboard_data_server as t; print(t.server_binary())"],
        check=True, capture_output=True, text=True).stdout.strip()
    work = pathlib.Path(tempfile.mkdtemp(prefix="events_bench_"))
    try:
        size, slice_size = arguments.megabytes, min(SLICE_MEGABYTES, arguments.megabytes)
        for name, megabytes in (("whole", size), ("slice", slice_size)):
            subprocess.run([arguments.bench, "make", work / name, str(megabytes)], check=True)
        whole = next((work / "whole/train").iterdir())
        part = next((work / "slice/train").iterdir())
        readers = {
            "ours, CRC checked": (size, lambda: time_ours(arguments.bench, "read", work / "whole")),
            "bare scan + CRC": (size, lambda: time_ours(arguments.bench, "scan", whole)),
            "RustBoard, CRC checked": (size, lambda: time_rustboard(server, work / "whole", True)),
            "RustBoard, unchecked": (size, lambda: time_rustboard(server, work / "whole", False)),
            "TensorBoard, Python": (slice_size, lambda: time_python(python, part)),
        }
        best = {name: (float("inf"), float("inf")) for name in readers}
        for _ in range(arguments.rounds):
            for name, (_, measure) in readers.items():
                best[name] = tuple(map(min, best[name], measure()))
    finally:
        shutil.rmtree(work)

    ours = "ours, CRC checked"
    rate = {name: [readers[name][0] / seconds for seconds in best[name]] for name in readers}
    print(f"{'reader':<24}{'MB/s':>8}{'ours is':>10}{'MB per CPU s':>15}{'ours is':>10}")
    for name, (wall, cpu) in rate.items():
        print(f"{name:<24}{wall:>8.1f}{rate[ours][0] / wall:>9.1f}x"
              f"{cpu:>15.1f}{rate[ours][1] / cpu:>9.1f}x")
    print(json.dumps({name: {"mb_per_s": round(wall, 1), "mb_per_cpu_s": round(cpu, 1)}
                      for name, (wall, cpu) in rate.items()}))


if __name__ == "__main__":
    main()
