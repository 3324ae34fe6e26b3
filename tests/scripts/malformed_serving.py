"""Sends a server many kinds of gRPC requests that are wrong; each must be answered with an error of its own.

    malformed_serving.py HOST:PORT      serves the models dense, text and many
"""

import os
import random
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import grpc  # noqa: E402
from tensorflow_serving.apis import predict_pb2  # noqa: E402

channel = grpc.insecure_channel(sys.argv[1])
PREDICT = "/tensorflow.serving.PredictionService/Predict"


def call(method, data):
    return channel.unary_unary(method, lambda data: data, lambda data: data)(data, timeout=20)


def request(model="dense", signature="", name="x", dtype=1, dims=(1, 4), values=(1, 2, 3, 4), **fields):
    out = predict_pb2.PredictRequest()
    out.model_spec.name, out.model_spec.signature_name = model, signature
    tensor = out.inputs[name]
    tensor.dtype = dtype
    for dim in dims:
        tensor.tensor_shape.dim.add().size = dim
    tensor.float_val.extend(values)
    for field, value in fields.items():
        target = getattr(tensor, field)
        target.extend(value) if hasattr(target, "extend") else setattr(tensor, field, value)
    return out


good = request().SerializeToString()
call(PREDICT, good)
wrong = []
for dtype in [0, *range(2, 32), 101, 2**30]:
    wrong.append(request(dtype=dtype))
for dims in [(), (4,), (1, 3), (1, 5), (-1, 4), (1, -4), (1, 1, 4), (4, 1), (2**62, 4), (2**31, 2**31), (2**40, 4), (0, 3),
             (1,) * 255, (-2**63, 4)]:
    wrong.append(request(dims=dims))
wrong += [request(values=range(5)), request(values=range(1000)), request(tensor_content=b"123"),
          request(tensor_content=b"x" * 1000), request(model=""), request(model="nobody"), request(model="a/b"),
          request(model="x" * 100_000), request(signature="no"), request(signature="\x00"), request(name="y"), request(name=""),
          request(model="text", name="text", dtype=7, dims=(2**38,), values=()),
          request(model="text", name="text", dtype=7, dims=(1,), values=(), tensor_content=b"abc"),
          request(model="text", name="text", dtype=7, dims=(1,), values=(), string_val=[b"a", b"b"]),
          request(model="many", name="a", dims=(1, 2), values=(1, 2))]
unknown_rank = request()
unknown_rank.inputs["x"].tensor_shape.unknown_rank = True
version = request()
version.model_spec.version.value = 99
label = request()
label.model_spec.version_label = "none"
more = request()
more.inputs["z"].CopyFrom(more.inputs["x"])
output = request()
output.output_filter.append("nothing")
wrong += [unknown_rank, version, label, more, output]
payloads = [(PREDICT, each.SerializeToString()) for each in wrong]
shuffle = random.Random(5)
for method in ("Classify", "Regress", "GetModelMetadata"):
    payloads += [(f"/tensorflow.serving.PredictionService/{method}", data) for data in (b"", b"\xff" * 40, good[:9])]
payloads += [(f"/tensorflow.serving.ModelService/{method}", data) for method in ("GetModelStatus", "HandleReloadConfigRequest")
             for data in (b"", b"\xff" * 40)]
payloads += [("/tensorflow.serving.PredictionService/MultiInference", b""), ("/no.Such/Method", b"")]
for i in range(40):  # cut, or with a byte of its lengths and tags broken
    cut = good[:1 + i * (len(good) - 2) // 40]
    payloads.append((PREDICT, cut))
    payloads.append((PREDICT, bytes([shuffle.randrange(256) for _ in range(1 + 7 * i)])))
kinds = set()
for method, data in payloads:
    try:
        call(method, data)
        raise SystemExit(f"was answered: {method} {data[:60]}")
    except grpc.RpcError as error:
        assert error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED), (method, data[:60], error)
        kinds.add(error.code().name)
call(PREDICT, good)
print(len(payloads), "requests were refused:", *sorted(kinds))
