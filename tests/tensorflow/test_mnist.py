"""Real TensorFlow, both versions."""

import os

import pytest

from yard import ROOT

PYTHONS = {"2.15": os.environ["TRAINYARD_TEST_PYTHON_215"], "2.21": os.environ["TRAINYARD_TEST_PYTHON_221"]}


@pytest.mark.parametrize("version", PYTHONS)
def test_mnist_trains_on_two_workers_and_exports_a_model(yard, version):
    out = yard.run("run", "--python", PYTHONS[version], ROOT / "examples/mnist.py", seconds=300)
    assert "mnist-1 succeeded" in out
    accuracy = float(out.split("test accuracy: ")[1].split()[0])
    assert accuracy >= 0.97
    assert (yard.dir("mnist-1") / "output/1/saved_model.pb").exists()
