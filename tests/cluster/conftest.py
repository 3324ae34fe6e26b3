"""What the tests of the cluster have in common: one with a node for all that only look at pods."""

import pytest

from cluster import Cluster


@pytest.fixture(scope="session")
def node():
    with Cluster.up(nodes=1) as cluster:
        yield cluster
