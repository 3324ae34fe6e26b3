"""Clients that we did not write and did not change, kubectl and the `kubeflow-training` SDK, against our operator."""

import json

import pytest
from kubeflow.training import TrainingClient, models

from cluster import ApiError, holds

SMALL = "trainyard.test/small:1"
STAYS = "echo up; while true; do sleep 1; done"
# Until somebody says so: kubectl exec POD -- touch /tmp/done
STAYS_UNTIL_DONE = "echo up; until test -e /tmp/done; do sleep 1; done; echo trained"
SPACE = "clients"


class Space:
    """A namespace of the cluster, as a person sees it who works in it."""

    def __init__(self, cluster, name):
        cluster.kubectl("create", "namespace", name)
        self.cluster, self.api, self.name = cluster, cluster.api, name
        self.jobs = f"/apis/kubeflow.org/v1/namespaces/{name}/tfjobs"

    def kubectl(self, *words, **options):
        return self.cluster.kubectl("-n", self.name, *words, **options)

    def create(self, job):
        self.kubectl("create", "-f", "-", input=json.dumps(job))
        return job["metadata"]["name"]

    def job(self, name):
        return self.api.get(f"{self.jobs}/{name}")

    def pods(self, name):
        return {pod["metadata"]["name"]: pod for pod in
                self.cluster.pods(self.name, f"training.kubeflow.org/job-name={name}")}

    def services(self, name):
        path = f"/api/v1/namespaces/{self.name}/services?labelSelector=training.kubeflow.org/job-name={name}"
        return {one["metadata"]["name"] for one in self.api.get(path)["items"]}

    def wait(self, condition, what):
        return self.cluster.wait(condition, what, 180)

    def running(self, name, *pods):
        """Waits until the job runs, with exactly these pods, all running, and returns them."""
        def all_run():
            found = self.pods(name)
            return found.keys() == {*pods} and holds(self.job(name), "Running") and found if all(
                pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
                for pod in found.values()) else None
        return self.wait(all_run, f"{name} runs as {pods}")

    def ended(self, name, condition="Succeeded"):
        """Waits until the job has ended, so, and returns it."""
        job = self.wait(lambda: "completionTime" in (found := self.job(name)).get("status", {}) and found, f"{name} ends")
        assert holds(job, condition), job["status"]
        return job

    def exists(self, name):
        try:
            return bool(self.job(name))
        except ApiError as error:
            assert error.status == 404
            return False

    def nothing_left(self, name):
        self.wait(lambda: not self.exists(name) and not self.pods(name) and not self.services(name), f"nothing left of {name}")


@pytest.fixture(scope="module")
def space(operated):
    yield Space(operated, SPACE)
    operated.kubectl("delete", "namespace", SPACE)


@pytest.fixture(scope="module")
def sdk(space):
    return TrainingClient(config_file=str(space.cluster.kubeconfig), namespace=SPACE, job_kind="TFJob")


def template(script):
    return {"spec": {"terminationGracePeriodSeconds": 1,
                     "containers": [{"name": "tensorflow", "image": SMALL, "command": ["sh", "-c", script]}]}}


def job(name, *, run_policy=None, **scripts):
    """`Worker=SCRIPT` is one worker, `Worker=(3, SCRIPT)` are three."""
    counted = {type: one if isinstance(one, tuple) else (1, one) for type, one in scripts.items()}
    return {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name},
            "spec": {"runPolicy": run_policy or {},
                     "tfReplicaSpecs": {type: {"replicas": count, "restartPolicy": "OnFailure", "template": template(script)}
                                        for type, (count, script) in counted.items()}}}


# -- kubectl

def test_kubectl_creates_looks_at_and_deletes_a_job(space):
    name = space.create(job("looked-at", Chief=STAYS_UNTIL_DONE, PS=STAYS, Worker=STAYS))
    space.running(name, "looked-at-chief-0", "looked-at-ps-0", "looked-at-worker-0")
    assert space.services(name) == {"looked-at-chief-0", "looked-at-ps-0", "looked-at-worker-0"}
    [line] = space.kubectl("get", "tfjob", name, "--no-headers").splitlines()
    assert line.split()[:2] == ["looked-at", "Running"]
    described = space.kubectl("describe", "tfjob", name)
    assert "SuccessfulCreatePod" in described and "Created pod: looked-at-worker-0" in described
    assert "SuccessfulCreateService" in described and "Created service: looked-at-ps-0" in described
    assert "TFJob clients/looked-at is running." in described

    space.kubectl("exec", "looked-at-chief-0", "--", "touch", "/tmp/done")
    space.kubectl("wait", "--for=condition=Succeeded", "tfjob/looked-at", "--timeout=120s")
    assert space.kubectl("logs", "looked-at-chief-0") == "up\ntrained\n"
    logs = space.kubectl("logs", "--prefix", "-l", "training.kubeflow.org/job-name=looked-at")
    assert "[pod/looked-at-ps-0/tensorflow] up" in logs
    # As v1.9: without a cleanPodPolicy what still runs is left.
    assert space.pods(name)["looked-at-ps-0"]["status"]["phase"] == "Running"
    assert "TFJobSucceeded" in space.kubectl("events", "--for", "tfjob/looked-at")
    space.kubectl("delete", "tfjob", name)
    space.nothing_left(name)


@pytest.mark.parametrize("how", ["background", "foreground"])
def test_kubectl_deletes_a_running_job_with_all_that_is_its(space, how):
    name = space.create(job(f"goes-{how}", Worker=(2, STAYS)))
    space.running(name, f"{name}-worker-0", f"{name}-worker-1")
    space.kubectl("delete", "tfjob", name, f"--cascade={how}", "--timeout=60s")
    space.nothing_left(name)


def test_pods_that_a_deleted_job_leaves_behind_are_held_by_nobody(space):
    name = space.create(job("orphans", Worker=(2, STAYS)))
    before = space.running(name, "orphans-worker-0", "orphans-worker-1")
    space.kubectl("delete", "tfjob", name, "--cascade=orphan")
    space.wait(lambda: not space.exists(name) and not any(
        pod["metadata"].get("finalizers") for pod in space.pods(name).values()), "no finalizer is left")
    after = space.pods(name)
    assert {pod["metadata"]["uid"] for pod in after.values()} == {pod["metadata"]["uid"] for pod in before.values()}
    assert {pod["status"]["phase"] for pod in after.values()} == {"Running"}
    space.kubectl("delete", "pods,services", "-l", "training.kubeflow.org/job-name=orphans")
    space.nothing_left(name)


def test_kubectl_deletes_a_namespace_with_the_jobs_in_it(operated):
    """A namespace that goes takes pods away before jobs: those of a living job come to an end all the same."""
    going = Space(operated, "going")
    going.create(job("lives", Worker=(2, STAYS)))
    going.running("lives", "lives-worker-0", "lives-worker-1")
    operated.kubectl("delete", "namespace", "going", "--timeout=120s")


def test_kubectl_scales_a_running_job(space):
    """A collective learns its new shape by one planned restart, which counts as neither failure nor disruption."""
    name = space.create(job("scaled", Worker=(2, STAYS)))
    space.running(name, "scaled-worker-0", "scaled-worker-1")
    for count in (3, 1):
        space.kubectl("scale", "tfjob/scaled", f"--replicas={count}")
        space.wait(lambda: space.job(name)["status"]["replicaStatuses"]["Worker"].get("active") == count, f"{count} are active")
        space.running(name, *(f"scaled-worker-{i}" for i in range(count)))
        assert space.services(name) == {f"scaled-worker-{i}" for i in range(count)}
        scale = space.api.get(f"{space.jobs}/scaled/scale")
        assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (count, count)
        selected = space.kubectl("get", "pods", "-l", scale["status"]["selector"], "-o", "name").split()
        assert len(selected) == count
        if count > 1:
            config = json.loads(space.kubectl("exec", "scaled-worker-0", "--", "sh", "-c", "echo $TF_CONFIG"))
            assert config["cluster"] == {"worker": [f"scaled-worker-{i}.{SPACE}.svc:2222" for i in range(count)]}
    status = space.job(name)["status"]
    assert (status["restarts"], status["disruptions"], status.get("incidents", [])) == (0, 0, [])
    space.kubectl("delete", "tfjob", name)
    space.nothing_left(name)


def test_kubectl_suspends_and_resumes_a_job(space):
    name = space.create(job("paused", Worker=(2, STAYS)))
    pods = ("paused-worker-0", "paused-worker-1")
    space.running(name, *pods)
    suspend = '{"spec":{"runPolicy":{"suspend":%s}}}'
    space.kubectl("patch", "tfjob", name, "--type=merge", "-p", suspend % "true")
    space.wait(lambda: not space.pods(name) and not space.services(name), "nothing runs")
    assert space.kubectl("get", "tfjob", name, "--no-headers").split()[1] == "Suspended"
    space.kubectl("patch", "tfjob", name, "--type=merge", "-p", suspend % "false")
    space.running(name, *pods)
    status = space.job(name)["status"]
    assert (status["restarts"], status["disruptions"]) == (0, 0)
    space.kubectl("delete", "tfjob", name)
    space.nothing_left(name)


def test_a_job_survives_that_kubectl_drains_its_node(space):
    name = space.create(job("drained", Worker=(2, STAYS_UNTIL_DONE)))
    pods = ("drained-worker-0", "drained-worker-1")
    space.running(name, *pods)
    try:
        space.kubectl("drain", "node1", "--pod-selector=training.kubeflow.org/job-name=drained", "--timeout=120s")
        waiting = space.wait(lambda: len(found := space.pods(name)) == 2 and not any(
            "nodeName" in pod["spec"] for pod in found.values()) and found, "pods wait for a node")
        assert {pod["status"]["phase"] for pod in waiting.values()} == {"Pending"}
    finally:
        space.kubectl("uncordon", "node1")
    space.running(name, *pods)
    for pod in pods:
        space.kubectl("exec", pod, "--", "touch", "/tmp/done")
    status = space.ended(name)["status"]
    assert status["restarts"] == 0 and status["disruptions"] >= 1
    assert "EvictionByEvictionAPI" in status["verdict"]["cause"]
    space.kubectl("delete", "tfjob", name)
    space.nothing_left(name)


LIST_FORM = """
apiVersion: kubeflow.org/v1alpha1
kind: TFJob
metadata: {name: NAME}
spec:
  replicaSpecs:
    - replicas: 1
      tfReplicaType: MASTER
      template: {spec: {restartPolicy: OnFailure, containers: [{name: tensorflow, image: IMAGE, args: [sh, -c, MASTER]}]}}
    - replicas: 2
      tfReplicaType: WORKER
      template: {spec: {restartPolicy: OnFailure, containers: [{name: tensorflow, image: IMAGE, args: [sh, -c, STAYS]}]}}
    - replicas: 1
      tfReplicaType: PS
      template: {spec: {restartPolicy: OnFailure, containers: [{name: tensorflow, image: IMAGE, args: [sh, -c, STAYS]}]}}
"""


def create_list_form(space, name, master):
    """With the master's script; workers and the parameter server stay until they are told to go."""
    words = {"NAME": name, "IMAGE": SMALL, "MASTER]": json.dumps(master) + "]", "STAYS": json.dumps("trap 'exit 0' TERM; " + STAYS)}
    manifest = LIST_FORM
    for word, value in words.items():
        manifest = manifest.replace(word, value)
    space.kubectl("create", "-f", "-", input=manifest)


def test_a_job_in_the_list_form_of_2018_runs_as_plain_kubectl_creates_it(space):
    create_list_form(space, "tfjob1", "echo $TF_CONFIG; sleep 2")
    assert "deprecated" in space.cluster.said
    status = space.ended("tfjob1")["status"]
    assert (status["restarts"], status["disruptions"]) == (0, 0)
    config = json.loads(space.kubectl("logs", "tfjob1-master-0"))
    assert {role: len(addresses) for role, addresses in config["cluster"].items()} == {"master": 1, "ps": 1, "worker": 2}
    # Unless said otherwise what still runs is ended, as it was then.
    space.wait(lambda: space.pods("tfjob1").keys() == {"tfjob1-master-0"}, "only the master's pod is left")
    space.kubectl("delete", "tfjobs.v1alpha1.kubeflow.org", "tfjob1")
    space.nothing_left("tfjob1")


# -- the SDK

def sdk_job(name, script, **run_policy):
    """As its users build one, from its models."""
    container = models.V1Container(name="tensorflow", image=SMALL, command=["sh", "-c", script])
    pod = models.V1PodTemplateSpec(spec=models.V1PodSpec(containers=[container], termination_grace_period_seconds=1))
    worker = models.KubeflowOrgV1ReplicaSpec(replicas=1, restart_policy="Never", template=pod)
    policy = models.KubeflowOrgV1RunPolicy(clean_pod_policy="None", **run_policy)
    return models.KubeflowOrgV1TFJob(
        api_version="kubeflow.org/v1", kind="TFJob", metadata=models.V1ObjectMeta(name=name, namespace=SPACE),
        spec=models.KubeflowOrgV1TFJobSpec(run_policy=policy, tf_replica_specs={"Worker": worker}))


def until(sdk, name, *conditions):
    return sdk.wait_for_job_conditions(name, expected_conditions={*conditions}, wait_timeout=180, polling_interval=1)


def test_the_sdk_takes_a_job_from_its_creation_to_its_deletion(space, sdk):
    """The SDK's own end-to-end test of TFJob (sdk/python/test/e2e), step by step."""
    sdk.create_job(sdk_job("sdk", "echo trained"))
    until(sdk, "sdk", "Succeeded")
    conditions = sdk.get_job_conditions("sdk")
    assert len(conditions) >= 2
    assert sdk.is_job_created("sdk") and sdk.is_job_succeeded("sdk")
    assert not sdk.is_job_running("sdk") and not sdk.is_job_restarting("sdk") and not sdk.is_job_failed("sdk")
    assert sdk.get_job_pod_names("sdk") == ["sdk-worker-0"]
    # At once: it reads no log of a pod that is Pending, so the job must not have succeeded before its pod has.
    logs, events = sdk.get_job_logs("sdk", verbose=True)
    assert logs == {"sdk-worker-0": "trained\n"}
    assert any("Created pod: sdk-worker-0" in event for event in events["tfjob/sdk"])
    assert [one.metadata.name for one in sdk.list_jobs()] == ["sdk"]
    assert sdk.get_job("sdk").status.completion_time
    sdk.delete_job("sdk")
    space.nothing_left("sdk")
    assert sdk.list_jobs() == []


def test_the_sdk_raises_what_a_job_failed_of(space, sdk):
    sdk.create_job(sdk_job("sdk-fails", "echo no luck; exit 3"))
    with pytest.raises(RuntimeError, match="is Failed"):
        until(sdk, "sdk-fails", "Succeeded")
    assert sdk.is_job_failed("sdk-fails") and not sdk.is_job_succeeded("sdk-fails")
    assert space.job("sdk-fails")["status"]["verdict"]["cause"] == "worker/0 exited with status 3: no luck"
    sdk.delete_job("sdk-fails")
    space.nothing_left("sdk-fails")


def test_the_sdk_reads_jobs_of_2018_beside_its_own(space, sdk):
    """Its models insist on tfReplicaSpecs, which a list has not: one job without would hide all others from it."""
    create_list_form(space, "of-2018", STAYS_UNTIL_DONE)
    sdk.create_job(sdk_job("of-today", STAYS))
    until(sdk, "of-2018", "Running")
    assert {one.metadata.name for one in sdk.list_jobs()} == {"of-2018", "of-today"}
    assert sdk.get_job_pod_names("of-2018", replica_type="ps") == ["of-2018-ps-0"]
    space.kubectl("exec", "of-2018-master-0", "--", "touch", "/tmp/done")
    until(sdk, "of-2018", "Succeeded")
    assert sdk.get_job_logs("of-2018")[0] == {"of-2018-master-0": "up\ntrained\n"}
    for name in ("of-2018", "of-today"):
        sdk.delete_job(name)
        space.nothing_left(name)


def test_the_sdk_updates_a_job(space, sdk):
    """A suspended job gets another worker and may go: two updates by merge patch."""
    sdk.create_job(sdk_job("sdk-updated", STAYS, suspend=True))
    until(sdk, "sdk-updated", "Created")
    space.wait(lambda: holds(space.job("sdk-updated"), "Suspended"), "it is suspended")
    assert sdk.get_job_pods("sdk-updated") == []
    changed = sdk.get_job("sdk-updated")
    changed.spec.tf_replica_specs["Worker"].replicas = 2
    sdk.update_job(changed, "sdk-updated")
    changed = sdk.get_job("sdk-updated")
    changed.spec.run_policy.suspend = False
    sdk.update_job(changed, "sdk-updated")
    until(sdk, "sdk-updated", "Running")
    space.running("sdk-updated", "sdk-updated-worker-0", "sdk-updated-worker-1")
    assert sdk.get_job_pod_names("sdk-updated", is_master=True) == ["sdk-updated-worker-0"]
    sdk.delete_job("sdk-updated")
    space.nothing_left("sdk-updated")


def train(parameters):
    """Travels to the pods as text."""
    import json
    import os
    import signal
    import time

    task = json.loads(os.environ["TF_CONFIG"])["task"]
    print(task["type"], task["index"], parameters["rate"], flush=True)
    if task["type"] == "ps":
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
        time.sleep(1000)


def test_the_sdk_makes_a_job_of_a_function(space, sdk):
    """With every type that it knows, and asked for the pods and logs of each."""
    sdk.create_job(name="sdk-tour", train_func=train, parameters={"rate": 0.5}, base_image="trainyard.test/tensorflow:2.15",
                   num_chief_replicas=1, num_ps_replicas=1, num_workers=2)
    until(sdk, "sdk-tour", "Succeeded")
    assert sorted(sdk.get_job_pod_names("sdk-tour")) == [
        "sdk-tour-chief-0", "sdk-tour-ps-0", "sdk-tour-worker-0", "sdk-tour-worker-1"]
    assert sdk.get_job_pod_names("sdk-tour", is_master=True) == ["sdk-tour-chief-0"]
    assert sdk.get_job_pod_names("sdk-tour", replica_type="worker", replica_index=1) == ["sdk-tour-worker-1"]
    assert sdk.get_job_logs("sdk-tour")[0] == {"sdk-tour-chief-0": "chief 0 0.5\n"}
    assert sdk.get_job_logs("sdk-tour", is_master=False, replica_type="ps")[0] == {"sdk-tour-ps-0": "ps 0 0.5\n"}
    assert sdk.get_job_logs("sdk-tour", follow=True)[0] == {"sdk-tour-chief-0": "chief 0 0.5"}
    sdk.delete_job("sdk-tour")
    space.nothing_left("sdk-tour")
