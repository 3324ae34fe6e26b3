"""Asks a server without a pause, over gRPC and REST, until a file appears, and says in JSON what came back.

    load_serving.py GRPC REST MODEL STOP
"""

import collections
import http.client
import json
import os
import pathlib
import sys
import threading
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import grpc  # noqa: E402
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc  # noqa: E402

grpc_address, rest_address, model, stop = sys.argv[1:]
stop = pathlib.Path(stop)
counts, failures, falls, gaps = collections.Counter(), [], [], []
lock = threading.Lock()


def record(kind, begun, error, version=None, before=None, last=None):
    with lock:
        counts[kind] += 1
        if error:
            failures.append(f"{kind}: {error}")
        elif last:
            gaps.append(time.monotonic() - last)
        if version is not None and before is not None and version < before:
            falls.append((before, version))


def over_grpc():
    stub = prediction_service_pb2_grpc.PredictionServiceStub(grpc.insecure_channel(grpc_address))
    request = predict_pb2.PredictRequest()
    request.model_spec.name = model
    request.inputs["x"].dtype = 1
    for size in (1, 4):
        request.inputs["x"].tensor_shape.dim.add().size = size
    request.inputs["x"].float_val.extend([1, 2, 3, 4])
    newest, last = 0, time.monotonic()
    while not stop.exists():
        begun = time.monotonic()
        try:
            answer = stub.Predict(request, 30)
            record("grpc", begun, None, answer.model_spec.version.value, newest, last)
            newest, last = answer.model_spec.version.value, time.monotonic()
        except grpc.RpcError as error:
            record("grpc", begun, f"{error.code()} {error.details()}")
            time.sleep(0.002)


def over_rest():
    connection = http.client.HTTPConnection(rest_address, timeout=30)
    body = json.dumps({"instances": [[1, 2, 3, 4]]})
    last = time.monotonic()
    while not stop.exists():
        begun = time.monotonic()
        try:
            connection.request("POST", f"/v1/models/{model}:predict", body)
            answer = connection.getresponse()
            text = answer.read()
            record("rest", begun, None if answer.status == 200 else f"{answer.status} {text}", last=last)
            last = time.monotonic()
        except Exception as error:
            record("rest", begun, repr(error))
            connection.close()
            time.sleep(0.002)


threads = [threading.Thread(target=target) for target in (over_grpc, over_grpc, over_rest, over_rest)]
for thread in threads:
    thread.start()
print("begun", flush=True)
for thread in threads:
    thread.join()
print(json.dumps({"requests": sum(counts.values()), **counts, "failed": len(failures), "failures": failures[:5],
                  "falls": falls[:5], "longest_gap": max(gaps, default=0)}))
