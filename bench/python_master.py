"""A master as one would write it in Python: shards in memory, nothing on the disk, 64 threads as ElasticDL's has.

    python_master.py            prints its port
"""

import concurrent.futures
import threading

import grpc
from elasticai_api.proto import elasticai_api_pb2, elasticai_api_pb2_grpc
from google.protobuf import empty_pb2


class Master(elasticai_api_pb2_grpc.MasterServicer):
    def __init__(self):
        self.lock, self.next_id, self.start, self.doing = threading.Lock(), 0, 0, {}

    def report_dataset_shard_params(self, request, context):
        self.size = request.dataset_size
        self.shard = request.batch_size * request.num_minibatches_per_shard
        return empty_pb2.Empty()

    def get_dataset_task(self, request, context):
        with self.lock:
            task = elasticai_api_pb2.Task(type=elasticai_api_pb2.TRAINING)
            self.next_id += 1
            task.task_id, task.shard.start = self.next_id, self.start
            self.start = task.shard.end = min(self.start + self.shard, self.size)
            self.doing[task.task_id] = (request.worker_id, task)
        return task

    def report_dataset_task_result(self, request, context):
        with self.lock:
            self.doing.pop(request.task_id, None)
        return empty_pb2.Empty()


server = grpc.server(concurrent.futures.ThreadPoolExecutor(64))
elasticai_api_pb2_grpc.add_MasterServicer_to_server(Master(), server)
port = server.add_insecure_port("127.0.0.1:0")
server.start()
print(port, flush=True)
server.wait_for_termination()
