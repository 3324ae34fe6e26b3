"""The kube folder (its gtest program, tests/kube_cluster_test.cc) against a real API server and a real node."""

import os
import subprocess

import pytest

from cluster import Cluster
from yard import ROOT

PROGRAM = ROOT / "build/release/tests/kube_cluster_test"


@pytest.mark.node
def test_kube_against_a_cluster():
    assert PROGRAM.exists(), "script/build first"
    with Cluster.up(nodes=1) as cluster:
        environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "KUBE_TEST_IMAGE": "trainyard.test/small:1",
                       "KUBE_TEST_RESTART": f"{ROOT}/script/cluster restart {cluster.name} apiserver"}
        done = subprocess.run([PROGRAM], env=environment, capture_output=True, text=True, timeout=600)
        print(done.stdout)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
        assert "SKIPPED" not in done.stdout
