"""MultiWorkerMirroredStrategy on real TensorFlow: it trains, it is a gang, its failures are told apart."""

import re
import statistics

from conftest import PYTHONS, SOAK
from yard import ROOT


def test_mnist_trains_on_two_workers_and_exports_a_model(yard, train, version):
    out = train(version, "mnist.py", job="mnist").finish()
    accuracy = float(out.split("test accuracy: ")[1].split()[0])
    assert accuracy >= 0.97
    assert "mnist succeeded" in out
    assert (yard.dir("mnist") / "output/1/saved_model.pb").exists()
    assert yard.status("mnist")["progress"]["percent"] == 100


def started(yard, job, replica, attempt):
    """When an attempt was started, in seconds; 0 if it was not."""
    try:
        text = (yard.dir(job) / "endings" / f"{replica}.{attempt}").read_text()
    except FileNotFoundError:
        return 0
    match = re.search(r"started when=(\d+)", text)
    return int(match[1]) / 1e6 if match else 0


def test_a_killed_worker_restarts_the_gang_and_training_goes_on_from_the_checkpoint(yard, train, version):
    pauses = []
    for i in range(10 if SOAK else 1):
        job = f"mnist-{i}"
        run = train(version, "mnist.py", job=job)
        run.wait_for_steps("worker-0", more=6)  # past the first checkpoint
        peer = run.pids("worker-0")["worker-0"]
        run.kill("worker-1")
        run.wait_for_restart("worker-0", peer)
        run.wait_for_restart("worker-1", [])
        died = _seconds(yard.status(job)["incidents"][-1]["when"])
        pauses.append(max(started(yard, job, f"worker-{i}", 1) for i in (0, 1)) - died)
        out = run.finish()
        assert yard.status(job)["restarts"] == 1
        assert "resuming from step" in run.log("worker-0")
        assert float(out.split("test accuracy: ")[1].split()[0]) >= 0.97
        why = yard.run("why", job)
        assert "worker/1 was killed by SIGKILL" in why
        assert "worker/0" not in why  # the peer is not to blame
    print(f"TensorFlow {version}: kill to gang started again, median of {len(pauses)}: {statistics.median(pauses):.3f} s, "
          f"most {max(pauses):.3f} s")


def _seconds(text):
    import datetime

    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def test_an_exception_in_one_worker_is_the_cause_and_its_peer_a_consequence(yard, version):
    script = yard.script("""
import os
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
@tf.function
def step():
    value = strategy.run(lambda: tf.ones([]))
    return strategy.reduce("SUM", value, axis=None)
for i in range(100000):
    step()
    if i == 50 and os.environ["TRAINYARD_INDEX"] == "1":
        raise RuntimeError("the data of worker 1 is bad")
""")
    out = yard.run("run", "--python", PYTHONS[version], script, status=1, seconds=180)
    verdict = out.split("train-1 failed")[1]
    assert "worker/1 exited with status 1: RuntimeError: the data of worker 1 is bad" in verdict.splitlines()[0]
    assert yard.status("train-1")["incidents"][-1]["replica"] == "worker-1"
    assert yard.status("train-1")["restarts"] == 0


def test_keras_3_fit_gets_a_verdict_that_names_the_cure(yard):
    script = ROOT / "tests/scripts/keras3_fit.py"
    out = yard.run("run", "--python", PYTHONS["2.21"], script, status=1, seconds=180)
    assert "TF_USE_LEGACY_KERAS=1" in out.split("failed after")[1]
    legacy = {"TF_USE_LEGACY_KERAS": "1"}
    yard.run("run", "--python", PYTHONS["2.21"], script, env=legacy, seconds=180)
