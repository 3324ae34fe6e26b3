"""Writes small SavedModels of many kinds, and what TensorFlow itself makes of some inputs.

    saved_models.py OUT      OUT/NAME/1/…, OUT/expected.json
"""

import json
import os
import pathlib
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

out = pathlib.Path(sys.argv[1])
random = np.random.default_rng(7)
expected = []


def spec(shape, dtype, name):
    return tf.TensorSpec(shape, dtype, name=name)


def plain(array):
    """An array as JSON has it."""
    array = np.asarray(array)
    if array.dtype == object:
        return np.vectorize(lambda text: text.decode(), otypes=[object])(array).tolist()
    return array.tolist()


def ask(name, signature, **inputs):
    """Runs the SavedModel in Python, and remembers what came out."""
    function = tf.saved_model.load(str(out / name / "1")).signatures[signature]
    outputs = function(**{key: tf.constant(value) for key, value in inputs.items()})
    expected.append({"model": name, "signature": signature,
                     "types": {key: tf.constant(value).dtype.name for key, value in inputs.items()},
                     "inputs": {key: plain(tf.constant(value).numpy()) for key, value in inputs.items()},
                     "outputs": {key: plain(value.numpy()) for key, value in outputs.items()},
                     "output_types": {key: value.dtype.name for key, value in outputs.items()}})


def save(name, module, **signatures):
    tf.saved_model.save(module, str(out / name / "1"), signatures=signatures)


def dense():
    module = tf.Module()
    module.w = tf.Variable(random.normal(size=(4, 3)).astype("f"))
    module.b = tf.Variable([0.1, 0.2, 0.3])

    @tf.function(input_signature=[spec([None, 4], tf.float32, "x")])
    def predict(x):
        return {"y": tf.matmul(x, module.w) + module.b}

    save("dense", module, serving_default=predict)
    ask("dense", "serving_default", x=random.normal(size=(1, 4)).astype("f"))
    ask("dense", "serving_default", x=random.normal(size=(5, 4)).astype("f"))


def conv():
    module = tf.Module()
    module.kernel = tf.Variable(random.normal(size=(3, 3, 1, 8)).astype("f"))
    module.w = tf.Variable(random.normal(size=(13 * 13 * 8, 10)).astype("f") / 30)

    @tf.function(input_signature=[spec([None, 28, 28, 1], tf.float32, "image")])
    def predict(image):
        x = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(image, module.kernel, 1, "VALID")), 2, 2, "VALID")
        logits = tf.matmul(tf.reshape(x, [-1, 13 * 13 * 8]), module.w)
        return {"classes": tf.argmax(logits, -1), "probabilities": tf.nn.softmax(logits)}

    save("conv", module, serving_default=predict, predict=predict)
    ask("conv", "predict", image=random.random((2, 28, 28, 1)).astype("f"))


def text():
    @tf.function(input_signature=[spec([None], tf.string, "text")])
    def predict(text):
        return {"upper": tf.strings.upper(text), "length": tf.strings.length(text), "raw_bytes": text}

    save("text", tf.Module(), serving_default=predict)
    ask("text", "serving_default", text=[b"hello", "grüße".encode(), b""])
    # Beyond what lies in the tensor itself: an output may be the very memory of an input.
    ask("text", "serving_default", text=[b"long " * 100, b"short"])


def hostile():
    """Names that would do harm if a page took them for markup."""
    name = "<img src=x onerror=\"document.title='owned'\">"

    @tf.function(input_signature=[spec([None], tf.string, "text")])
    def predict(text):
        return {name: text}

    save("hostile", tf.Module(), **{"serving_default": predict, name: predict})


def many():
    module = tf.Module()
    module.scale = tf.Variable(3.0)

    @tf.function(input_signature=[spec([None, 2], tf.float32, "a"), spec([None, 2], tf.float32, "b")])
    def add(a, b):
        return {"sum": a + b}

    @tf.function(input_signature=[spec([None], tf.float32, "x")])
    def times(x):
        return {"scaled": x * module.scale}

    @tf.function(input_signature=[spec([2], tf.float32, "x")])
    def total(x):  # no rows in its output
        return {"total": tf.reduce_sum(x)}

    save("many", module, serving_default=add, times=times, total=total)
    ask("many", "serving_default", a=np.float32([[1, 2], [3, 4]]), b=np.float32([[10, 20], [30, 40]]))
    ask("many", "times", x=np.float32([1.5, -2.5]))
    ask("many", "total", x=np.float32([1.5, 2]))


def types():
    dtypes = [tf.float64, tf.float16, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64, tf.bool]
    names = [dtype.name for dtype in dtypes]

    @tf.function(input_signature=[spec([None], dtype, dtype.name) for dtype in dtypes])
    def same(*values):
        return {f"{name}_again": tf.identity(value) for name, value in zip(names, values)}

    save("types", tf.Module(), serving_default=same)
    ask("types", "serving_default", float64=np.float64([0.1, -1e300]), float16=np.float16([0.5, -2.25]),
        int8=np.int8([-128, 127]), int16=np.int16([-32768, 32767]), int32=np.int32([-2**31, 2**31 - 1]),
        int64=np.int64([-2**63, 2**63 - 1]), uint8=np.uint8([0, 255]), uint16=np.uint16([0, 65535]),
        uint32=np.uint32([0, 2**32 - 1]), uint64=np.uint64([0, 2**64 - 1]), bool=np.array([True, False]))


def examples():
    """Classify and regress take serialized examples, as Estimators export them."""
    features = {"x": tf.io.FixedLenFeature([2], tf.float32)}

    build = tf.compat.v1.saved_model
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        inputs = tf.compat.v1.placeholder(tf.string, [None], "examples")
        x = tf.compat.v1.parse_example(inputs, features)["x"]
        scores = tf.nn.softmax(x, name="scores")
        labels = tf.tile(tf.constant([["no", "yes"]]), [tf.shape(x)[0], 1])
        value = tf.reduce_sum(x, axis=1, keepdims=True)
        signatures = {
            "serving_default": build.classification_signature_def(inputs, labels, scores),
            "regress": build.regression_signature_def(inputs, value)}
        builder = build.Builder(str(out / "examples" / "1"))
        builder.add_meta_graph_and_variables(session, ["serve"], signature_def_map=signatures)
        builder.save()


def native_examples():
    """Classify and regress as TensorFlow 2 exports them: every signature is for predict."""
    @tf.function(input_signature=[spec([None], tf.string, "inputs")])
    def classify(inputs):
        x = tf.io.parse_example(inputs, {"x": tf.io.FixedLenFeature([2], tf.float32)})["x"]
        return {"classes": tf.tile(tf.constant([["no", "yes"]]), [tf.shape(x)[0], 1]), "scores": tf.nn.softmax(x)}

    @tf.function(input_signature=[spec([None], tf.string, "inputs")])
    def regress(inputs):
        return {"outputs": tf.reduce_sum(tf.io.parse_example(inputs, {"x": tf.io.FixedLenFeature([2], tf.float32)})["x"], axis=1)}

    save("native_examples", tf.Module(), serving_default=classify, regress=regress)


def odd():
    """Signatures that say little about what they take: a missing shape, and a variable of TensorFlow 1 as an output."""
    build = tf.compat.v1.saved_model
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, None, "x")
        v = tf.compat.v1.get_variable("v", initializer=[1.0, 2.0], use_resource=False)
        session.run(tf.compat.v1.global_variables_initializer())
        signature = build.predict_signature_def({"x": x}, {"y": x * 2, "v": v})
        signature.inputs["x"].ClearField("tensor_shape")
        builder = build.Builder(str(out / "odd" / "1"))
        builder.add_meta_graph_and_variables(session, ["serve"], signature_def_map={"serving_default": signature})
        builder.save()


def slow():
    """Takes a second a run."""
    @tf.function(input_signature=[spec([None, 1], tf.float32, "x")])
    def predict(x):
        y = tf.fill([700, 700], tf.reduce_sum(x) * 0)
        for _ in tf.range(10 ** 9):
            if tf.timestamp() - start.read_value() > 1:
                break
            y = tf.matmul(y, y)
        return {"y": x + y[0, 0]}

    start = tf.Variable(0.0, dtype=tf.float64)

    @tf.function(input_signature=[spec([None, 1], tf.float32, "x")])
    def second(x):
        start.assign(tf.timestamp())
        return predict(x)

    module = tf.Module()
    module.start = start
    save("slow", module, serving_default=second)


for make in (dense, conv, text, hostile, many, types, examples, native_examples, odd, slow):
    make()
(out / "expected.json").write_text(json.dumps(expected))
