"""A small convnet on MNIST, trained by workers each at its own pace (ParameterServerStrategy).

Under Trainyard:  trainyard run examples/mnist_ps.py --chief --ps 1 -w 2 -- --epochs 3

The chief hands out the steps, the workers compute them, the parameter servers hold the weights; it
needs all three. Runs unchanged on TensorFlow 2.15 (Keras 2) and 2.21 (Keras 3). Workers may die and
come back at any time. A restarted chief goes on from the last checkpoint, with the old parameter
servers or new ones. The trained model appears under the next free number: OUTPUT/1, OUTPUT/2, ...
"""

import argparse
import functools
import os

import numpy as np
import tensorflow as tf

keras = tf.keras
SEED = 7


def parse_flags():
    env = os.environ.get
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=128, help="of each step of a worker")
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    parser.add_argument("--hidden-layers", type=int, default=1, help="after the convolutions")
    parser.add_argument("--steps-per-epoch", type=int, help="default: all of the data")
    parser.add_argument("--checkpoint-every", type=int, default=50, metavar="STEPS")
    parser.add_argument("--data-dir", help="default: $MNIST_DATA, or of script/mnist-data")
    parser.add_argument("--output-dir", default=env("TRAINYARD_OUTPUT_DIR", "output"))
    parser.add_argument("--checkpoint-dir", default=env("TRAINYARD_CHECKPOINT_DIR", "checkpoints"))
    parser.add_argument("--log-dir", default=env("TRAINYARD_LOG_DIR", "tensorboard"))
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
        return [(images[..., None], labels) for images, labels in keras.datasets.mnist.load_data()]
    except Exception as error:
        raise SystemExit(f"no MNIST here, and no download ({error}): run script/mnist-data first")


@functools.lru_cache(maxsize=1)
def order_of(epoch, size):
    return np.random.default_rng([SEED, epoch]).permutation(size)


def batch_of(step, data, batch_size, steps_per_epoch):
    """Depends on nothing but the step, so a restarted run neither skips nor repeats an image."""
    images, labels = data
    epoch, position = divmod(step, steps_per_epoch)
    places = np.arange(position * batch_size, (position + 1) * batch_size) % len(labels)
    chosen = order_of(epoch, len(labels))[places]
    return images[chosen], labels[chosen]


def build_model(hidden_layers):
    return keras.Sequential([
        keras.Input((28, 28, 1)),
        keras.layers.Conv2D(16, 5, strides=2, activation="relu"),
        keras.layers.Conv2D(32, 3, strides=2, activation="relu"),
        keras.layers.Flatten(),
        *(keras.layers.Dense(64, activation="relu") for _ in range(hidden_layers)),
        keras.layers.Dense(10),
    ])


def export(model, output_dir):
    """Writes the model as the next version, which gets its number only once it is whole."""
    @tf.function(input_signature=[tf.TensorSpec([None, 28, 28, 1], tf.float32, name="image")])
    def predict(image):  # Values from 0 to 1.
        logits = model(image)
        return {"classes": tf.argmax(logits, axis=-1), "probabilities": tf.nn.softmax(logits)}

    tf.io.gfile.makedirs(output_dir)
    names = [name.strip("/") for name in tf.io.gfile.listdir(output_dir)]
    version = 1 + max((int(name) for name in names if name.isdigit()), default=0)
    unfinished = f"{output_dir}/.unfinished"
    if tf.io.gfile.exists(unfinished):
        tf.io.gfile.rmtree(unfinished)
    served = tf.Module()
    served.model = model  # Whose variables are saved with it.
    tf.saved_model.save(served, unfinished, {"predict": predict, "serving_default": predict})
    tf.io.gfile.rename(unfinished, f"{output_dir}/{version}")
    print(f"exported {output_dir}/{version}", flush=True)


def report(events, number, steps_per_epoch, scores):
    """A line like those of Keras, and the same for TensorBoard."""
    done = number % steps_per_epoch + 1
    shown = "".join(f" - {name}: {score:.4f}" for name, score in scores.items())
    print(f"{done}/{steps_per_epoch}{shown}", flush=True)
    with events.as_default(step=number + 1):
        for name, score in scores.items():
            tf.summary.scalar(name, score)
        if done == steps_per_epoch:
            tf.summary.scalar("epoch_accuracy", scores["accuracy"])
    events.flush()


def main():
    flags = parse_flags()
    os.environ["GRPC_FAIL_FAST"] = "use_caller"  # A lost peer is an error at once, not a long wait.
    task = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if missing := {"chief", "ps", "worker"} - set(task.cluster_spec().jobs):
        raise SystemExit(f"TF_CONFIG has no {' and no '.join(sorted(missing))}: run it with "
                         "a chief, parameter servers and workers, or run examples/mnist.py")
    if task.task_type != "chief":  # Serves the chief until whoever started it ends it.
        tf.distribute.Server(task.cluster_spec(), task.task_type, task.task_id).join()

    train, test = load_mnist(flags.data_dir)
    steps_per_epoch = flags.steps_per_epoch or len(train[0]) // flags.batch_size
    keras.utils.set_random_seed(SEED)
    strategy = tf.distribute.ParameterServerStrategy(task)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        model = build_model(flags.hidden_layers)
        optimizer = keras.optimizers.Adam(flags.learning_rate)
        optimizer.build(model.trainable_variables)  # So that there is something to restore into.
        totals = tf.Variable(tf.zeros(2))  # Of loss and right answers: no worker can lose them.

    def train_replica(images, labels):
        labels = tf.cast(labels, tf.int64)
        with tf.GradientTape() as tape:
            logits = model(tf.cast(images, tf.float32) / 255)
            loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            mean = tf.reduce_mean(loss)
        gradients = tape.gradient(mean, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        right = tf.cast(tf.argmax(logits, axis=-1) == labels, tf.float32)
        totals.assign_add(tf.stack([tf.reduce_sum(loss), tf.reduce_sum(right)]))

    @tf.function
    def train_step(images, labels):
        strategy.run(train_replica, (images, labels))

    def local_copy():
        copy = build_model(flags.hidden_layers)
        copy.set_weights(model.get_weights())
        return copy

    def test_accuracy():
        images, labels = test
        logits = local_copy()(tf.cast(images, tf.float32) / 255)
        return np.mean(np.argmax(logits, axis=-1) == labels)

    step = tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, step=step)
    manager = tf.train.CheckpointManager(checkpoint, flags.checkpoint_dir, max_to_keep=2)
    if manager.latest_checkpoint:
        checkpoint.restore(manager.latest_checkpoint).assert_consumed()
        print(f"resuming from step {int(step)}", flush=True)
    events = tf.summary.create_file_writer(flags.log_dir)

    seen = 0
    for number in range(int(step), flags.epochs * steps_per_epoch):
        epoch, position = divmod(number, steps_per_epoch)
        if position == 0 or seen == 0:
            print(f"Epoch {epoch + 1}/{flags.epochs}", flush=True)
            totals.assign(tf.zeros(2))
            seen = 0
        # The images travel with the step: given to another worker, it is still the same step.
        batch = batch_of(number, train, flags.batch_size, steps_per_epoch)
        coordinator.schedule(train_step, tuple(map(tf.constant, batch)))
        seen += flags.batch_size
        epoch_ends = position + 1 == steps_per_epoch
        saves = (number + 1) % flags.checkpoint_every == 0 or epoch_ends
        reports = (position + 1) % 20 == 0 or epoch_ends
        if saves or reports:
            coordinator.join()  # No step is under way now: this is the state after `number`.
        if saves:
            step.assign(number + 1)
            manager.save()
        if reports:
            scores = dict(zip(("loss", "accuracy"), totals.numpy() / seen))
            if epoch_ends:
                scores["test_accuracy"] = test_accuracy()
            report(events, number, steps_per_epoch, scores)

    accuracy = test_accuracy()
    export(local_copy(), flags.output_dir)
    print(f"test accuracy: {accuracy:.4f}", flush=True)


if __name__ == "__main__":
    main()
