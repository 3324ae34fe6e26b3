"""From the command to the first line of a pod's log: `trainyard run` beside kubectl by hand, on a cluster of this machine.

    python bench/first_line.py TRAINYARD

By hand is: `kubectl apply` of what `trainyard render` prints, then `kubectl logs -f`, again and again until the pod has a log. They
take turns; the medians and their ratio are printed.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests/support"), str(ROOT / "tests/cluster")]

from cluster import Cluster  # noqa: E402
from trainyard_operator import install_crd, operator  # noqa: E402

ROUNDS = 10
FLAGS = ["--on", "kubernetes", "-w", "1", "--output", "none", "-i", "trainyard.test/tensorflow:2.15"]


def ours(program, script, name, env):
    begin = time.monotonic()
    run = subprocess.Popen([program, "run", *FLAGS, "--name", name, script], stdout=subprocess.PIPE, text=True, env=env)
    for line in run.stdout:
        if line.endswith("first line\n"):
            took = time.monotonic() - begin
    assert run.wait() == 0
    return took


def by_hand(kubectl, program, script, name, env):
    manifest = subprocess.run([program, "render", *FLAGS, "--name", name, script], stdout=subprocess.PIPE, env=env, check=True).stdout
    begin = time.monotonic()
    subprocess.run([kubectl, "apply", "-f", "-"], input=manifest, stdout=subprocess.DEVNULL, env=env, check=True)
    while True:
        logs = subprocess.Popen([kubectl, "logs", "-f", f"{name}-worker-0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                text=True, env=env)
        if logs.stdout.readline() == "first line\n":
            took = time.monotonic() - begin
            logs.wait()
            return took
        logs.wait()


def main(program):
    with Cluster.up(nodes=1) as cluster, tempfile.TemporaryDirectory() as folder:
        install_crd(cluster)
        with operator(cluster, binary=program):
            script = pathlib.Path(folder, "train.py")
            script.write_text("print('first line')\n")
            env = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "KUBECACHEDIR": folder}
            kubectl = cluster.state.program("kubectl")
            figures = {"ours": [], "hand": []}
            for i in range(ROUNDS + 1):
                us, hand = ours(program, script, f"ours-{i}", env), by_hand(kubectl, program, script, f"hand-{i}", env)
                if i > 0:  # the first warms up
                    figures["ours"].append(us)
                    figures["hand"].append(hand)
    us, hand = (statistics.median(figures[who]) for who in ("ours", "hand"))
    print(f"run to the first line of a log: {us * 1000:.0f} ms, kubectl by hand {hand * 1000:.0f} ms: {us / hand:.2f}x "
          f"(goal: 1.10x), medians of {ROUNDS}")


if __name__ == "__main__":
    main(str(pathlib.Path(sys.argv[1]).resolve()))
