"""`trainyard operator` and gang schedulers: the PodGroup of a job, as Volcano and the scheduler plugins read it. Of these there
are only the definitions, as loose as can be; what they would do to a group, the test does."""

import json

import pytest
from cluster import holds
from jobs import LOOSE, create, events, namespace, path
from play_kubelet import PlayKubelet
from samples import TENSORFLOW, pod
from trainyard_operator import operator
from yard import ROOT

VOLCANO, PLUGINS = "scheduling.volcano.sh/v1beta1", "scheduling.x-k8s.io/v1alpha1"


def install(cluster, kind):
    group, version = kind.split("/")
    definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                  "metadata": {"name": f"podgroups.{group}"},
                  "spec": {"group": group, "scope": "Namespaced", "names": {"kind": "PodGroup", "plural": "podgroups"},
                           "versions": [{"name": version, "served": True, "storage": True, "subresources": {"status": {}},
                                         "schema": {"openAPIV3Schema": LOOSE}}]}}
    cluster.kubectl("apply", "-f", "-", input=json.dumps(definition))
    cluster.wait(lambda: holds(cluster.json("get", "crd", f"podgroups.{group}"), "Established"), "established")
    cluster.wait(lambda: cluster.api.get(f"/apis/{kind}/podgroups"), "served")


def rights(cluster, where, folder):
    """A kubeconfig with those that deploy/ has for an operator of one namespace."""
    (folder / "rbac.yaml").write_text((ROOT / "deploy/rbac-namespaced.yaml").read_text())
    (folder / "kustomization.yaml").write_text(f"namespace: {where}\nresources: [rbac.yaml]\n")
    cluster.kubectl("apply", "-k", folder)
    return cluster.as_user(f"system:serviceaccount:{where}:trainyard-operator")


class Gang:
    """A namespace with an operator for a gang scheduler of its own."""

    def __init__(self, cluster, where, kind):
        self.cluster, self.api, self.where = cluster, cluster.api, namespace(cluster, where)
        self.groups = f"/apis/{kind}/namespaces/{where}/podgroups"
        self.kubelet = PlayKubelet(cluster.api, where)

    def create(self, name, run_policy, annotations=None, **counts):
        template = pod({**TENSORFLOW, "resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": 2, "memory": "1Gi"}}})
        replicas = {role: {"replicas": count, "template": template} for role, count in counts.items()}
        spec = {"runPolicy": run_policy, "tfReplicaSpecs": replicas}
        return self.api.post(path(self.where), {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "spec": spec,
                                                "metadata": {"name": name, "annotations": annotations or {}}})

    def edit(self, name, spec):
        self.api.patch(path(self.where, name), {"spec": spec})

    def group(self, name):
        return self.api.get(f"{self.groups}/{name}")

    def made(self, name):
        return self.cluster.wait(lambda: self.group(name), f"a group {name}")

    def gone(self, name):
        self.cluster.wait(lambda: name not in [one["metadata"]["name"] for one in self.api.get(self.groups)["items"]],
                          f"no group {name}")

    def admit(self, name, phase):
        self.api.patch(f"{self.groups}/{name}/status", {"status": {"phase": phase}})

    def pods(self, job, count):
        of_job = f"training.kubeflow.org/job-name={job}"
        self.cluster.wait(lambda: len(self.cluster.pods(self.where, of_job)) == count, f"{count} pods")
        return self.cluster.pods(self.where, of_job)

    def services(self, count):
        self.cluster.wait(lambda: len(self.api.get(f"/api/v1/namespaces/{self.where}/services")["items"]) == count, "services")

    def told(self, reason):
        return [line for line in events(self.cluster, self.where) if line.startswith(f"{reason}: ")]


@pytest.fixture(scope="module")
def volcano(tfjobs, tmp_path_factory):
    install(tfjobs, VOLCANO)
    gang = Gang(tfjobs, "volcano", VOLCANO)
    kubeconfig = rights(tfjobs, gang.where, tmp_path_factory.mktemp("rights"))
    with operator(tfjobs, "--gang-scheduler-name=Volcano", "--namespace=volcano", kubeconfig=kubeconfig):
        yield gang


@pytest.fixture(scope="module")
def plugins(tfjobs):
    """Its definition comes late: the operator says what it waits for, and goes on when it is there."""
    gang = Gang(tfjobs, "plugins", PLUGINS)
    with operator(tfjobs, "--gang-scheduler-name=scheduler-plugins-scheduler", "--namespace=plugins", wait=False) as it:
        tfjobs.wait(lambda: "podgroups: 404" in it.said(), "it says what is missing")
        install(tfjobs, PLUGINS)
        yield gang


def test_volcano_gets_a_group_before_the_pods_and_they_wait_for_its_word(volcano):
    job = volcano.create("a", {"schedulingPolicy": {"queue": "night", "priorityClass": "high"}}, {"note": "kept"},
                         Chief=1, Worker=2)
    group = volcano.made("a")
    assert group["spec"] == {"minMember": 3, "minResources": {"cpu": "1500m"}, "queue": "night", "priorityClassName": "high"}
    assert group["metadata"]["annotations"] == {"note": "kept"}
    [owner] = group["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("TFJob", job["metadata"]["uid"], True)
    volcano.services(3)
    volcano.admit("a", "Pending")
    assert not volcano.cluster.pods(volcano.where)
    volcano.admit("a", "Inqueue")
    for one in volcano.pods("a", 3):
        role = one["metadata"]["labels"]["training.kubeflow.org/replica-type"]
        assert one["spec"]["schedulerName"] == "volcano"
        assert one["metadata"]["annotations"] == {"scheduling.k8s.io/group-name": "a", "volcano.sh/task-spec": role}

    # A group in another queue is left there, and written only when it changes.
    volcano.api.patch(f"{volcano.groups}/a", {"spec": {"queue": "day"}})
    volcano.edit("a", {"tfReplicaSpecs": {"Worker": {"replicas": 3}}})
    volcano.cluster.wait(lambda: volcano.group("a")["spec"]["minMember"] == 4, "the group grows")
    assert volcano.group("a")["spec"]["queue"] == "day"
    before = volcano.group("a")["metadata"]["resourceVersion"]
    volcano.pods("a", 4)
    volcano.kubelet.running("a-chief-0")
    volcano.cluster.wait(lambda: holds(volcano.api.get(path(volcano.where, "a")), "Running"), "it runs")
    assert volcano.group("a")["metadata"]["resourceVersion"] == before
    volcano.kubelet.ended("a-chief-0")
    volcano.gone("a")
    assert holds(volcano.api.get(path(volcano.where, "a")), "Succeeded")
    volcano.cluster.wait(lambda: volcano.told("SuccessfulDeletePodGroup"), "an event")
    assert volcano.told("JobTerminated") == ["JobTerminated: Job has been terminated. Deleting PodGroup"]


def test_scheduler_plugins_get_a_group_that_follows_the_job(plugins):
    """As the end-to-end test of the SDK has it: more members than there are, then one; and suspended on the way."""
    policy = {"minAvailable": 10, "minResources": {"cpu": 3}, "scheduleTimeoutSeconds": 60}
    plugins.create("b", {"schedulingPolicy": policy}, Worker=2)
    assert plugins.made("b")["spec"] == {"minMember": 10, "minResources": {"cpu": 3}, "scheduleTimeoutSeconds": 60}
    for one in plugins.pods("b", 2):
        assert one["spec"]["schedulerName"] == "scheduler-plugins-scheduler"
        assert one["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == "b"
    plugins.edit("b", {"runPolicy": {"schedulingPolicy": {"minAvailable": 1}}})
    plugins.cluster.wait(lambda: plugins.group("b")["spec"]["minMember"] == 1, "one is enough")
    first = plugins.group("b")["metadata"]["uid"]
    plugins.edit("b", {"runPolicy": {"suspend": True}})
    plugins.gone("b")
    plugins.pods("b", 0)
    plugins.edit("b", {"runPolicy": {"suspend": False}})
    assert plugins.made("b")["metadata"]["uid"] != first
    plugins.pods("b", 2)


def test_a_template_that_names_another_scheduler_keeps_it_and_is_told_of(plugins):
    template = pod(TENSORFLOW, schedulerName="mine")
    create(plugins.cluster, plugins.where, "c", {"tfReplicaSpecs": {"Worker": {"template": template}}})
    [one] = plugins.pods("c", 1)
    assert one["spec"]["schedulerName"] == "mine"
    plugins.cluster.wait(lambda: plugins.told("SetPodTemplateSchedulerName"), "an event")
