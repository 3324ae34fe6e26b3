"""What the tests of the cluster have in common: servers that several of them share."""

import pytest

from cluster import Cluster
from yard import ROOT


@pytest.fixture(scope="session")
def node():
    """A whole Kubernetes, for tests that only look at pods."""
    with Cluster.up(nodes=1) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def tfjobs():
    """An API server that knows TFJob; nobody looks after the jobs."""
    with Cluster.up() as cluster:
        cluster.kubectl("apply", "-f", ROOT / "deploy/crd.yaml")
        for version in ("v1", "v1beta2", "v1beta1", "v1alpha2", "v1alpha1"):
            cluster.wait(lambda: cluster.api.get(f"/apis/kubeflow.org/{version}/tfjobs"), f"TFJob {version}")
        yield cluster
