"""What the commands say and do about jobs on a cluster that has an API server and nobody else: no kubelet, no operator."""

import json
import signal
import threading
import time

import pytest
import yaml
from fake_api import FakeApi, ended, running, waiting
from yard import wait_for

NO_IMAGE = 'Container image "trainyard:latest" is not present with pull policy of Never'
HELLO = "print('hello')"


@pytest.fixture
def api(yard):
    with FakeApi() as api:
        api.put("v1", "serviceaccounts", {"metadata": {"name": "default"}})
        yard.env |= {"KUBECONFIG": str(api.kubeconfig(yard.home / "kubeconfig")), "TRAINYARD_ON": "kubernetes"}
        yield api


def tfjob(api, name="train", conditions=("Created", "Running"), replicas=None, suspend=False, labels=None, **status):
    """A TFJob that an operator has taken up."""
    container = {"name": "tensorflow", "image": "tf"}
    specs = {role: {"replicas": count, "template": {"spec": {"containers": [container]}}}
             for role, count in (replicas or {"Worker": 1}).items()}
    return api.put("kubeflow.org/v1", "tfjobs", {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"runPolicy": {"suspend": suspend}, "tfReplicaSpecs": specs},
        "status": {"conditions": [{"type": kind, "status": "True", "reason": "r", "message": "m"} for kind in conditions], **status}})


def pod_of(api, job, role, index, status, **more):
    """A pod as the operator makes it."""
    name = job["metadata"]["name"]
    labels = {"operator-name": "tfjob-controller", "job-name": name, "replica-type": role, "replica-index": str(index)}
    return api.put("v1", "pods", {
        "metadata": {"name": f"{name}-{role}-{index}", "labels": {f"training.kubeflow.org/{key}": value for key, value in labels.items()},
                     "ownerReferences": [{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": name, "uid": job["metadata"]["uid"],
                                          "controller": True}], **more},
        "spec": {"nodeName": "n1", "containers": [{"name": "tensorflow"}]}, "status": status})


# -- why a job does not start


def test_why_names_a_volume_that_cannot_be_mounted(yard, api):
    """The status of the pod says nothing of it; only an event does."""
    job = tfjob(api, conditions=["Created"])
    pod = pod_of(api, job, "worker", 0, waiting("ContainerCreating", container="tensorflow"))
    api.add_event(pod, "FailedMount", "MountVolume.SetUp failed for volume \"data\" : mount failed: exit status 32\n"
                  "Mounting arguments: -t nfs 10.9.9.9:/data /var/lib/x\nOutput: mount.nfs: Connection timed out")
    api.add_event(pod, "FailedMount", "Unable to attach or mount volumes: unmounted volumes=[data]")
    why = yard.run("why")
    assert "worker/0 waits: FailedMount: MountVolume.SetUp failed" in why and "Connection timed out" in why
    assert "check that the NFS server runs" in why
    assert "FailedMount" in yard.run("ps").splitlines()[1]


def test_why_names_a_quota_though_other_pods_were_created(yard, api):
    job = tfjob(api, replicas={"Worker": 3})
    for index in (0, 2):
        pod_of(api, job, "worker", index, running("tensorflow"))
    for reason, message in (("SuccessfulCreatePod", "Created pod: train-worker-0"),
                            ("FailedCreatePod", 'Error creating: 403 Forbidden: pods "train-worker-1" is forbidden: exceeded quota: q'),
                            ("SuccessfulCreatePod", "Created pod: train-worker-2")):
        api.add_event(job, reason, message)
    why = yard.run("why")
    assert "worker/1 cannot be made" in why and "exceeded quota: q" in why and "have the quota raised" in why


def test_why_names_a_parameter_server_that_ended(yard, api):
    tfjob(api, replicas={"PS": 1, "Worker": 1}, completed={"PS": "0"})
    why = yard.run("why")
    assert "ps/0 has ended with exit status 0, and the others wait for it" in why and "join()" in why


def test_no_word_calls_an_evaluator_failed_that_was_stopped_because_the_job_has_ended(yard, api):
    """Its process ends with 143, and its pod is Failed until it is gone."""
    job = tfjob(api, replicas={"Chief": 1, "Evaluator": 1}, conditions=["Created", "Succeeded"], completed={"Chief": "0"},
                replicaStatuses={"Chief": {"succeeded": 1}, "Evaluator": {"succeeded": 1}}, shape={"Chief": 1, "Evaluator": 1},
                verdict={"result": "succeeded", "cause": "", "advice": "", "exitStatus": 0})
    pod_of(api, job, "chief", 0, ended(0, container="tensorflow"))
    pod_of(api, job, "evaluator", 0, ended(143, container="tensorflow"), deletionTimestamp="2026-01-01T00:00:30Z",
           deletionGracePeriodSeconds=30, finalizers=["trainyard.dev/observed"])
    for words in (["ps"], ["why"], ["get"], ["wait"]):
        said = yard.run(*words) + yard.err
        assert not any(word in said.lower() for word in ("error", "fail", "143", "killed")), (words, said)


# -- a job whose master does not start


def without_master(yard, api, *words):
    """A job of its own master, whose image is not there."""
    api.status_of = lambda pod: waiting("ErrImageNeverPull", NO_IMAGE, "master")
    return yard.start("run", "--keeper", "master", "--output", "none", "--name", "held", *words, yard.script(HELLO))


def test_why_and_ps_name_the_reason_of_the_master(yard, api):
    yard.end(without_master(yard, api, "-d"))
    why = yard.run("why", "held")
    assert f"its master does not run: ErrImageNeverPull: {NO_IMAGE}" in why and "--master-image" in why
    assert "ErrImageNeverPull" in yard.run("ps")


def test_run_tells_the_reason_of_the_master_within_seconds(yard, api):
    job = without_master(yard, api)
    timer = threading.Timer(60, job.kill)
    timer.start()
    assert any("ErrImageNeverPull" in line for line in job.stdout)
    timer.cancel()
    job.kill()
    job.communicate()


def test_ctrl_c_returns_though_nobody_stops_the_job(yard, api):
    job = without_master(yard, api)
    wait_for(lambda: api.get("configmaps", "held-job"), "the job is there")
    assert job.stdout.readline()
    job.send_signal(signal.SIGINT)
    began = time.monotonic()
    out, err = job.communicate(timeout=60)
    assert job.returncode == 130 and time.monotonic() - began < 5 + 5  # of a busy machine
    assert "nobody has stopped held yet" in err and "trainyard delete --force held" in err
    assert api.get("configmaps", "held-job")["metadata"]["annotations"]["trainyard.dev/stopped-by"] == "Ctrl-C"


def test_delete_removes_a_job_that_nobody_keeps(yard, api):
    yard.end(without_master(yard, api, "-d"))
    assert yard.run("delete", "--force", "held", seconds=10) == "held deleted\n"
    assert api.names() == ["serviceaccounts/default"]


def test_delete_releases_pods_whose_operator_is_gone(yard, api):
    job = tfjob(api)
    pod = pod_of(api, job, "worker", 0, running("tensorflow"), finalizers=["trainyard.dev/observed", "other.example/keeps"])
    process = yard.start("delete", "--force", "train")
    wait_for(lambda: api.get("pods", "train-worker-0")["metadata"]["finalizers"] == ["other.example/keeps"], "our finalizer is off")
    api.change("pods", pod["metadata"]["name"], {"metadata": {"finalizers": None}})
    assert "train deleted" in yard.end(process)
    assert api.names() == ["serviceaccounts/default"]


def test_why_names_the_reason_of_the_operator(yard, api):
    tfjob(api, conditions=())
    assert "no operator looks after it" in yard.run("why")
    api.status_of = lambda pod: waiting("ErrImagePull", "not found", "operator")
    api.put("apps/v1", "deployments", {"kind": "Deployment", "metadata": {"name": "trainyard-operator"}, "spec": {"template": {
        "metadata": {"labels": {"app.kubernetes.io/name": "trainyard-operator"}}, "spec": {"containers": []}}}}, "trainyard-system")
    why = yard.run("why")
    assert "the operator does not run: ErrImagePull: not found" in why and "trainyard install --image" in why


# -- a job that Kueue holds back

QUEUED = {"conditions": ["Created", "Suspended"], "suspend": True, "labels": {"kueue.x-k8s.io/queue-name": "team-a"}}
NO_QUOTA = "couldn't assign flavors to pod set worker: insufficient unused quota for cpu in flavor default, 1 more needed"


def workload(api, job, **spec):
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": job["metadata"]["name"], "uid": job["metadata"]["uid"]}
    return api.put("kueue.x-k8s.io/v1beta1", "workloads", {
        "metadata": {"name": "tfjob-train-1", "ownerReferences": [owner]}, "spec": spec,
        "status": {"conditions": [{"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": NO_QUOTA}]}})


def test_why_and_ps_name_the_queue_and_what_it_waits_for(yard, api):
    job = tfjob(api, **QUEUED)
    assert "queue team-a has not taken it up" in yard.run("why")
    workload(api, job)
    why = yard.run("why")
    assert "train is queued" in why and f"queue team-a has not admitted it: {NO_QUOTA}" in why and "resume" not in why
    listed = yard.run("ps").splitlines()[1]
    assert "Queued" in listed and "insufficient unused quota" in listed
    assert json.loads(yard.run("why", "--json"))["state"] == "Queued"


def test_resume_does_not_bypass_the_queue(yard, api):
    job = tfjob(api, **QUEUED)
    workload(api, job)
    yard.run("resume", status=2)
    told = yard.err
    assert "waits in queue team-a" in told and NO_QUOTA in told and "kubectl -n default label tfjob train" in told
    assert api.get("tfjobs", "train")["spec"]["runPolicy"]["suspend"] is True


def test_resume_says_how_to_put_a_job_back_into_its_queue(yard, api):
    workload(api, tfjob(api, **QUEUED), active=False)
    yard.run("resume", status=2)
    assert "kubectl -n default patch workload tfjob-train-1" in yard.err


def test_suspend_does_not_fight_with_the_queue(yard, api):
    job = tfjob(api, conditions=["Created", "Running"], labels=QUEUED["labels"])
    workload(api, job)
    yard.run("suspend", status=2)
    assert "queue team-a would start train again" in yard.err and '{"spec":{"active":false}}' in yard.err
    assert not api.get("tfjobs", "train")["spec"].get("runPolicy", {}).get("suspend")


def test_resume_of_a_failed_job_does_not_bypass_the_queue(yard, api):
    job = tfjob(api, conditions=["Created", "Failed"], labels=QUEUED["labels"])
    workload(api, job)
    yard.run("resume", status=2)
    assert "train has ended and left queue team-a" in yard.err and "trainyard delete train" in yard.err
    assert "trainyard.dev/life" not in api.get("tfjobs", "train")["metadata"].get("annotations", {})


def test_a_job_that_a_person_suspended_is_resumed_as_before(yard, api):
    tfjob(api, conditions=["Created", "Suspended"], suspend=True)
    assert "trainyard resume train" in yard.run("why")
    yard.run("resume", "-d")
    assert api.get("tfjobs", "train")["spec"]["runPolicy"]["suspend"] is False


# -- waiting for a server or for the operator

NO_PULL = 'failed to pull image "tensorflow/serving:2.19.1": dial tcp: lookup registry-1.docker.io: no such host'


def finished_job(api, name="mnist"):
    """A job with its output on a claim."""
    job = tfjob(api, name, conditions=["Created", "Succeeded"])
    api.change("tfjobs", name, {"metadata": {"annotations": {"trainyard.dev/output": f"{name}-output"}}})
    return job


def seconds_until(process, text):
    """How long a program takes to print this on standard error."""
    began = time.monotonic()
    for line in process.stderr:
        if text in line:
            return time.monotonic() - began, line
    raise AssertionError(f"{text} was never printed; exit status {process.wait()}")


def test_serve_tells_at_once_that_its_image_cannot_be_pulled(yard, api):
    finished_job(api)
    api.status_of = lambda pod: waiting("ErrImagePull", NO_PULL)
    server = yard.start("serve", "mnist")
    took, line = seconds_until(server, "ErrImagePull")
    assert took < 10 and "no such host" in line and "--server trainyard" in line
    server.send_signal(signal.SIGINT)
    yard.end(server, status=130)
    assert api.names() == ["serviceaccounts/default", "tfjobs/mnist"]


def test_serve_gives_up_soon_on_an_image_that_is_never_pulled(yard, api):
    finished_job(api)
    api.status_of = lambda pod: waiting("ErrImageNeverPull", NO_IMAGE)
    began = time.monotonic()
    yard.run("serve", "mnist", status=69)
    assert time.monotonic() - began < 60 and "gave up waiting for the server of mnist: ErrImageNeverPull" in yard.err
    assert api.names() == ["serviceaccounts/default", "tfjobs/mnist"]


def test_install_tells_at_once_what_keeps_the_operator_from_starting(yard, api):
    api.status_of = lambda pod: waiting("ImagePullBackOff", 'Back-off pulling image "trainyard:latest"', "operator")
    install = yard.start("install", "--yes")
    took, line = seconds_until(install, "ImagePullBackOff")
    assert took < 10 and "waiting for Deployment trainyard-system/trainyard-operator" in line
    assert "trainyard install --image REGISTRY/trainyard:TAG" in line and "--pod-file" not in line
    install.send_signal(signal.SIGINT)
    out, err = install.communicate(timeout=300)
    assert install.returncode == 130 and "everything is as it was before" in err


def test_install_names_a_quota_that_leaves_the_operator_without_a_pod(yard, api):
    api.pods_rejected = 'pods "trainyard-operator-1" is forbidden: exceeded quota: small'
    install = yard.start("install", "--yes", "--timeout", "3s")
    _, line = seconds_until(install, "exceeded quota: small")
    assert "kubectl describe quota" in line
    install.communicate(timeout=100)


def test_fetch_tells_at_once_that_its_image_cannot_be_pulled(yard, api):
    finished_job(api)
    api.status_of = lambda pod: waiting("ErrImagePull", "not found", "fetch")
    fetch = yard.start("fetch", "mnist")
    took, line = seconds_until(fetch, "ErrImagePull")
    assert took < 10 and "--image" in line
    fetch.send_signal(signal.SIGINT)
    yard.end(fetch, status=130)


def test_doctor_names_a_claim_that_is_bound(yard, api):
    with api.lock:
        api.create("/api/v1/namespaces", {"metadata": {"name": "default"}})
    api.put("v1", "persistentvolumeclaims", {"metadata": {"name": "nfs"}, "status": {"phase": "Bound"}})
    out = yard.run("doctor", status=1)
    assert "claim nfs for output: --output nfs" in out and "--storage" not in out


# -- jobs of tf-spawner


def spawn(yard, *words, **options):
    return yard.run("tf-spawner", *words, yard.script(HELLO), **options)


def test_the_verbs_know_a_job_of_tf_spawner(yard, api):
    api.status_of = lambda pod: running("tensorflow")
    api.logs = {f"mine-worker{i}": f"2026-11-15T21:49:57.220145123Z hello from {i}\n" for i in (0, 1)}
    assert "trainyard logs -f mine" in (spawn(yard, "-t", "mine"), yard.err)[1]
    row = yard.run("ps").splitlines()[1]
    assert row.split()[:3] == ["mine", "Running", "2/2"]
    assert yard.run("why", "mine") == "mine is running\n"
    logs = yard.run("logs", "mine")
    assert "hello from 0" in logs and "hello from 1" in logs
    yard.run("fetch", "mine", status=2)
    assert "have no claim" in yard.err
    yard.run("stop", "mine", status=2)
    assert "tf-spawner -d -t mine" in yard.err


def test_why_names_what_the_pods_of_tf_spawner_wait_for(yard, api):
    api.status_of = lambda pod: waiting("ErrImagePull", "not found", "tensorflow")
    spawn(yard)
    assert "worker/0, worker/1 wait: ErrImagePull: not found" in yard.run("why")
    assert "ErrImagePull" in yard.run("ps")


def test_tf_spawner_wait_carries_the_exit_status(yard, api):
    api.status_of = lambda pod: ended(0)
    spawn(yard, "--wait", "-t", "good")
    assert "good succeeded" in yard.err
    api.status_of = lambda pod: ended(3 if pod["metadata"]["name"].endswith("worker1") else 0)
    spawn(yard, "--wait", "-t", "bad", status=3)
    assert "bad failed" in yard.err and "worker/1 exited with status 3" in yard.err
    assert yard.run("wait", "bad", status=3).splitlines()[0].startswith("✗ bad failed")


def test_output_of_a_job_of_tf_spawner_is_on_the_claim_of_its_pods(yard, api):
    template = yard.script(json.dumps({"spec": {
        "containers": [{"name": "trains", "image": "tf", "volumeMounts": [{"name": "data", "mountPath": "/data", "subPath": "runs"}]}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "nfs"}}]}}), "pod.yaml")
    api.status_of = lambda pod: ended(0, "trains") if "worker" in pod["metadata"]["name"] else waiting("ErrImagePull", "x", "fetch")
    spawn(yard, "--wait", "--pod-file", template)
    fetch = yard.start("fetch", "tf-spawner")
    wait_for(lambda: [name for name in api.names() if name.startswith("pods/tf-spawner-fetch-")], "a pod that reads the claim")
    reader = next(name for name in api.names() if name.startswith("pods/tf-spawner-fetch-")).removeprefix("pods/")
    assert api.get("pods", reader)["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] == "nfs"
    fetch.send_signal(signal.SIGINT)
    yard.end(fetch, status=130)


def test_tf_spawner_makes_the_objects_of_many_workers_at_once(yard, api):
    """Each answer takes 50 ms; one after the other they would take half a minute."""
    api.status_of = lambda pod: running("tensorflow")
    api.delay = 0.05
    began = time.monotonic()
    spawn(yard, "-w", "300")
    assert time.monotonic() - began < 15
    assert len([name for name in api.names() if name.startswith(("pods/", "services/"))]) == 600


def test_tf_spawner_takes_all_back_when_one_of_many_is_rejected(yard, api):
    api.put("v1", "services", {"metadata": {"name": "worker7"}})
    spawn(yard, "-w", "50", status=2)
    assert "already exists" in yard.err and "taken back" in yard.err
    assert api.names() == ["serviceaccounts/default", "services/worker7"]


def test_help_of_tf_spawner_says_that_it_means_a_cluster(yard):
    assert "TRAINYARD_ON, else kubernetes" in yard.run("tf-spawner", "-h")
    assert "TRAINYARD_ON, else local" in yard.run("run", "-h")


# -- ElasticDL


def train(yard, **options):
    return yard.run("elasticdl", "train", "--image_name=zoo:1", "--job_command=python -m iris", "--num_workers=1",
                    "--job_name=iris", **options)


def test_elasticdl_train_is_refused_when_the_master_would_lack_a_right(yard, api):
    """ElasticDL's own Role allows pods and services, and no ConfigMaps."""
    api.denied_to_accounts = {f"{verb} configmaps" for verb in ("get", "list", "watch", "create", "patch", "update", "delete")}
    train(yard, status=2)
    assert "the service account default of namespace default may not do what the master needs" in yard.err
    assert 'apiGroups: [""], resources: [configmaps], verbs: [' in yard.err
    assert api.names() == ["serviceaccounts/default"]


def test_why_tells_what_a_master_that_runs_waits_for(yard, api):
    """Where nobody may ask for the rights of the service account."""
    api.denied = {"create localsubjectaccessreviews"}
    api.logs = {"elasticdl-iris-master": 'waiting: GET …: 403 Forbidden: configmaps "iris-job" is forbidden: cannot get\n'}
    train(yard)
    why = yard.run("why", "iris")
    assert "its master runs and has not taken it up: waiting: GET" in why and "is forbidden" in why


# -- the best trial of a sweep


def test_a_sweep_is_served_under_its_own_name(yard, api):
    script = yard.script("import sys\nprint('Epoch 1/1')\nprint(f'1/1 - 0s - loss: {sys.argv[1][-1]}.0 - 0s/epoch - 9ms/step')\n")
    yard.run("sweep", "-w", "1", "--param", "x=2,1", "--name", "two", "--parallel", "1", script, env={"TRAINYARD_ON": "local"})
    finished_job(api, "two-t1")
    out = yard.run("serve", "two", "--detach")
    assert out.strip().endswith("/v1/models/two")
    container = api.get("deployments", "two-t1-serve")["spec"]["template"]["spec"]["containers"][0]
    assert "--model_name=two" in container["command"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/v1/models/two/metadata"


def test_only_the_last_lines_of_a_log_are_transferred(yard, api):
    job = tfjob(api)
    pod_of(api, job, "worker", 0, running("tensorflow"))
    stamp = "2026-11-18T10:00:00.000000001Z"
    api.logs["train-worker-0"] = f"{stamp} {'x' * 100}\n" * 10_000 + f"{stamp} last\n"
    assert yard.run("logs", "train", "--tail", 1).split() == ["worker/0", "last"]
    assert api.log_bytes < 1000


def test_the_pods_of_an_elastic_script_find_the_hook_of_the_tutorial(yard, api):
    """Beside the PYTHONPATH of the env file. A script that does not import it keeps the PYTHONPATH of its image."""
    env_file = yard.home / "env"
    env_file.write_text("PYTHONPATH=/mine\n")

    def worker(text, *flags):
        objects = yaml.safe_load_all(yard.run("render", "--elastic", "1:2", *flags, yard.script(text)))
        [job] = [one for one in objects if one["kind"] == "TFJob"]
        return job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]

    def path(container):
        return [one.get("value", "of the env file") for one in container.get("env", []) if one["name"] == "PYTHONPATH"]
    hook = "from elasticai_api.tensorflow.hooks import ElasticDataShardReportHook"
    assert path(worker(hook)) == ["/trainyard/python"]
    assert path(worker(hook, "-e", env_file)) == ["of the env file", "/trainyard/python:$(PYTHONPATH)"]
    assert path(worker(HELLO)) == []
