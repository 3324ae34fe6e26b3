"""Writes SavedModels drawn from seeds, row-wise ones and others, and what each answers when it is called in Python.

    generated_models.py OUT SEED...      OUT/m-SEED/1/…, OUT/cases.json
"""

import json
import os
import pathlib
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

REQUESTS = 6  # for each signature
KINDS = {}


def kind(make):
    KINDS[make.__name__] = make
    return make


def function(*specs):
    """Names the inputs a, b, c, … in this order."""
    return tf.function(input_signature=[tf.TensorSpec(shape, dtype, name=chr(97 + i)) for i, (shape, dtype) in enumerate(specs)])


def floats(random, *shape, dtype="f"):
    return random.normal(size=shape).astype(dtype)


def rows(random):
    return int(random.integers(1, 7))


def simple(random, compute, dtype=tf.float32, width=None):
    """One signature that computes y from a matrix."""
    width = width or int(random.integers(2, 6))

    @function(([None, width], dtype))
    def predict(a):
        return {"y": compute(a)}
    return tf.Module(), {"serving_default": (predict, lambda: [floats(random, rows(random), width, dtype=dtype.as_numpy_dtype)])}


@kind
def softmax_over_the_batch(random):
    return simple(random, lambda a: tf.nn.softmax(a, axis=0))


@kind
def dense(random):
    module, width = tf.Module(), int(random.integers(2, 9))
    module.w = tf.Variable(floats(random, width, 3))

    @function(([None, width], tf.float32))
    def predict(a):
        logits = tf.matmul(tf.tanh(a), module.w)
        return {"classes": tf.argmax(logits, -1), "probabilities": tf.nn.softmax(logits)}
    return module, {"serving_default": (predict, lambda: [floats(random, rows(random), width)])}


@kind
def counter(random):
    module = tf.Module()
    module.count = tf.Variable(0, dtype=tf.int64)

    @function(([None, 2], tf.float32))
    def predict(a):
        return {"count": tf.fill([tf.shape(a)[0]], module.count.assign_add(1))}
    return module, {"serving_default": (predict, lambda: [floats(random, rows(random), 2)])}


@kind
def two_signatures(random):
    module = tf.Module()
    module.scale = tf.Variable(float(random.normal()))

    @function(([None, 3], tf.float32))
    def each(a):
        return {"y": a * module.scale}

    @function(([None, 3], tf.float32))
    def all_of_them(a):
        return {"y": a * module.scale - tf.reduce_max(a, axis=0)}
    return module, {name: (each_or_all, lambda: [floats(random, rows(random), 3)])
                    for name, each_or_all in {"serving_default": each, "all": all_of_them}.items()}


@kind
def lookup_of_strings(random):
    words = ["red", "green", "blue", "grün"]
    module = tf.Module()
    module.table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(words, list(range(len(words)))), -1)

    @function(([None], tf.string))
    def predict(a):
        return {"id": module.table.lookup(a), "upper": tf.strings.upper(a)}
    return module, {"serving_default": (predict, lambda: [random.choice([*words, "none"], rows(random))])}


@kind
def sorted_over_the_batch(random):
    return simple(random, lambda a: tf.sort(a, axis=0))


@kind
def random_numbers(random):
    return simple(random, lambda a: tf.random.uniform(tf.shape(a)))


@kind
def declared_as_images_and_fed_flat(random):
    module = tf.Module()
    module.w = tf.Variable(floats(random, 12, 2))

    @function(([None, 3, 4], tf.float32))
    def predict(a):
        return {"y": tf.matmul(tf.reshape(a, [-1, 12]), module.w)}
    return module, {"serving_default": (predict, lambda: [floats(random, rows(random), 12)])}


@kind
def batch_statistics(random):
    def normalised(a):
        mean, variance = tf.nn.moments(a, axes=[0])
        return (a - mean) / tf.sqrt(variance + 1e-3)
    return simple(random, normalised)


@kind
def running_sum(random):
    return simple(random, lambda a: tf.cumsum(a, axis=0), tf.float64)


@kind
def best_of_the_batch(random):
    def best(a):
        values, _ = tf.math.top_k(tf.transpose(a), k=1)
        return tf.tile(tf.transpose(values), [tf.shape(a)[0], 1])
    return simple(random, best)


@kind
def convolution(random):
    module = tf.Module()
    module.kernel = tf.Variable(floats(random, 3, 3, 2, 4))

    @function(([None, 9, 9, 2], tf.float32))
    def predict(a):
        return {"y": tf.reduce_mean(tf.nn.relu(tf.nn.conv2d(a, module.kernel, 1, "VALID")), axis=[1, 2])}
    return module, {"serving_default": (predict, lambda: [floats(random, rows(random), 9, 9, 2)])}


@kind
def scalar(random):
    @function(([], tf.float32))
    def predict(a):
        return {"y": a * 2 + 1}
    return tf.Module(), {"serving_default": (predict, lambda: [np.float32(random.normal())])}


@kind
def embedding(random):
    module, size = tf.Module(), int(random.integers(3, 12))
    module.table = tf.Variable(floats(random, size, 4))

    @function(([None, 5], tf.int64))
    def predict(a):
        return {"y": tf.reduce_sum(tf.nn.embedding_lookup(module.table, a), axis=1)}
    return module, {"serving_default": (predict, lambda: [random.integers(0, size, (rows(random), 5))])}


@kind
def several_inputs(random):
    @function(([None, 2], tf.float32), ([None], tf.int32), ([None, 2, 2], tf.float64))
    def predict(a, b, c):
        return {"sum": a + tf.cast(b, tf.float32)[:, None], "trace": tf.linalg.trace(c), "positive": b > 0}

    def inputs():
        n = rows(random)
        return [floats(random, n, 2), random.integers(-5, 5, n).astype("i4"), floats(random, n, 2, 2, dtype="f8")]
    return tf.Module(), {"serving_default": (predict, inputs)}


@kind
def sequences_of_any_length(random):
    @function(([None, None], tf.float32))
    def predict(a):
        return {"mean": tf.reduce_mean(a, axis=1), "last": a[:, -1]}
    return tf.Module(), {"serving_default": (predict, lambda: [floats(random, rows(random), rows(random))])}


@kind
def small_types(random):
    @function(([None], tf.uint8), ([None], tf.int16), ([None], tf.bool), ([None], tf.float16))
    def predict(a, b, c, d):
        return {"bits": tf.bitwise.invert(a), "double": b * 2, "not": tf.logical_not(c), "half": d / 2}

    def inputs():
        n = rows(random)
        return [random.integers(0, 256, n).astype("u1"), random.integers(-99, 99, n).astype("i2"), random.integers(0, 2, n).astype(bool),
                floats(random, n, dtype="f2")]
    return tf.Module(), {"serving_default": (predict, inputs)}


@kind
def all_rows_in_one(random):
    return simple(random, lambda a: tf.reshape(a, [-1]))


@kind
def share_of_the_batch(random):
    return simple(random, lambda a: a / tf.cast(tf.shape(a)[0], tf.float32))


@kind
def attention_between_rows(random):
    return simple(random, lambda a: tf.matmul(tf.nn.softmax(tf.matmul(a, a, transpose_b=True)), a))


@kind
def recurrence(random):
    @function(([None, 7], tf.float32))
    def predict(a):
        state = tf.zeros(tf.shape(a)[:1])
        for i in tf.range(7):
            state = tf.tanh(state + a[:, i])
        return {"state": state}
    return tf.Module(), {"serving_default": (predict, lambda: [floats(random, rows(random), 7)])}


@kind
def fixed_batch(random):
    @function(([2, 3], tf.float32))
    def predict(a):
        return {"y": a - tf.reduce_mean(a, axis=0)}
    return tf.Module(), {"serving_default": (predict, lambda: [floats(random, 2, 3)])}


@kind
def another_way_for_large_batches(random):
    return simple(random, lambda a: a + 1 if tf.shape(a)[0] < 9 else a - 1)


@kind
def words_joined_over_the_batch(random):
    @function(([None], tf.string))
    def predict(a):
        return {"all": tf.fill(tf.shape(a), tf.strings.reduce_join(a, separator=" "))}
    return tf.Module(), {"serving_default": (predict, lambda: [random.choice(["a", "bb", "ccc"], rows(random))])}


@kind
def keras_network(random):
    model = tf.keras.Sequential([tf.keras.Input((6,), name="a"), tf.keras.layers.Dense(8, "relu"), tf.keras.layers.BatchNormalization(),
                                 tf.keras.layers.Dropout(0.5), tf.keras.layers.Dense(3, "softmax", name="y")])

    @function(([None, 6], tf.float32))
    def predict(a):
        return {"y": model(a, training=False)}
    return model, {"serving_default": (predict, lambda: [floats(random, rows(random), 6)])}


@kind
def keras_network_in_training(random):
    model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(4), tf.keras.layers.BatchNormalization(trainable=True)])

    @function(([None, 4], tf.float32))
    def predict(a):
        mean, variance = tf.nn.moments(model.layers[0](a), axes=[0])
        return {"y": (model.layers[0](a) - mean) / tf.sqrt(variance + 1e-3)}
    return model, {"serving_default": (predict, lambda: [floats(random, rows(random), 4)])}


def plain(array):
    array = np.asarray(array)
    if array.dtype.kind in "OSU":
        return np.vectorize(lambda text: text.decode() if isinstance(text, bytes) else text, otypes=[object])(array).tolist()
    return array.tolist()


def cases_of(seed, path):
    name = list(KINDS)[seed % len(KINDS)]
    random = np.random.default_rng(seed)
    module, signatures = KINDS[name](random)
    tf.saved_model.save(module, str(path), signatures={key: function for key, (function, _) in signatures.items()})
    loaded = tf.saved_model.load(str(path))
    for key, (_, inputs) in signatures.items():
        for _ in range(REQUESTS):
            values = {chr(97 + i): tf.constant(value) for i, value in enumerate(inputs())}
            try:
                outputs = loaded.signatures[key](**values)
            except (ValueError, TypeError):  # Python checks the declared shapes; the graph does not
                outputs = {"y": loaded.signatures[key](a=tf.reshape(values["a"], [-1, 3, 4]))["y"]}
            yield {"model": f"m-{seed}", "kind": name, "signature": key, "types": {k: v.dtype.name for k, v in values.items()},
                   "inputs": {k: plain(v.numpy()) for k, v in values.items()}, "outputs": {k: plain(v.numpy()) for k, v in outputs.items()}}


if __name__ == "__main__":
    out = pathlib.Path(sys.argv[1])
    found = [case for seed in map(int, sys.argv[2:]) for case in cases_of(seed, out / f"m-{seed}" / "1")]
    (out / "cases.json").write_text(json.dumps(found))
