"""Elastic jobs on a cluster, by a master of their own: workers come, go and are deleted, the master dies, and no record is lost."""

import json

import pytest

from data_master import client_python
from iris_tutorial import client_parts
from there import IMAGE, There

# Each trains one shard, and keeps its second until it may go on.
TRAIN = """
import os, time
from elasticai_api.common.data_shard_service import DataShardService

service = DataShardService(batch_size=10, num_epochs=1, dataset_size=300, num_minibatches_per_shard=1, dataset_name="numbers")
held = 0
while (shard := service.fetch_shard()) is not None:
    held += 1
    print("has", shard.start, shard.end, flush=True)
    while held > 1 and not os.path.exists("/tmp/go"):
        time.sleep(0.05)
    service.report_batch_done()
print("no more data after", held, "shards", flush=True)
"""


@pytest.fixture
def there(with_image, tmp_path, request):
    """The namespace of somebody who is admin of it, and nobody elsewhere. The client lies in a folder of the node."""
    yard = There(tmp_path / "home", with_image, f"elastic-{abs(hash(request.node.name)) % 10**8}", security="privileged")
    user = f"user-of-{yard.namespace}"
    yard.kubectl("create", "rolebinding", "her", "--clusterrole=admin", f"--user={user}")
    yard.use(with_image.as_user(user))
    packages = str(client_parts("edl-1.4")[0].parent)
    assert client_python("edl-1.4").startswith(packages.split("/lib/")[0])
    yard.pod = yard.script(json.dumps({"spec": {
        "volumes": [{"name": "client", "hostPath": {"path": packages}}],
        "containers": [{"name": "tensorflow", "image": IMAGE, "volumeMounts": [{"name": "client", "mountPath": "/client", "readOnly": True}],
                        "env": [{"name": "PYTHONPATH", "value": "/client"},
                                {"name": "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "value": "python"}]}]}}), "pod.json")
    yield yard
    yard.close()


def start(there, *words):
    return there.start("run", "--elastic", "1:4", "--pod-file", there.pod, "--output", "none", "--name", "mine", *words, there.script(TRAIN))


def shards(there):
    return json.loads(there.run("get", "mine", "-o", "json"))["status"].get("shards", {})


def has_held(there, replica):
    return len([line for line in there.kubectl("logs", f"mine-{replica}").splitlines() if line.startswith("has")])


def test_workers_come_and_go_and_die_and_no_record_is_lost(there):
    job = start(there, "-w", 2)
    wait = there.cluster.wait
    first = there.wait_for_pods("mine", "worker-0", "worker-1")
    wait(lambda: shards(there).get("done") == 2, "a shard of each is done", 60)
    assert "records 20/300" in there.run("ps")
    assert there.run("scale", "worker=3") == "mine scaled to 3 worker\n"
    three = there.wait_for_pods("mine", "worker-0", "worker-1", "worker-2")
    assert {name: three[name] for name in first} == first, "nobody else is restarted"
    wait(lambda: has_held(there, "worker-2") == 2, "the third has its second shard", 60)
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


def test_the_operator_is_not_asked_to_hand_out_data(there):
    assert "a master of its own" in there.refused("run", "--elastic", "1:2", "--keeper", "operator", "--output", "none", there.script(TRAIN))
