"""Nine jobs at once on a node with eight places, as the sweep of the learnk8s tutorial submits them, without a gang scheduler.

A place is an extended resource of the node, so the size of the machine and the pods of other tests do not matter. The manifests do not
request it: a LimitRange adds it to every container, as those of the tutorial's workspaces do.
"""

import time

import pytest

import jobs
from cluster import holds
from there import IMAGE

PLACES = 8
PLACE, LATE = "trainyard.test/place", "trainyard.test/late"
# Needs its peer to go on, as a collective does: it calls the peer, and waits for the peer's call.
MEETS = """
import json, os, socket, time
config = json.loads(os.environ["TF_CONFIG"])
own, peer = config["task"]["type"], {"chief": "worker", "worker": "chief"}[config["task"]["type"]]
server = socket.create_server(("", int(config["cluster"][own][0].split(":")[1])))
host, port = config["cluster"][peer][0].split(":")
while True:
    try:
        with socket.create_connection((host, int(port)), timeout=5):
            break
    except OSError:
        time.sleep(0.05)
server.accept()
"""


def job():
    def replica(**more):
        container = {"name": "tensorflow", "image": IMAGE, "command": ["python", "-c", MEETS], "resources": {"limits": more}}
        # The first process of a container ignores SIGTERM unless it has a handler.
        pod = {"terminationGracePeriodSeconds": 1, "containers": [container]}
        return {"replicas": 1, "restartPolicy": "ExitCode", "template": {"spec": pod}}
    return {"runPolicy": {}, "tfReplicaSpecs": {"Chief": replica(), "Worker": replica(**{LATE: "1"})}}


@pytest.fixture
def space(operated):
    name = jobs.namespace(operated, "nine-jobs")
    operated.wait(lambda: operated.api.get(f"/api/v1/namespaces/{name}/serviceaccounts/default"), "the service account")
    operated.api.post(f"/api/v1/namespaces/{name}/limitranges", {"metadata": {"name": "places"}, "spec": {"limits": [
        {"type": "Container", "default": {PLACE: "1"}, "defaultRequest": {PLACE: "1"}}]}})
    yield name
    operated.kubectl("delete", "namespace", name, "--wait=false")
    operated.wait(lambda: not operated.pods(name), "its pods are gone")
    operated.offer(**{PLACE: None, LATE: None})


def test_nine_jobs_that_hold_half_of_their_places_all_succeed(operated, space):
    """The chiefs of eight jobs take all places before a worker can have one: a deadlock, unless some of the jobs back off."""
    names = [f"job{number}" for number in range(9)]
    for name in names:
        jobs.create(operated, space, name, job())

    def placed():
        return [pod["metadata"]["name"].rsplit("-", 2)[1] for pod in operated.pods(space) if pod["spec"].get("nodeName")]
    operated.wait(lambda: len(operated.pods(space)) == 18, "all pods are there")
    operated.offer(**{PLACE: str(PLACES)})
    operated.wait(lambda: placed() == ["chief"] * PLACES, "every place is taken by a chief")
    operated.offer(**{LATE: "100"})
    began = time.monotonic()

    def left():
        found = {name: operated.api.get(jobs.path(space, name)) for name in names}
        assert not any(holds(job, "Failed") for job in found.values()), found
        return [name for name, job in found.items() if not holds(job, "Succeeded")]
    operated.wait(lambda: not left(), "all nine have succeeded", 120)
    statuses = [operated.api.get(jobs.path(space, name))["status"] for name in names]
    assert {(status.get("restarts", 0), status.get("disruptions", 0)) for status in statuses} == {(0, 0)}
    away = [event for event in jobs.events(operated, space) if event.startswith("TFJobBackedOff: ")]
    assert away, "no job backed off"
    print(f"nine jobs took {time.monotonic() - began:.1f} s, {len(away)} events of back-off")
