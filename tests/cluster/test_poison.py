"""Objects that should never have got past a server: each is set aside with its reason, and nobody else waits."""

import collections
import contextlib
import json
import statistics
import threading
import time

import samples
from cluster import ApiError, Cluster
from jobs import LOOSE, apply_definition, create, namespace, path, worker
from mirror import Mirror
from trainyard_operator import operator


def poison(count):
    """Jobs that are none, by a field of a wrong kind somewhere."""
    wrong = [None, 0, -1, 1.5, 2**63, True, "", "x" * 70_000, "\u0000\ud7ff", [], [[]], {}, {"a": {"b": []}}, [None, {"name": []}]]
    places = [("spec",), ("spec", "tfReplicaSpecs"), ("spec", "tfReplicaSpecs", "Worker"), ("spec", "tfReplicaSpecs", "Worker", "replicas"),
              ("spec", "tfReplicaSpecs", "Worker", "restartPolicy"), ("spec", "tfReplicaSpecs", "Worker", "template"),
              ("spec", "tfReplicaSpecs", "Worker", "template", "spec"), ("spec", "tfReplicaSpecs", "Worker", "template", "spec", "containers"),
              ("spec", "tfReplicaSpecs", "Worker", "template", "metadata"), ("spec", "tfReplicaSpecs", "Nobody"), ("spec", "runPolicy"),
              ("spec", "runPolicy", "backoffLimit"), ("spec", "runPolicy", "cleanPodPolicy"), ("spec", "runPolicy", "activeDeadlineSeconds"),
              ("spec", "runPolicy", "ttlSecondsAfterFinished"), ("spec", "runPolicy", "schedulingPolicy"), ("spec", "runPolicy", "managedBy"),
              ("spec", "successPolicy"), ("spec", "enableDynamicWorker"), ("spec", "replicaSpecs"), ("status",), ("status", "conditions"),
              ("status", "replicaStatuses"), ("status", "completed"), ("status", "units"), ("status", "gang"), ("status", "attempt"),
              ("status", "startTime"), ("status", "incidents"), ("status", "shape"), ("metadata", "annotations", "trainyard.dev/elastic"),
              ("metadata", "annotations", "trainyard.dev/start-deadline"), ("metadata", "labels", "training.kubeflow.org/job-name")]
    number = 0
    while True:
        for place in places:
            for value in wrong:
                job = json.loads(json.dumps(samples.job(worker(1), name=f"p{number}")))
                at = job
                for part in place[:-1]:
                    at = at.setdefault(part, {})
                if place[0] == "metadata" and not isinstance(value, str):
                    continue
                at[place[-1]] = value
                yield job
                number += 1
                if number == count:
                    return


def test_poison_is_set_aside_and_nobody_else_waits():
    """500 objects that should never have got past a server, through a definition that checks nothing."""
    with Cluster.up(audit=True) as cluster:
        apply_definition(cluster, LOOSE)
        good, bad = namespace(cluster, "good"), namespace(cluster, "bad")

        pods = Mirror(cluster.api, f"/api/v1/namespaces/{good}/pods", threading.Condition(), lambda pod: None)

        def seconds_to_pod(name):
            began = time.monotonic()
            create(cluster, good, name, worker())
            with pods.changed:
                assert pods.changed.wait_for(lambda: f"{name}-worker-0" in pods.objects, 60), f"pod of {name}"
            return time.monotonic() - began
        with operator(cluster) as it:
            alone = [seconds_to_pod(f"before-{i}") for i in range(20)]
            among, stored = [], []
            for job in poison(500):
                with contextlib.suppress(ApiError):
                    stored.append(cluster.api.post(path(bad), job)["metadata"]["name"])
                    if "status" in job:
                        cluster.api.patch(path(bad, stored[-1]) + "/status", {"status": job["status"]}, kind="merge")
                if len(stored) % 25 == 12:
                    among.append(seconds_to_pod(f"among-{len(stored)}"))
            assert len(stored) > 400, "the server itself refused most of it"

            def untouched():
                """Jobs that say nothing of themselves yet; those that are somebody else's to manage never will."""
                return [job["metadata"]["name"] for job in cluster.api.get(path(bad))["items"]
                        if not conditions(job) and "managedBy" not in str(job.get("spec"))]
            cluster.wait(lambda: not untouched(), "every job is taken up or set aside", 60)
            refused = [c for job in cluster.api.get(path(bad))["items"] for c in conditions(job) if c.get("reason") == "TFJobFailedValidation"]
            assert all("the spec is invalid: " in c["message"] for c in refused)
            assert len(refused) > 200, "most of it is no job"
            assert it.process.poll() is None
            seconds_to_pod("after")
            pods.stop()
            print(f"{len(stored)} stored, {len(refused)} set aside; a job has its pod after {middle(alone)} alone, {middle(among)} among poison")

        # Nobody is written to again and again: what is wrong with an object does not change by looking.
        writes = collections.Counter(ref["name"] for ref in writes_to_jobs(cluster) if ref["namespace"] == bad)
        assert max(writes.values()) <= 4, writes.most_common(5)


def conditions(job):
    found = job["status"].get("conditions") if isinstance(job.get("status"), dict) else None
    return [c for c in found if isinstance(c, dict)] if isinstance(found, list) else []


def middle(seconds):
    return f"{statistics.median(seconds) * 1000:.0f} ms ({max(seconds) * 1000:.0f} at most)"


def writes_to_jobs(cluster):
    """Statuses that the operator wrote, by the server's audit log."""
    for request in cluster.requests():
        if request.get("userAgent", "").startswith("trainyard") and request["verb"] == "patch" and request["objectRef"]["resource"] == "tfjobs":
            yield request["objectRef"]
