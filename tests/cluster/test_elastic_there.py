"""Elastic jobs on a cluster, by a master of their own: workers come, go and are deleted, the master dies, and no record is lost."""

import json

import pytest

from elastic_there import TRAIN, held, pod
from there import There
from trials import SOAK

pytestmark = pytest.mark.trains


@pytest.fixture
def there(with_image, tmp_path, request):
    """The namespace of somebody who is admin of it, and nobody elsewhere. The client lies in a folder of the node."""
    yard = There(tmp_path / "home", with_image, f"elastic-{abs(hash(request.node.name)) % 10**8}", security="privileged")
    user = f"user-of-{yard.namespace}"
    yard.kubectl("create", "rolebinding", "her", "--clusterrole=admin", f"--user={user}")
    yard.use(with_image.as_user(user))
    yard.pod = yard.script(json.dumps(pod()), "pod.json")
    yield yard
    yard.close()


def start(there, *words):
    return there.start("run", "--elastic", "1:4", "--pod-file", there.pod, "--output", "none", "--name", "mine", *words, there.script(TRAIN))


def shards(there):
    return json.loads(there.run("get", "mine", "-o", "json"))["status"].get("shards", {})


def test_workers_come_and_go_and_die_and_no_record_is_lost(there):
    job = start(there, "-w", 2)
    wait = there.cluster.wait
    first = there.wait_for_pods("mine", "worker-0", "worker-1")
    wait(lambda: shards(there).get("done") == 2, "a shard of each is done", 60)
    assert "records 20/300" in there.run("ps")
    assert there.run("scale", "worker=3") == "mine scaled to 3 worker\n"
    three = there.wait_for_pods("mine", "worker-0", "worker-1", "worker-2")
    assert {name: three[name] for name in first} == first, "nobody else is restarted"
    wait(lambda: held(there, "worker-2") == 2, "the third has its second shard", 60)
    # One that is to leave gets no more data, and finishes what it has.
    there.run("scale", "worker=2")
    there.touch("mine", "worker-2", file="/tmp/go")
    wait(lambda: "worker-2" not in there.pods("mine"), "the third has gone", 60)
    there.kubectl("delete", "pod", "mine-worker-1", "--wait=false")
    second = there.wait_for_pods("mine", "worker-0", "worker-1", but=[first["worker-1"]])
    assert second["worker-0"] == first["worker-0"]
    [master] = there.cluster.pods(there.namespace, "app.kubernetes.io/name=trainyard-master")
    assert "300 records, not complete" in there.run("audit")
    there.touch("mine", "worker-0", "worker-1", file="/tmp/go")
    out = there.end(job, seconds=120)
    assert "mine succeeded" in out and "all records" in out
    [audit] = json.loads(there.run("audit", "--json"))["sets"]
    assert audit["complete"] and audit["epochs"][0]["never"] == 0
    assert audit["epochs"][0]["once"] + audit["epochs"][0]["more"] == 300
    status = json.loads(there.run("get", "-o", "json"))["status"]
    assert (status["restarts"], status["disruptions"]) == (0, 1)
    there.run("delete")
    left = "pods,services,configmaps,jobs,roles,serviceaccounts"
    wait(lambda: "mine" not in there.kubectl("get", left, "-o", "name"), "nothing is left", 60)
    assert master["spec"]["containers"][0]["args"][-1] == "--ledger=/var/lib/trainyard"


@pytest.mark.skipif(not SOAK, reason="takes 40 s; the gate deletes the ConfigMap, SOAK=1 both")
def test_a_deleted_namespace_goes_away_while_the_job_runs(there):
    job = start(there, "-w", 2)
    there.wait_for_pods("mine", "worker-0", "worker-1")
    there.cluster.kubectl("delete", "namespace", there.namespace, "--wait=false")

    def gone():
        return not there.cluster.kubectl("get", "namespace", there.namespace, "--ignore-not-found", "-o", "name")
    there.cluster.wait(gone, "the namespace is gone", 120)
    there.end(job, status=65, seconds=60)


def test_the_job_goes_with_its_config_map(there):
    job = start(there, "-w", 2)
    there.wait_for_pods("mine", "worker-0", "worker-1")
    there.kubectl("delete", "configmap", "mine-job")
    left = "pods,services,configmaps,jobs,roles,rolebindings,serviceaccounts"
    there.cluster.wait(lambda: "mine" not in there.kubectl("get", left, "-o", "name"), "nothing is left", 120)
    there.end(job, status=65, seconds=60)
