"""`trainyard operator` and what it meets in a cluster: rights, quotas, definitions of others, poison."""

import contextlib
import json
import re
import time

import pytest
import samples
from cluster import ApiError, Cluster, holds
from play_kubelet import PlayKubelet
from trainyard_operator import install_crd, operator
from yard import ROOT

USER = "operator-under-test"


def worker(count=1, **spec):
    return {"runPolicy": {}, **spec, "tfReplicaSpecs": {"Worker": {"replicas": count, "template": samples.POD}}}


def path(namespace, name=""):
    return f"/apis/kubeflow.org/v1/namespaces/{namespace}/tfjobs" + (f"/{name}" if name else "")


def namespace(cluster, name):
    cluster.api.post("/api/v1/namespaces", {"metadata": {"name": name}})
    return name


def create(cluster, where, name, spec):
    return cluster.api.post(path(where), samples.job(spec, name=name))


def events(cluster, where):
    return [event["reason"] + ": " + event["message"] for event in cluster.api.get(f"/api/v1/namespaces/{where}/events")["items"]]


@pytest.fixture(scope="module")
def cluster():
    with Cluster.up(audit=True) as cluster:
        install_crd(cluster)
        cluster.kubectl("create", "namespace", "trainyard-system")
        cluster.kubectl("apply", "-f", ROOT / "deploy/rbac.yaml")
        # The rights of the service account, for somebody with a certificate.
        for kind, name, *where in (["clusterrolebinding", "test", "--clusterrole=trainyard-operator"],
                                   ["rolebinding", "test-lease", "--role=trainyard-operator-lease", "-n", "trainyard-system"]):
            cluster.kubectl("create", kind, name, *where, f"--user={USER}")
        yield cluster


def test_what_it_may_is_what_it_does(cluster, monkeypatch):
    """The whole life of jobs with the rights that deploy/ grants, by the server's own record of what was asked."""
    monkeypatch.setenv("MY_POD_NAMESPACE", "trainyard-system")
    where = namespace(cluster, "rights")
    kubelet = PlayKubelet(cluster.api, where)
    with operator(cluster, "--leader-elect", kubeconfig=cluster.as_user(USER)) as it:
        create(cluster, where, "a", worker(2, runPolicy={"cleanPodPolicy": "All", "ttlSecondsAfterFinished": 0}))
        create(cluster, where, "b", worker(1, runPolicy={"suspend": True}))
        cluster.wait(lambda: len(cluster.pods(where)) == 2, "pods")
        cluster.wait(lambda: "leading" in it.said(), "it leads")
        for pod in ("a-worker-0", "a-worker-1"):
            kubelet.running(pod)
        # A pod whose name is taken is looked at; one that was made before a crash is not made again.
        it.restart()
        cluster.api.patch(path(where, "b"), {"spec": {"runPolicy": {"suspend": False}}}, kind="merge")
        cluster.wait(lambda: len(cluster.pods(where)) == 3, "pods of b")
        for pod in ("a-worker-0", "a-worker-1"):
            kubelet.ended(pod)
        cluster.wait(lambda: [job["metadata"]["name"] for job in cluster.api.get(path(where))["items"]] == ["b"], "TTL")
        cluster.api.delete(path(where, "b"))
        cluster.wait(lambda: not cluster.pods(where), "no pods")
    asked, refused = set(), []
    for event in cluster.requests():
        if event["user"]["username"] != USER or event["stage"] != "ResponseComplete":
            continue
        ref = event.get("objectRef", {})
        what = ref.get("resource", "") + ("/" + ref["subresource"] if "subresource" in ref else "")
        asked.add((ref.get("apiGroup", ""), what, event["verb"]))
        if event["responseStatus"]["code"] in (401, 403):
            refused.append((what, event["verb"], event["responseStatus"]))
    assert not refused
    granted = set()
    for kind, name, *more in (["clusterrole", "trainyard-operator"], ["role", "trainyard-operator-lease", "-n", "trainyard-system"]):
        for rule in cluster.json("get", kind, name, *more)["rules"]:
            granted |= {(group, resource, verb) for group in rule["apiGroups"] for resource in rule["resources"] for verb in rule["verbs"]}
    # Used in other tests only: pod groups need a gang scheduler's definitions; a GET of a pod or service follows an
    # answer that was lost; OpenShift asks for the right over finalizers.
    elsewhere = {grant for grant in granted if grant[1] in ("podgroups", "tfjobs/finalizers")}
    elsewhere |= {("", "pods", "get"), ("", "services", "get"), ("", "events", "patch"), ("kubeflow.org", "tfjobs", "get")}
    assert asked <= granted
    assert granted - asked <= elsewhere, f"granted and never used: {sorted(granted - asked - elsewhere)}"


def test_without_rights_it_says_so_and_waits(cluster):
    with operator(cluster, kubeconfig=cluster.as_user("nobody-in-particular"), wait=False) as it:
        cluster.wait(lambda: re.search(r"waiting: list .*tfjobs: 403 Forbidden: .*User \"nobody-in-particular\" cannot list", it.said()),
                     "it says what it may not")
        assert it.process.poll() is None


def test_a_full_quota_is_told_and_waited_for(cluster):
    where = namespace(cluster, "quota")
    cluster.api.post(f"/api/v1/namespaces/{where}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}})
    cluster.wait(lambda: cluster.api.get(f"/api/v1/namespaces/{where}/resourcequotas/q").get("status", {}).get("hard"), "the quota counts")
    with operator(cluster) as it:
        create(cluster, where, "a", worker(2))
        cluster.wait(lambda: any("exceeded quota" in event for event in events(cluster, where)), "an event")
        assert len(cluster.pods(where)) == 1
        cluster.api.patch(f"/api/v1/namespaces/{where}/resourcequotas/q", {"spec": {"hard": {"pods": "9"}}}, kind="merge")
        cluster.wait(lambda: len(cluster.pods(where)) == 2, "the second pod")
        assert it.process.poll() is None


def test_a_namespace_that_goes_takes_its_jobs_along(cluster):
    where = namespace(cluster, "going")
    with operator(cluster):
        create(cluster, where, "a", worker(2))
        cluster.wait(lambda: len(cluster.pods(where)) == 2, "pods")
        cluster.api.delete(f"/api/v1/namespaces/{where}")

        def gone():
            with contextlib.suppress(ApiError):
                cluster.api.get(f"/api/v1/namespaces/{where}")
                return False
            return True
        cluster.wait(gone, "the namespace is gone, finalizers and all")


def test_of_two_only_one_leads_and_the_other_takes_over_at_once(cluster):
    where = namespace(cluster, "leaders")
    with operator(cluster, "--leader-elect") as first:
        cluster.wait(lambda: "leading" in first.said(), "the first leads")
        with operator(cluster, "--leader-elect") as second:
            assert "leading" not in second.said().replace("another operator leads", "")
            began = time.monotonic()
            first.stop()
            cluster.wait(lambda: re.search(r"Z leading", second.said()), "the second leads", 20)
            print(f"handed over in {time.monotonic() - began:.1f} s")
            create(cluster, where, "a", worker())
            cluster.wait(lambda: cluster.pods(where), "a pod")


LOOSE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition_of_another(schema):
    """A TFJob that lets anything through, or drops what it does not know."""
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "tfjobs.kubeflow.org"},
            "spec": {"group": "kubeflow.org", "scope": "Namespaced", "names": {"kind": "TFJob", "plural": "tfjobs"},
                     "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                                   "schema": {"openAPIV3Schema": schema}}]}}


def apply_definition(cluster, schema):
    cluster.kubectl("apply", "-f", "-", input=json.dumps(definition_of_another(schema)))
    cluster.wait(lambda: holds(cluster.json("get", "crd", "tfjobs.kubeflow.org"), "Established"), "established")
    cluster.wait(lambda: cluster.api.get("/apis/kubeflow.org/v1/tfjobs"), "served")


def test_a_definition_that_drops_our_status_is_told_and_nothing_is_started():
    conditions = {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    schema = {"type": "object", "properties": {"spec": LOOSE, "status": {"type": "object", "properties": {"conditions": conditions}}}}
    with Cluster.up() as cluster:
        apply_definition(cluster, schema)
        with operator(cluster):
            create(cluster, "default", "a", worker(2))
            cluster.wait(lambda: any("deploy/crd.yaml" in event for event in events(cluster, "default")), "an event")
            assert not cluster.pods()
            install_crd(cluster)
            cluster.wait(lambda: len(cluster.pods()) == 2, "with our definition it goes on", 90)


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
    with Cluster.up() as cluster:
        apply_definition(cluster, LOOSE)
        good, bad = namespace(cluster, "good"), namespace(cluster, "bad")

        def seconds_to_pod(name):
            began = time.monotonic()
            create(cluster, good, name, worker())
            cluster.wait(lambda: any(pod["metadata"]["name"] == f"{name}-worker-0" for pod in cluster.pods(good)), f"pod of {name}")
            return time.monotonic() - began
        with operator(cluster) as it:
            alone = sorted(seconds_to_pod(f"before-{i}") for i in range(5))
            stored = []
            for job in poison(500):
                with contextlib.suppress(ApiError):
                    stored.append(cluster.api.post(path(bad), {**job, "status": None} if job.get("status") is None else job)["metadata"]["name"])
                    if "status" in job:
                        cluster.api.patch(path(bad, stored[-1]) + "/status", {"status": job["status"]}, kind="merge")
                if len(stored) % 100 == 50:
                    alone.append(seconds_to_pod(f"among-{len(stored)}"))
            among = alone[5:]
            print(f"{len(stored)} stored; a job has its pod after {alone[2] * 1000:.0f} ms alone, {max(among) * 1000:.0f} ms at most among poison")

            def conditions(job):
                found = job["status"].get("conditions") if isinstance(job.get("status"), dict) else None
                return [c for c in found if isinstance(c, dict)] if isinstance(found, list) else []

            def untouched():
                """Jobs that say nothing of themselves yet; those that are somebody else's to manage never will."""
                return [job["metadata"]["name"] for job in cluster.api.get(path(bad))["items"]
                        if not conditions(job) and "managedBy" not in str(job.get("spec"))]
            cluster.wait(lambda: not untouched(), "every job is taken up or set aside", 30)
            refused = 0
            for job in cluster.api.get(path(bad))["items"]:
                for condition in conditions(job):
                    if condition.get("reason") == "TFJobFailedValidation":
                        assert "the spec is invalid: " in condition["message"]
                        refused += 1
            assert refused > 200, "most of it is no job"
            assert it.process.poll() is None
            assert seconds_to_pod("after") < 10
