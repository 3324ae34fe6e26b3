"""`trainyard operator` and what it meets in a cluster: rights, quotas, definitions of others."""

import contextlib
import copy
import os
import re
import subprocess
import time

import pytest
from cluster import ApiError, Cluster, holds
from jobs import LOOSE, apply_definition, create, events, namespace, path, worker
from trainyard_operator import install_crd, operator
from trials import SOAK
from yard import BINARY


@pytest.fixture(scope="module")
def cluster():
    with Cluster.up() as cluster:
        install_crd(cluster)
        yield cluster


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


def rejected(cluster, where, name):
    """A job whose pod the server rejects for good, once the job says so."""
    spec = copy.deepcopy(worker())
    spec["tfReplicaSpecs"]["Worker"]["template"]["spec"]["volumes"] = [{"name": "Not_A_Name"}]
    create(cluster, where, name, spec)
    cluster.wait(lambda: holds(cluster.api.get(path(where, name)), "Failed"), "the job has failed")
    assert "Not_A_Name" in str(cluster.api.get(path(where, name))["status"]["conditions"])


def has_pod_of(cluster, where, job):
    return any(owner["uid"] == job["metadata"]["uid"] for pod in cluster.pods(where) for owner in pod["metadata"]["ownerReferences"])


def test_a_job_that_was_rejected_is_deleted_and_applied_again_corrected_at_once(cluster):
    where = namespace(cluster, "corrected")
    with operator(cluster):
        for name in [f"job-{i}" for i in range(20 if SOAK else 3)]:
            rejected(cluster, where, name)
            cluster.api.delete(path(where, name))
            again = create(cluster, where, name, worker())
            cluster.wait(lambda: has_pod_of(cluster, where, again), f"{name}, corrected, has its pod")
            assert not holds(cluster.api.get(path(where, name)), "Failed")


def test_a_job_that_was_rejected_is_corrected_and_resumed(cluster):
    where = namespace(cluster, "resumed")
    with operator(cluster):
        rejected(cluster, where, "a")
        corrected = cluster.api.patch(path(where, "a"), {"spec": {"tfReplicaSpecs": {"Worker": {"template": {"spec": {"volumes": None}}}}}},
                                      kind="merge")
        done = subprocess.run([BINARY, "resume", "a", "--detach", "-n", where, "--on", "kubernetes"], capture_output=True, text=True, timeout=30,
                              env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig)})
        assert done.returncode == 0, done.stderr
        cluster.wait(lambda: has_pod_of(cluster, where, corrected), "the corrected job has its pod")


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
