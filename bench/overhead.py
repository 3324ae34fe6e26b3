"""What Trainyard costs beside a bare shell that starts the same processes. Ratios and differences of one run.

    python bench/overhead.py TRAINYARD [PYTHON-WITH-TENSORFLOW]

Rounds alternate between the two, so that both see the same machine. Without a TensorFlow Python only the no-op rows
and the figures at rest are measured.
"""

import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
NOOP = "import os, sys\nsys.exit(0 if os.environ.get('TF_CONFIG') else 1)\n"
QUIET = "import signal\nsignal.pause()\n"


def cluster(roles, port):
    return {role: [f"127.0.0.1:{port + offset + i}" for i in range(count)] for offset, (role, count) in
            zip((0, 100), roles.items())}


def shell_script(roles, python, script, port):
    """The launcher that people write by hand: one background process a replica, wait for all."""
    lines = ["#!/bin/bash"]
    for role, count in roles.items():
        for i in range(count):
            config = json.dumps({"cluster": cluster(roles, port), "task": {"type": role, "index": i}})
            lines.append(f"TF_CONFIG='{config}' '{python}' '{script}' >'{role}-{i}.log' 2>&1 &")
    return "\n".join([*lines, "wait"])


def manifest(roles, python, script):
    container = {"name": "tensorflow", "image": "none", "command": [str(python), str(script)]}
    specs = {{"worker": "Worker", "ps": "PS"}[role]: {
        "replicas": count, "template": {"spec": {"containers": [container]}}} for role, count in roles.items()}
    return {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "bench"},
            "spec": {"successPolicy": "AllWorkers", "tfReplicaSpecs": specs}}


def timed(words, env, cwd):
    began = time.perf_counter()
    subprocess.run(words, env=env, cwd=cwd, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def side_by_side(trainyard, python, script_text, roles, rounds, work):
    script = work / "script.py"
    script.write_text(script_text)
    shell, ours = [], []
    for i in range(rounds):
        here = work / f"round-{i}"
        here.mkdir()
        (here / "launch.sh").write_text(shell_script(roles, python, script, 19000))
        (here / "job.json").write_text(json.dumps(manifest(roles, python, script)))
        plain = {**os.environ, "TRAINYARD_OUTPUT_DIR": str(here / "o"), "TRAINYARD_CHECKPOINT_DIR": str(here / "c"),
                 "TRAINYARD_LOG_DIR": str(here / "l")}
        shell.append(timed(["bash", "launch.sh"], plain, here))
        env = {**os.environ, "TRAINYARD_HOME": str(here / "state"), "XDG_RUNTIME_DIR": str(here)}
        ours.append(timed([trainyard, "run", "-f", "job.json", "--python", python], env, here))
    return statistics.median(shell), statistics.median(ours)


def guards(work):
    """Pids of the guards of jobs below this directory."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if words[0].endswith(b"trainyard-guard") and str(work).encode() in words[2]:
            found.append(int(entry.name))
    return found


def at_rest(trainyard, work):
    """Memory (proportional set size) and CPU of supervisor and guards while three replicas do nothing."""
    script = work / "quiet.py"
    script.write_text(QUIET)
    env = {**os.environ, "TRAINYARD_HOME": str(work / "rest"), "XDG_RUNTIME_DIR": str(work)}
    process = subprocess.Popen([trainyard, "run", "-w", "3", "--name", "rest", script], env=env, stdout=subprocess.DEVNULL)
    status = work / "rest/default/rest/status.json"
    while not (status.exists() and '"active": 3' in status.read_text()):
        time.sleep(0.05)
    time.sleep(2)  # let it settle: what is measured is rest
    pids = [process.pid, *guards(work)]

    def ticks():
        return sum(sum(map(int, pathlib.Path(f"/proc/{p}/stat").read_text().rsplit(")", 1)[1].split()[11:13])) for p in pids)

    def memory(pid):
        return next(int(line.split()[1]) for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
                    if line.startswith("Pss:"))

    before = ticks()
    time.sleep(10)
    used = ticks() - before
    kilobytes = [memory(pid) for pid in pids]
    process.send_signal(signal.SIGINT)
    process.wait()
    return kilobytes, used


def main():
    trainyard = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        plain = sys.executable
        (work / "noop").mkdir()
        shell, ours = side_by_side(trainyard, plain, NOOP, {"worker": 2, "ps": 1}, 21, work / "noop")
        print(f"{'what':<44}{'bare shell':>12}{'trainyard':>12}{'difference':>12}{'ratio':>8}")
        print(f"{'no-op, 2 workers + 1 ps, median of 21':<44}{shell * 1e3:>10.0f}ms{ours * 1e3:>10.0f}ms"
              f"{(ours - shell) * 1e3:>10.0f}ms{ours / shell:>8.2f}")
        if len(sys.argv) > 2:
            (work / "mnist").mkdir()
            text = (ROOT / "examples/mnist.py").read_text()
            shell, ours = side_by_side(trainyard, sys.argv[2], text, {"worker": 2}, 3, work / "mnist")
            print(f"{'MNIST, 2 workers, real TensorFlow, of 3':<44}{shell:>11.1f}s{ours:>11.1f}s{ours - shell:>11.1f}s"
                  f"{ours / shell:>8.2f}")
        kilobytes, used = at_rest(trainyard, work)
        print(f"at rest, 3 replicas: supervisor {kilobytes[0] / 1024:.1f} MB, "
              f"{len(kilobytes) - 1} guard processes {sum(kilobytes[1:]) / 1024:.1f} MB, {sum(kilobytes) / 1024:.1f} MB in all; "
              f"CPU {used} ticks in 10 s")


main()
