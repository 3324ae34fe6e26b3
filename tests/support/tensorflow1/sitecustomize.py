"""TensorFlow 1 on top of TensorFlow 2.15, as far as the original scripts of the seed projects use it. Python imports this by itself.

With TENSORFLOW_1 set, the names of `tf.compat.v1` replace those of `tensorflow`, and `tf.contrib` and the input of the MNIST tutorials,
which 2.15 does not have, are here. MNIST comes from $MNIST_DATA. A path `s3://BUCKET/…` in a variable becomes the folder
/buckets/BUCKET/…, because TensorFlow has had no S3 since 2.6.
"""

import importlib.abc
import importlib.util
import os
import sys
import types

for name, value in os.environ.items():
    if value.startswith("s3://"):
        os.environ[name] = value.replace("s3://", "/buckets/", 1)


def read(part):
    """(images from 0 to 255, labels)"""
    import numpy as np
    folder = os.environ["MNIST_DATA"]
    images = np.fromfile(f"{folder}/{part}-images-idx3-ubyte", np.uint8, offset=16).reshape(-1, 28, 28)
    return images, np.fromfile(f"{folder}/{part}-labels-idx1-ubyte", np.uint8, offset=8)


class Part:
    def __init__(self, part, one_hot=False):
        import numpy as np
        images, labels = read(part)
        self.images = images.reshape(-1, 784).astype(np.float32) / 255
        self.labels = np.eye(10)[labels] if one_hot else labels

    def next_batch(self, count):
        import numpy as np
        chosen = np.random.default_rng().choice(len(self.images), count)
        return self.images[chosen], self.labels[chosen]


def data_sets(*_, one_hot=False, **__):
    return types.SimpleNamespace(train=Part("train", one_hot), test=Part("t10k", one_hot))


def module(name, **content):
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(content)


def as_of_old(tf):
    v1 = tf.compat.v1
    v1.disable_v2_behavior()
    for name in dir(v1):
        if not name.startswith("_"):
            setattr(tf, name, getattr(v1, name))
    sets = types.SimpleNamespace(load_dataset=data_sets, DATASETS={"mnist": data_sets})
    tf.contrib = types.SimpleNamespace(learn=types.SimpleNamespace(datasets=sets),
                                       util=types.SimpleNamespace(make_tensor_proto=tf.make_tensor_proto))
    module("tensorflow.examples")
    module("tensorflow.examples.tutorials")
    module("tensorflow.examples.tutorials.mnist", input_data=types.SimpleNamespace(read_data_sets=data_sets))

    def stub(channel):
        from tensorflow_serving.apis.prediction_service_pb2_grpc import PredictionServiceStub
        return PredictionServiceStub(channel._channel)
    module("tensorflow_serving.apis.prediction_service_pb2", beta_create_PredictionService_stub=stub)


def prepare(tf):
    if os.environ.get("TENSORFLOW_1"):
        as_of_old(tf)
    else:
        tf.keras.datasets.mnist.load_data = lambda: (read("train"), read("t10k"))


class AfterTensorFlow(importlib.abc.MetaPathFinder):
    """Calls `prepare` when `import tensorflow` has run."""

    def find_spec(self, name, path, target=None):
        if name != "tensorflow":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module

        def run_and_prepare(loaded):
            run(loaded)
            prepare(loaded)
        spec.loader.exec_module = run_and_prepare
        return spec


if os.environ.get("TENSORFLOW_1") and not importlib.util.find_spec("PIL"):
    module("PIL", Image=None)  # imported before TensorFlow
sys.meta_path.insert(0, AfterTensorFlow())
