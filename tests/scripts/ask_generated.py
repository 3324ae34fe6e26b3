"""Asks for the cases of generated_models.py, alone and by eight clients at once; each answer must be the SavedModel's own.

    ask_generated.py HOST:PORT CASES.json ROUNDS
"""

import collections
import json
import os
import random
import sys
import threading

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import grpc  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc  # noqa: E402

address, path, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
CLIENTS = 8


def request_of(case):
    request = predict_pb2.PredictRequest()
    request.model_spec.name, request.model_spec.signature_name = case["model"], case["signature"]
    for name, value in case["inputs"].items():
        array = np.array(value, dtype=None if case["types"][name] == "string" else case["types"][name])
        request.inputs[name].CopyFrom(tf.make_tensor_proto(array, dtype=case["types"][name], shape=array.shape))
    return request


def check(case, answer, seen):
    have = {name: tf.make_ndarray(value) for name, value in answer.outputs.items()}
    assert set(have) == set(case["outputs"]), (case["kind"], set(have))
    for name, want in case["outputs"].items():
        if case["kind"] == "counter":  # each run once, in any order
            assert len(set(have[name].tolist())) == 1, have
            seen.append(int(have[name][0]))
        elif case["kind"] == "random_numbers":
            assert have[name].shape == np.shape(want) and ((have[name] >= 0) & (have[name] < 1)).all(), have
            seen.append(tuple(have[name].ravel().tolist()))
        elif have[name].dtype == object:
            assert np.vectorize(bytes.decode, otypes=[object])(have[name]).tolist() == want, (case["kind"], have[name], want)
        else:
            want = np.array(want, dtype=have[name].dtype)
            assert have[name].shape == want.shape, (case["kind"], name, have[name].shape, want.shape)
            tolerance = 0 if want.dtype.kind not in "f" else 1e-2 if want.dtype == np.float16 else 1e-5
            scale = np.abs(want).max(initial=0) if tolerance else 0
            assert np.allclose(have[name], want, rtol=0, atol=tolerance * scale), (case["kind"], name, have[name], want)


by_model = collections.defaultdict(list)
for case in json.load(open(path)):
    by_model[case["model"]].append((case, request_of(case)))
stub = prediction_service_pb2_grpc.PredictionServiceStub(grpc.insecure_channel(address))
wrong, total = [], 0


def client(cases, number, seen):
    own = prediction_service_pb2_grpc.PredictionServiceStub(grpc.insecure_channel(address, [("grpc.use_local_subchannel_pool", 1)]))
    order = cases * rounds
    random.Random(number).shuffle(order)
    for case, request in order:
        try:
            check(case, own.Predict(request, 60), seen)
        except Exception as error:  # an answer that is not TensorFlow's, or none
            wrong.append(f"{case['model']} {case['kind']}: {str(error)[:300]}")


for model, cases in by_model.items():
    seen = []
    for case, request in cases:
        try:
            check(case, stub.Predict(request, 60), seen)
        except Exception as error:
            wrong.append(f"alone: {model} {case['kind']}: {str(error)[:300]}")
    threads = [threading.Thread(target=client, args=(cases, number, seen)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asked = len(cases) * (1 + CLIENTS * rounds)
    total += asked
    if cases[0][0]["kind"] == "counter" and sorted(seen) != list(range(1, asked + 1)):
        wrong.append(f"{model} counter: {sorted(seen)[:5]} … {sorted(seen)[-1]} of {asked}")
    if cases[0][0]["kind"] == "random_numbers" and len(set(seen)) != asked:
        wrong.append(f"{model}: {asked - len(set(seen))} answers were given twice")
print(json.dumps({"asked": total, "wrong": len(wrong), "first": wrong[:5]}))
sys.exit(1 if wrong else 0)
