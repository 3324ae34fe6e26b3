"""A small convnet on MNIST, trained by workers in lockstep (MultiWorkerMirroredStrategy).

Under Trainyard, with two workers:  trainyard run examples/mnist.py -w 2 -- --epochs 3
Alone, in this process:             python examples/mnist.py

Runs unchanged on TensorFlow 2.15 (Keras 2) and 2.21 (Keras 3). The training loop is its own because
`fit` of Keras 3 does not work under this strategy. Killed and started again, all workers go on from
the last checkpoint. The trained model appears under the next free number: OUTPUT/1, OUTPUT/2, ...
"""

import argparse
import functools
import os
import tempfile

import numpy as np
import tensorflow as tf

keras = tf.keras
SEED = 7


def parse_flags():
    env = os.environ.get
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=128, help="of all workers together")
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
    train, test = load_mnist(flags.data_dir)
    # Comes before all other use of TensorFlow, and waits until all workers are there.
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    task = strategy.cluster_resolver
    chief = {"chief", "master"} & set(task.cluster_spec().jobs) or {"worker"}  # Else worker 0.
    is_chief = not task.task_type or (task.task_type in chief and task.task_id == 0)
    steps_per_epoch = flags.steps_per_epoch or len(train[0]) // flags.batch_size

    keras.utils.set_random_seed(SEED)
    with strategy.scope():
        model = build_model(flags.hidden_layers)
        optimizer = keras.optimizers.Adam(flags.learning_rate)
        optimizer.build(model.trainable_variables)  # So that there is something to restore into.

    def score(images, labels):
        """Sums over these images: of the loss, and of the right answers."""
        logits, labels = model(tf.cast(images, tf.float32) / 255), tf.cast(labels, tf.int64)
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        right = tf.cast(tf.argmax(logits, axis=-1) == labels, tf.float32)
        return tf.reduce_sum(loss), tf.reduce_sum(right)

    def train_replica(images, labels):
        with tf.GradientTape() as tape:
            loss, right = score(images, labels)
            # The optimizer adds up all replicas' gradients, so each divides by the whole batch.
            share = loss / flags.batch_size
        gradients = tape.gradient(share, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return tf.stack([loss, right])

    @tf.function
    def train_step(images, labels):
        return strategy.reduce("SUM", strategy.run(train_replica, (images, labels)), axis=None)

    def spread(arrays):
        """Gives each replica in this process its part of a batch, out of those of all workers."""
        def part(replica):
            index, count = replica.replica_id_in_sync_group, replica.num_replicas_in_sync
            return tuple(tf.constant(np.array_split(array, count)[index]) for array in arrays)
        return strategy.experimental_distribute_values_from_function(part)

    def test_accuracy():  # Every worker has the same weights and finds the same.
        return float(score(*test)[1]) / len(test[0])

    step = tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, step=step)
    if latest := tf.train.latest_checkpoint(flags.checkpoint_dir):
        checkpoint.restore(latest).assert_consumed()
        print(f"resuming from step {int(step)}", flush=True)
    # All workers must take part in saving, and all restore the chief's: what the others write goes.
    scratch = tempfile.TemporaryDirectory()
    place = flags.checkpoint_dir if is_chief else scratch.name
    manager = tf.train.CheckpointManager(checkpoint, place, max_to_keep=2)
    events = tf.summary.create_file_writer(flags.log_dir if is_chief else scratch.name)

    sums, seen = np.zeros(2), 0
    for number in range(int(step), flags.epochs * steps_per_epoch):
        epoch, position = divmod(number, steps_per_epoch)
        if position == 0 or seen == 0:
            print(f"Epoch {epoch + 1}/{flags.epochs}", flush=True)
            sums, seen = np.zeros(2), 0
        batch = batch_of(number, train, flags.batch_size, steps_per_epoch)
        sums += train_step(*spread(batch)).numpy()
        seen += flags.batch_size
        step.assign_add(1)
        epoch_ends = position + 1 == steps_per_epoch
        if (number + 1) % flags.checkpoint_every == 0 or epoch_ends:
            manager.save()
        if (position + 1) % 20 == 0 or epoch_ends:
            scores = dict(zip(("loss", "accuracy"), sums / seen))
            if epoch_ends:
                scores["test_accuracy"] = test_accuracy()
            report(events, number, steps_per_epoch, scores)

    accuracy = test_accuracy()
    if is_chief:  # Outlives the others, so none of them loses its peer before it is done.
        plain = build_model(flags.hidden_layers)  # Outside the strategy: with plain variables.
        plain.set_weights(model.get_weights())
        export(plain, flags.output_dir)
    print(f"test accuracy: {accuracy:.4f}", flush=True)


if __name__ == "__main__":
    main()
