"""Sweeps over real trainings: a grid of nine, and Keras' own `fit` with its metrics."""

import json

import pytest

from conftest import PYTHONS, SOAK
from yard import ROOT

pytestmark = pytest.mark.skipif(not SOAK, reason="twenty trainings: script/soak")

FIT = """
import argparse, os
import numpy as np, tensorflow as tf
parser = argparse.ArgumentParser()
parser.add_argument('--lr', type=float)
a = parser.parse_args()
tf.keras.utils.set_random_seed(1)
x = np.random.default_rng(1).normal(size=(512, 4)).astype('float32')
y = x @ np.array([[1.0], [-2.0], [3.0], [0.5]], 'float32')
model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
model.compile(tf.keras.optimizers.SGD(a.lr), 'mse')
model.fit(x, y, epochs=9, validation_split=0.25, verbose=int(os.environ['VERBOSE']),
          callbacks=[tf.keras.callbacks.TensorBoard(os.environ['TRAINYARD_LOG_DIR'])])
"""


def trials(yard, name):
    return [json.loads(line) for line in yard.run("sweep", "show", name, "--json").splitlines()]


def test_a_grid_of_nine_over_learning_rate_and_layers_on_two_workers_each(yard):
    out = yard.run("sweep", ROOT / "examples/mnist.py", "--python", PYTHONS["2.15"], "-w", "2", "--name", "nine",
                   "--param", "learning-rate=0.1,0.01,0.001", "--param", "hidden-layers=1,2,3", "--metric", "accuracy",
                   "--", "--epochs", "1", "--steps-per-epoch", "60", seconds=900)
    of = trials(yard, "nine")
    assert len(of) == 9 and {t["state"] for t in of} <= {"complete", "pruned"}
    best = max((t for t in of if t["state"] == "complete"), key=lambda t: t["value"])
    assert best["params"]["learning-rate"] < 0.1 and best["value"] > 0.7
    assert f"trainyard serve nine-t{best['trial']}" in out
    directory = next((yard.home / "state/.sweeps/default/nine").glob(f"{best['trial']:03}-*"))
    assert (directory / "output/1/saved_model.pb").exists() and list((directory / "tensorboard").rglob("*tfevents*"))
    command = json.dumps(json.loads(yard.run("get", f"nine-t{best['trial']}", "-o", "json"))["spec"])
    assert f"--learning-rate={best['params']['learning-rate']}" in command


@pytest.mark.parametrize("metric, verbose", [("val_loss", 1), ("val_loss", 2), ("validation/epoch_loss", 0)])
def test_metrics_of_keras_fit_from_bars_lines_and_event_files(yard, version, metric, verbose):
    yard.script(FIT)
    (yard.home / "env").write_text(f"VERBOSE={verbose}\n")
    yard.run("sweep", "train.py", "--python", PYTHONS[version], "-w", "1", "-e", "env", "--param", "lr=0.1,0.01,0.0001",
             "--metric", metric, "--name", "fit", seconds=600)
    of = trials(yard, "fit")
    assert of[0]["state"] == "complete" and of[0]["reports"] == 9
    assert of[2]["state"] == "pruned" and of[2]["value"] > of[0]["value"]
