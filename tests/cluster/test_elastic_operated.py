"""Elastic TFJobs under the operator: it gives each of them a master, which hands out the data and keeps the job until it has ended."""

import json

import pytest

import jobs
import samples
from elastic_there import TRAIN, held, pod
from there import There, shared_volume
from trainyard_operator import install_crd, operator

pytestmark = pytest.mark.trains

MASTER = "job-name=mine-master"


@pytest.fixture
def there(with_image, tmp_path, request):
    """A namespace with a claim, and the operator at work."""
    install_crd(with_image)
    yard = There(tmp_path / "home", with_image, f"operated-{abs(hash(request.node.name)) % 10**8}", security="privileged")
    with shared_volume(with_image, tmp_path / "volume"), operator(with_image) as yard.operator:
        yard.kubectl("create", "-f", "-", input=json.dumps(
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "models"},
             "spec": {"accessModes": ["ReadWriteMany"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}}))
        yield yard
        yard.kubectl("delete", "tfjobs", "--all")
    yard.close()


def submit(there, script, annotations=None):
    template = pod(command=["python3", "-c", script])
    job = samples.job({"tfReplicaSpecs": {"Worker": {"replicas": 2, "template": template}}}, name="mine")
    job["metadata"]["annotations"] = {"trainyard.dev/elastic": "1:4", "trainyard.dev/output": "models/mine", **(annotations or {})}
    there.kubectl("create", "-f", "-", input=json.dumps(job))


def master(there):
    """Its pod, if one runs."""
    running = [pod for pod in there.cluster.pods(there.namespace, MASTER)
               if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]]
    return running and running[0]["metadata"]["uid"]


def test_an_elastic_tfjob_gets_a_master_and_loses_no_record_whoever_dies(there):
    submit(there, TRAIN)
    wait = there.cluster.wait
    first = there.wait_for_pods("mine", "worker-0", "worker-1")
    wait(lambda: there.status("mine").get("shards", {}).get("done") == 2, "a shard of each is done", 60)
    assert any(event.startswith("SuccessfulCreateMaster: ") for event in jobs.events(there.cluster, there.namespace))
    there.kubectl("scale", "tfjob", "mine", "--replicas=3")
    three = there.wait_for_pods("mine", "worker-0", "worker-1", "worker-2")
    assert {name: three[name] for name in first} == first, "nobody else is restarted"
    wait(lambda: held(there, "worker-2") == 2, "the third has its second shard", 60)
    top = json.loads(there.run("top", "mine", "--json"))["replicas"]
    assert {each["replica"]: (each["shardsDoing"], each["shardsDone"]) for each in top} == {f"worker/{i}": (1, 1) for i in range(3)}, top
    # The operator, which is not needed for it, and the master's pod, whose ledger is on the claim.
    there.operator.kill()
    before = master(there)
    there.kubectl("delete", "pod", "-l", MASTER, "--wait=false")
    there.kubectl("delete", "pod", "mine-worker-1", "--wait=false")
    wait(lambda: master(there) not in (before, []), "another master", 90)
    there.wait_for_pods("mine", "worker-1", but=[first["worker-1"]])
    there.operator.restart()
    assert "300 records, not complete" in there.run("audit", "mine")
    there.touch("mine", "worker-0", "worker-1", "worker-2", file="/tmp/go")
    assert "mine succeeded" in there.run("wait", "mine", seconds=120)
    status = there.status("mine")
    assert status["shards"]["recordsLeft"] == 0 and status["verdict"]["cause"].startswith("all records"), status
    assert (status["restarts"], status["disruptions"]) == (0, 1)
    counted = [name for name in there.operator.metrics() if "jobs_successful_total" in name and there.namespace in name]
    assert counted, "what a master publishes the operator counts"
    wait(lambda: not master(there), "the master has ended", 60)
    [audit] = json.loads(there.run("audit", "mine", "--json"))["sets"]
    assert audit["complete"] and audit["epochs"][0]["never"] == 0
    assert audit["epochs"][0]["once"] + audit["epochs"][0]["more"] + audit["epochs"][0]["assumed"] == 300
    there.kubectl("delete", "tfjob", "mine")
    left = "pods,services,configmaps,jobs,rolebindings,serviceaccounts"
    wait(lambda: "mine" not in there.kubectl("get", left, "-o", "name"), "nothing is left", 60)


def test_one_that_failed_runs_again_with_another_master_and_its_time_to_live_is_the_operators(there):
    script = TRAIN.replace("held = 0", 'held = 0\nassert int(os.environ["TRAINYARD_ATTEMPT"]) > 0, "the first life"')
    said = there.end(there.start("run", "--elastic", "1:2", "--keeper", "operator", "--pod-file", there.script(json.dumps(pod()), "pod.json"),
                                 "--output", "none", "--name", "mine", "-w", 1, there.script(script)), status=1, seconds=120)
    assert "by the operator" in said and "the first life" in said, said
    wait = there.cluster.wait
    wait(lambda: not master(there), "the master has ended", 60)
    there.run("resume", "mine", "--detach")
    there.wait_for_pods("mine", "worker-0")
    wait(lambda: held(there, "worker-0") == 2, "it trains", 60)
    there.touch("mine", "worker-0", file="/tmp/go")
    assert "mine succeeded" in there.run("wait", "mine", seconds=120)
    wait(lambda: not master(there), "the master has ended", 60)
    assert json.loads(there.run("audit", "mine", "--json"))["sets"][0]["complete"]
    there.kubectl("patch", "tfjob", "mine", "--type=merge", "-p", '{"spec": {"runPolicy": {"ttlSecondsAfterFinished": 0}}}')
    wait(lambda: not there.job("mine"), "its time is over", 60)
    wait(lambda: "mine" not in there.kubectl("get", "pods,configmaps,jobs", "-o", "name"), "nothing is left", 60)


def test_a_master_that_cannot_be_is_told_of(there):
    there.operator.stop()
    with operator(there.cluster, "--master-image=trainyard.test/none:1"):
        submit(there, TRAIN)
        there.cluster.wait(lambda: any(event.startswith("ErrImage") and "mine-master" in event
                                       for event in jobs.events(there.cluster, there.namespace)), "an event of the job", 90)
    there.operator.restart()
    # What the server will never take ends the job.
    there.kubectl("delete", "tfjob", "mine")
    submit(there, TRAIN, annotations={"trainyard.dev/output": "models/../mine"})
    there.cluster.wait(lambda: "its master" in json.dumps(there.status("mine").get("conditions", [])), "it is refused", 60)
