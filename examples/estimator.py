"""A small convnet on MNIST as an Estimator: chief, parameter servers, workers and an evaluator.

Under Trainyard:           trainyard run examples/estimator.py --chief --ps 1 -w 1 --evaluator
Alone, in this process:    python examples/estimator.py

Needs TensorFlow 2.15 or older: later ones have no Estimator. `train_and_evaluate` reads TF_CONFIG,
does what its role asks for and, started again, goes on from the last checkpoint. As --max-steps is
set the evaluator ends too; parameter servers never do and are ended by whoever started them. The
trained model appears under a number: OUTPUT/<seconds since 1970>.
"""

import argparse
import functools
import os

import numpy as np
import tensorflow as tf


def parse_flags():
    env = os.environ.get
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--max-steps", type=int, default=1000, help="of all workers together")
    parser.add_argument("--batch-size", type=int, default=128, help="of each step of a worker")
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    parser.add_argument("--hidden-layers", type=int, default=1, help="after the convolutions")
    parser.add_argument("--checkpoint-every", type=int, default=200, metavar="STEPS")
    parser.add_argument("--data-dir", help="default: $MNIST_DATA, or of script/mnist-data")
    parser.add_argument("--output-dir", default=env("TRAINYARD_OUTPUT_DIR", "output"))
    # An Estimator has one directory for checkpoints and event files: the one TensorBoard reads.
    parser.add_argument("--model-dir", default=env("TRAINYARD_LOG_DIR", "tensorboard"))
    return parser.parse_args()


def load_mnist(data_dir):
    """Returns (images, labels) to train on and to test on; images are bytes, [N, 28, 28, 1]."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    places = [data_dir] if data_dir else [os.environ.get("MNIST_DATA"), f"{cache}/trainyard/mnist"]
    for place in filter(None, places):
        if os.path.exists(f"{place}/train-images-idx3-ubyte"):
            read = functools.partial(np.fromfile, dtype=np.uint8)
            return [(read(f"{place}/{of}-images-idx3-ubyte", offset=16).reshape(-1, 28, 28, 1),
                     read(f"{place}/{of}-labels-idx1-ubyte", offset=8)) for of in ("train", "t10k")]
    if data_dir:
        raise SystemExit(f"no MNIST in {data_dir}: there is no train-images-idx3-ubyte")
    try:
        parts = tf.keras.datasets.mnist.load_data()
        return [(images[..., None], labels) for images, labels in parts]
    except Exception as error:
        raise SystemExit(f"no MNIST here, and no download ({error}): run script/mnist-data first")


def read(data, batch_size, forever):
    """Batch by batch out of memory: constants would become part of every copy of the graph."""
    images, labels = data

    def batches():
        while True:
            order = np.random.permutation(len(labels)) if forever else np.arange(len(labels))
            for start in range(0, len(order), batch_size):
                chosen = order[start:start + batch_size]
                yield {"image": images[chosen] / np.float32(255)}, labels[chosen]
            if not forever:
                return

    kinds = {"image": tf.TensorSpec([None, 28, 28, 1], tf.float32)}, tf.TensorSpec([None], tf.int64)
    return tf.data.Dataset.from_generator(batches, output_signature=kinds).prefetch(2)


def model_fn(features, labels, mode, params):
    model = tf.keras.Sequential([
        tf.keras.layers.Conv2D(16, 5, strides=2, activation="relu"),
        tf.keras.layers.Conv2D(32, 3, strides=2, activation="relu"),
        tf.keras.layers.Flatten(),
        *(tf.keras.layers.Dense(64, activation="relu") for _ in range(params["hidden_layers"])),
        tf.keras.layers.Dense(10),
    ])
    logits = model(features["image"])
    answers = {"classes": tf.argmax(logits, axis=-1), "probabilities": tf.nn.softmax(logits)}
    if mode == tf.estimator.ModeKeys.PREDICT:
        output = tf.estimator.export.PredictOutput(answers)
        signatures = {"predict": output, "serving_default": output}
        return tf.estimator.EstimatorSpec(mode, answers, export_outputs=signatures)

    loss = tf.compat.v1.losses.sparse_softmax_cross_entropy(labels, logits)
    accuracy = tf.compat.v1.metrics.accuracy(labels, answers["classes"])
    tf.compat.v1.summary.scalar("accuracy", accuracy[1])
    optimizer = tf.compat.v1.train.AdamOptimizer(params["learning_rate"])
    step = optimizer.minimize(loss, tf.compat.v1.train.get_global_step())
    metrics = {"accuracy": accuracy}
    return tf.estimator.EstimatorSpec(mode, answers, loss, step, eval_metric_ops=metrics)


def serving_input():
    image = tf.compat.v1.placeholder(tf.float32, [None, 28, 28, 1], name="image")  # From 0 to 1.
    return tf.estimator.export.ServingInputReceiver({"image": image}, {"image": image})


def main():
    flags = parse_flags()
    if not hasattr(tf, "estimator"):
        raise SystemExit("tf.estimator is gone since 2.16: use TensorFlow 2.15")
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.INFO)
    train, test = load_mnist(flags.data_dir)
    config = tf.estimator.RunConfig(
        flags.model_dir, save_checkpoints_steps=flags.checkpoint_every, save_summary_steps=20,
        # Many, since the evaluator fails on one that is deleted while it takes it up.
        log_step_count_steps=20, keep_checkpoint_max=50)
    estimator = tf.estimator.Estimator(model_fn, config=config, params=vars(flags))
    read_test = functools.partial(read, test, 1000, forever=False)
    tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(
            functools.partial(read, train, flags.batch_size, forever=True), flags.max_steps),
        tf.estimator.EvalSpec(read_test, steps=None, start_delay_secs=5, throttle_secs=5))

    if config.is_chief:
        os.environ.pop("TF_CONFIG", None)  # The rest needs none of the others, who may be gone.
        trained = tf.estimator.Estimator(model_fn, flags.model_dir, params=vars(flags))
        accuracy = trained.evaluate(read_test, name="final")["accuracy"]
        trained.export_saved_model(flags.output_dir, serving_input)
        print(f"test accuracy: {accuracy:.4f}", flush=True)


if __name__ == "__main__":
    main()
