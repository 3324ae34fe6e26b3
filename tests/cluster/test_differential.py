"""Our operator and training-operator v1.9.4, on one API server with our definition of TFJob: the same is done to a job of
either, and what they make of it is the same, but for what docs/differences.md explains."""

import concurrent.futures
import contextlib
import dataclasses
import inspect

import pytest

from cluster import Cluster
from go_operator import go_operator
from our_operator import define, our_operator
from scenarios import SCENARIOS
from side_by_side import Pair, World
from yard import ROOT


@dataclasses.dataclass
class Difference:
    """Paths of a snapshot, and what is there: theirs, ours. All of them are regular expressions."""
    heading: str  # of docs/differences.md
    shows: dict
    always: bool = False  # in any job, whether it names the difference or not


def variable(name, value):
    path = rf"pod\..*\.spec\.containers\.tensorflow\.env\.{name}\."
    return {path + "name": ("", name), path + "value": ("", value)}


POD, SERVICE = r"pod\.[a-z]+-[0-9]+\.", r"service\.[a-z]+-[0-9]+\."
ANY = ".*"

ALLOWED = {
    # Of any job.
    "restart policy": Difference("Restarts are new pods", {POD + r"spec\.restartPolicy": ("Always|OnFailure", "Never")}, True),
    "log": Difference("The end of the log in the pod's status", {
        POD + r"spec\.containers\.tensorflow\.terminationMessagePolicy": ("File", "FallbackToLogsOnError")}, True),
    "variables": Difference("Variables", variable("WORKER_NUMBER", "[0-9]+") | variable("TOT_WORKERS", "[0-9]+") |
                            variable("TRAINYARD_JOB", ANY) | variable("TRAINYARD_ROLE", "[a-z]+") |
                            variable("TRAINYARD_INDEX", "[0-9]+") | variable("TRAINYARD_ATTEMPT", "[0-9]+") |
                            variable("PYTHONUNBUFFERED", "1") | variable("PYTHONFAULTHANDLER", "1"), True),
    "attempt": Difference("A label for the attempt", {POD + r"labels\.trainyard\.dev/attempt": ("", "[0-9]+")}, True),
    "finalizer": Difference("A finalizer on pods", {POD + r"finalizers\.[0-9]+": ("", "trainyard.dev/observed")}, True),
    "names first": Difference("Services first, and of pods that are not ready too", {
        "order": ("pods before services", "services, then pods"),
        SERVICE + r"spec\.publishNotReadyAddresses": ("", "true")}, True),
    "selector": Difference("Scaling", {r"selector\.Worker": ("", ".*replica-type=worker")}, True),
    # Of jobs to which something special happens.
}


@contextlib.contextmanager
def operators(cluster):
    with our_operator(cluster, "--namespace=ours"), \
            go_operator(cluster, own_crd=False, namespace="theirs", controller_threads=10, kube_api_qps=1000,
                        kube_api_burst=2000):
        yield


@pytest.fixture(scope="session")
def results(request):
    """What became of each scenario; those that do not yield run beside each other and beside the rest."""
    with Cluster.up() as cluster, concurrent.futures.ThreadPoolExecutor(16) as pool:
        define(cluster)
        cluster.api.post("/api/v1/nodes", {"metadata": {"name": "played"}})
        with contextlib.ExitStack() as closing:
            worlds = [closing.enter_context(contextlib.closing(World(cluster, name))) for name in ("theirs", "ours")]
            chosen = [item.callspec.params["name"] for item in request.session.items if hasattr(item, "callspec")]
            pairs = {name: Pair(name, *worlds, ALLOWED) for name in SCENARIOS if name in chosen}
            out = {}
            with operators(cluster):
                for name in pairs:
                    out[name] = pool.submit(SCENARIOS[name], pairs[name])
                concurrent.futures.wait(out.values())
            yield pairs, out


@pytest.mark.parametrize("name", SCENARIOS)
def test_same(results, name):
    results[1][name].result()
