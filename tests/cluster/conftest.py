"""What the tests of the cluster have in common: servers that several of them share.

There are three parts, which script/test runs beside each other, since all wait most of the time: tests on paper, with an API server
alone, tests with a node, where pods run, and those that train there for long, on a node of their own. The last test looks at what operators
asked of the servers of all.
"""

import json
import os
import pathlib

import pytest

from cluster import Cluster
from lives import Stage
from trainyard_operator import install_crd, operator
from trials import make_references
from yard import write_image


ASKED = os.environ.get("TRAINYARD_ASKED", "")  # a folder, for what operators asked in each part
PARTS = ["paper", "node", "trains"]


def pytest_addoption(parser):
    parser.addoption("--part", choices=PARTS)


def pytest_configure(config):
    config.addinivalue_line("markers", "node: it starts a node of its own")
    config.addinivalue_line("markers", "trains: pods train for long, on a node")
    config.addinivalue_line("markers", "last: looks at what all the others have left")


def pytest_collection_modifyitems(config, items):
    if part := config.getoption("part"):
        items[:] = [item for item in items if part_of(item) == part and not item.get_closest_marker("last")]


def part_of(item):
    if item.get_closest_marker("trains"):
        return "trains"
    return "node" if "node" in item.fixturenames or item.get_closest_marker("node") else "paper"


def pytest_sessionfinish(session):
    """All servers are down: what was asked of them is known. Nothing is told unless the whole part ran."""
    part = session.config.getoption("part")
    if part and ASKED and not session.config.option.keyword:
        pathlib.Path(ASKED, f"{part}.json").write_text(json.dumps(sorted(Cluster.were_asked)))


@pytest.fixture(scope="session")
def node():
    """A whole Kubernetes, for tests that only look at pods."""
    with Cluster.up(nodes=1) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def image(tmp_path_factory):
    """The archive of trainyard:latest, with the program under test."""
    return write_image(tmp_path_factory.mktemp("image") / "trainyard.tar")


@pytest.fixture(scope="session")
def with_image(node, image):
    """A whole Kubernetes whose node has trainyard:latest."""
    node.load_image(image)
    return node


@pytest.fixture(scope="session")
def tfjobs():
    """An API server that knows TFJob; nobody looks after the jobs."""
    with Cluster.up() as cluster:
        install_crd(cluster)
        yield cluster


@pytest.fixture(scope="module")
def operated(node):
    """A whole Kubernetes that knows TFJob, and our operator at work: `operated.operator`."""
    install_crd(node)
    with operator(node) as node.operator:
        yield node


@pytest.fixture(scope="session")
def stage(tfjobs, tmp_path_factory):
    """There jobs live, with a node that is played and an operator for each."""
    stage = Stage(tfjobs, tmp_path_factory.mktemp("lives"))
    yield stage
    stage.close()


@pytest.fixture(scope="session")
def references(stage):
    """What each workload comes to without faults."""
    return make_references(stage)
