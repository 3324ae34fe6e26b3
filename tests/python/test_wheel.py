"""The wheel, in an environment that has nothing else of ours."""

import os
import subprocess
import sys
import zipfile

from fake_master import fake_master
from yard import ROOT

SCRIPT = """
import sys, trainyard
service = trainyard.build_data_shard_service(4, num_epochs=2, dataset_size=10, dataset_name="test")
seen = []
while service.more():
    while shard := service.fetch_shard():
        seen += shard.records()
        service.report_batch_done(len(shard.records()))
assert sorted(seen) == sorted([*range(10)] * 2), seen
assert "numpy" not in sys.modules and "google.protobuf" not in sys.modules
print(trainyard.__file__)
"""


def test_the_wheel_installs_into_a_fresh_environment_and_works(tmp_path):
    wheel = subprocess.run([ROOT / "script/wheel"], capture_output=True, text=True, check=True).stdout.strip()
    with zipfile.ZipFile(ROOT / wheel) as file:
        assert {name for name in file.namelist() if name.startswith("trainyard/")} == {
            f"trainyard/{path.name}" for path in (ROOT / "python/trainyard").glob("*.py")}
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    python = tmp_path / "env/bin/python"
    grpcio = next(line.strip() for line in (ROOT / "script/python-tests.txt").read_text().splitlines() if line.startswith("grpcio=="))
    subprocess.run([python, "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", ROOT / wheel, grpcio], check=True)
    with fake_master() as master:
        env = {**os.environ, "MASTER_ADDR": master.address, "WORKER_ID": "3"}
        env.pop("PYTHONPATH", None)
        out = subprocess.run([python, "-c", SCRIPT], cwd=tmp_path, env=env, capture_output=True, text=True, check=True).stdout
        assert out.startswith(str(tmp_path / "env")) and master.ledger.look().complete
