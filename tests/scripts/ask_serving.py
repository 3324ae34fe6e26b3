"""Asks a server, by the unmodified client of TensorFlow Serving, what TensorFlow itself has answered already.

    ask_serving.py HOST:PORT EXPECTED.json
"""

import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import grpc  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow_serving.apis import (classification_pb2, get_model_metadata_pb2, get_model_status_pb2,  # noqa: E402
                                     model_service_pb2_grpc, predict_pb2, prediction_service_pb2_grpc, regression_pb2)

channel = grpc.insecure_channel(sys.argv[1])
stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
models = model_service_pb2_grpc.ModelServiceStub(channel)


def predict(case, content, **spec):
    request = predict_pb2.PredictRequest()
    request.model_spec.name = case["model"]
    request.model_spec.signature_name = case["signature"]
    for name, value in case["inputs"].items():
        array = np.array(value, dtype=None if case["types"][name] == "string" else case["types"][name])
        proto = tf.make_tensor_proto(array, dtype=case["types"][name], shape=array.shape)
        if content and proto.tensor_content == b"" and case["types"][name] != "string":  # small ones come in typed fields
            for field in ("float_val", "double_val", "int_val", "int64_val", "half_val", "bool_val", "uint32_val", "uint64_val"):
                proto.ClearField(field)
            proto.tensor_content = array.tobytes()
        request.inputs[name].CopyFrom(proto)
    return stub.Predict(request, 20)


count = 0
for case in json.load(open(sys.argv[2])):
    for content in (False, True):
        answer = predict(case, content)
        assert answer.model_spec.version.value == 1 and answer.model_spec.signature_name == case["signature"], answer
        assert set(answer.outputs) == set(case["outputs"]), answer
        for name, want in case["outputs"].items():
            have = tf.make_ndarray(answer.outputs[name])
            if case["output_types"][name] == "string":
                assert have.tolist() == np.vectorize(str.encode, otypes=[object])(np.array(want, dtype=object)).tolist(), (name, have)
            else:
                assert have.dtype == case["output_types"][name] and have.shape == np.array(want).shape, (name, have)
                np.testing.assert_allclose(have, np.array(want, dtype=have.dtype), rtol=1e-5, atol=1e-6)
        count += 1

example = tf.train.Example()
example.features.feature["x"].float_list.value.extend([1, 2])
request = classification_pb2.ClassificationRequest()
request.model_spec.name = "examples"
request.input.example_list.examples.extend([example] * 2)
classes = [(each.label, round(each.score, 4)) for each in stub.Classify(request, 20).result.classifications[1].classes]
assert classes == [("no", 0.2689), ("yes", 0.7311)], classes
request = regression_pb2.RegressionRequest()
request.model_spec.name, request.model_spec.signature_name = "examples", "regress"
request.input.example_list_with_context.examples.extend([tf.train.Example()])
request.input.example_list_with_context.context.CopyFrom(example)
assert [each.value for each in stub.Regress(request, 20).result.regressions] == [3.0]

request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
request.model_spec.name = "many"
signatures = get_model_metadata_pb2.SignatureDefMap()
assert stub.GetModelMetadata(request, 20).metadata["signature_def"].Unpack(signatures)
assert set(signatures.signature_def) == {"serving_default", "times", "total"}, signatures
request = get_model_status_pb2.GetModelStatusRequest()
request.model_spec.name = "many"
status = models.GetModelStatus(request, 20).model_version_status
assert [(each.version, each.state) for each in status] == [(1, get_model_status_pb2.ModelVersionStatus.AVAILABLE)], status
print(count, "answers are TensorFlow's")
