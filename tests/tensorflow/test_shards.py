"""Our Python package with real TensorFlow: tf.data, Keras, Estimator and checkpoints."""

import json
import os
import subprocess
import sys

import pytest

from conftest import PYTHONS
from yard import ROOT

sys.path.insert(0, str(ROOT / "python"))

from fake_master import fake_master  # noqa: E402


def run(version, folder, address):
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "PYTHONDONTWRITEBYTECODE": "1", "MASTER_ADDR": address,
           "DLROVER_MASTER_ADDR": "", "WORKER_ID": "0"}
    done = subprocess.run([PYTHONS[version], ROOT / "tests/scripts/shards_in_tf_data.py", folder], env=env, capture_output=True,
                          text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("served", [True, False], ids=["with a master", "without"])
def test_pipelines_callbacks_and_checkpoints_train_each_record_once_and_report_it(tmp_path, version, served):
    with fake_master() as master:
        done = run(version, tmp_path, master.address if served else "")
    assert sorted(done["batches"]["seen"]) == sorted([*range(30)] * 2)
    assert done["batches"]["sizes"] == [3, 3, 2, 3, 3, 2, 3, 3, 2, 3, 3] * 2
    # What the first pass dropped comes in a second, in which it is dropped again.
    assert len(done["shuffled"]["seen"]) == len({*done["shuffled"]["seen"]}) == 28 and done["shuffled"]["passes"] == 2
    assert done["singles"]["sizes"] == [7, 7, 7, 7, 2]
    assert done["keras_reports"]["off"] < 1e-5
    # Each life trains two rounds of a shard that stay, and begins a third that does not; the last finds nothing to do.
    assert done["keras_saves"]["lives"] == 5 and done["keras_saves"]["off"] < 1e-5
    assert done["keras_uneven"]["refused"] and done["keras_uneven"]["rounds"] == 8
    assert done["commits"]["counts"] == [5] * 30 and done["commits"]["lives"] > 3
    if version == "2.15":
        assert done["estimator"]["counts"] == [6] * 30 and done["estimator"]["lives"] > 2
    assert all(case["complete"] for case in done.values())
