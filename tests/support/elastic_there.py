"""Workers on a cluster that train with ElasticDL's client, as it was published."""

from iris_tutorial import OLD_PROTOBUF, client_parts
from there import IMAGE

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


def pod(**container):
    """A template with the client in it, from a folder of the node."""
    packages = str(client_parts("edl-1.4")[0].parent)
    return {"spec": {
        "volumes": [{"name": "client", "hostPath": {"path": packages}}],
        "containers": [{"name": "tensorflow", "image": IMAGE, "volumeMounts": [{"name": "client", "mountPath": "/client", "readOnly": True}],
                        "env": [{"name": "PYTHONPATH", "value": "/client"}, {"name": OLD_PROTOBUF[0], "value": OLD_PROTOBUF[1]}],
                        **container}]}}


def held(there, replica):
    """How many shards it has had."""
    return len([line for line in there.kubectl("logs", f"mine-{replica}").splitlines() if line.startswith("has")])
