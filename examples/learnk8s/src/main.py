"""Recognises handwritten digits: a convnet as an Estimator, for one process or for master, workers and parameter servers.

TensorFlow 2.15 is the last that has Estimators. `train_and_evaluate` finds its role in TF_CONFIG and does what it asks for;
nothing else here knows of the others. Pictures are taken as they are in a PNG, 0 to 255, when trained and when asked.
"""

import argparse
import functools
import os

import numpy as np
import tensorflow as tf

BATCH = 64


def parse_flags():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=100, help="of all workers together")
    parser.add_argument("--hidden_layers", type=int, default=2, help="convolutions, each halves the picture (1 to 4)")
    parser.add_argument("--learning_rate", type=float, default=0.01)
    parser.add_argument("--model_dir", default="./model/", help="checkpoints, and event files for TensorBoard")
    parser.add_argument("--export_dir", default="./export/", help="where the model appears under a number")
    return parser.parse_args()


def load_mnist():
    """(images, labels) to train on and to test on: from $MNIST_DATA, or as Keras keeps or downloads them."""
    place = os.environ.get("MNIST_DATA")
    if not place:
        return tf.keras.datasets.mnist.load_data()
    read = functools.partial(np.fromfile, dtype=np.uint8)
    return [(read(f"{place}/{of}-images-idx3-ubyte", offset=16).reshape(-1, 28, 28),
             read(f"{place}/{of}-labels-idx1-ubyte", offset=8)) for of in ("train", "t10k")]


def batches(data, forever):
    """Out of memory piece by piece: as constants the pictures would be part of every copy of the graph."""
    images, labels = data

    def pieces():
        while True:
            order = np.random.permutation(len(labels)) if forever else np.arange(len(labels))
            size = BATCH if forever else 1000
            for start in range(0, len(order), size):
                chosen = order[start:start + size]
                yield {"image": images[chosen][..., None].astype(np.float32)}, labels[chosen]
            if not forever:
                return

    kinds = {"image": tf.TensorSpec([None, 28, 28, 1], tf.float32)}, tf.TensorSpec([None], tf.int64)
    return tf.data.Dataset.from_generator(pieces, output_signature=kinds).prefetch(2)


def model_fn(features, labels, mode, params):
    training = mode == tf.estimator.ModeKeys.TRAIN
    found = features["image"] / 255
    for _ in range(params["hidden_layers"]):
        found = tf.keras.layers.Conv2D(16, 5, padding="same", activation="relu")(found)
        found = tf.keras.layers.MaxPool2D(2)(found)
    found = tf.keras.layers.Dense(128, activation="relu")(tf.keras.layers.Flatten()(found))
    found = tf.keras.layers.Dropout(0.4)(found, training=training)
    logits = tf.keras.layers.Dense(10)(found)
    answers = {"classes": tf.argmax(logits, axis=-1), "probabilities": tf.nn.softmax(logits)}
    if mode == tf.estimator.ModeKeys.PREDICT:
        output = tf.estimator.export.PredictOutput(answers)
        return tf.estimator.EstimatorSpec(mode, answers, export_outputs={"predict": output, "serving_default": output})

    loss = tf.compat.v1.losses.sparse_softmax_cross_entropy(labels, logits)
    accuracy = tf.compat.v1.metrics.accuracy(labels, answers["classes"])
    tf.compat.v1.summary.scalar("accuracy", accuracy[1])
    step = tf.compat.v1.train.AdamOptimizer(params["learning_rate"]).minimize(loss, tf.compat.v1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, answers, loss, step, eval_metric_ops={"accuracy": accuracy})


def picture():
    image = tf.compat.v1.placeholder(tf.float32, [None, 28, 28, 1], name="image")
    return tf.estimator.export.ServingInputReceiver({"image": image}, {"image": image})


def main():
    flags = parse_flags()
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.INFO)
    train, test = load_mnist()
    config = tf.estimator.RunConfig(flags.model_dir, save_checkpoints_steps=20, save_summary_steps=20,
                                    log_step_count_steps=20)
    estimator = tf.estimator.Estimator(model_fn, config=config, params=vars(flags))
    read_test = functools.partial(batches, test, forever=False)
    tf.estimator.train_and_evaluate(
        estimator, tf.estimator.TrainSpec(functools.partial(batches, train, forever=True), flags.steps),
        tf.estimator.EvalSpec(read_test, steps=None, throttle_secs=30))

    if config.is_chief:  # Nobody else has the checkpoints.
        os.environ.pop("TF_CONFIG", None)  # What is left needs none of the others, who may be gone.
        trained = tf.estimator.Estimator(model_fn, flags.model_dir, params=vars(flags))
        accuracy = trained.evaluate(read_test, name="final")["accuracy"]
        print("exported", trained.export_saved_model(flags.export_dir, picture).decode(), flush=True)
        print(f"accuracy: {accuracy:.4f}", flush=True)


if __name__ == "__main__":
    main()
