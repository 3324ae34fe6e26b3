"""A small convnet on MNIST, trained in step by any number of workers (MultiWorkerMirroredStrategy).

Under Trainyard, with two workers:  trainyard run examples/mnist.py -w 2 -- --epochs 3
Alone, in this process:             python examples/mnist.py

The same file runs on TensorFlow 2.15 (Keras 2) and 2.21 (Keras 3). It has a training loop of its own, as `fit` of Keras 3
does not work under this strategy. Killed and started again it goes on from its last checkpoint. The trained model is
written to OUTPUT/1, OUTPUT/2, ...: the next free number, ready to be served.
"""

import argparse
import os
import tempfile

import numpy as np
import tensorflow as tf

keras = tf.keras
SEED = 7


def parse_flags():
    env = os.environ.get
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=128, help="images a step, shared among the workers")
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    parser.add_argument("--hidden-layers", type=int, default=1, help="dense layers behind the convolutions")
    parser.add_argument("--steps-per-epoch", type=int, help="default: as many as the data has")
    parser.add_argument("--checkpoint-every", type=int, default=50, metavar="STEPS")
    parser.add_argument("--data-dir", help="default: $MNIST_DATA, else where script/mnist-data puts it")
    parser.add_argument("--output-dir", default=env("TRAINYARD_OUTPUT_DIR", "output"))
    parser.add_argument("--checkpoint-dir", default=env("TRAINYARD_CHECKPOINT_DIR", "checkpoints"))
    parser.add_argument("--log-dir", default=env("TRAINYARD_LOG_DIR", "tensorboard"))
    return parser.parse_args()


def load_mnist(data_dir):
    """Returns ((images, labels), (images, labels)) to train and to test on; images are bytes, [N, 28, 28, 1]."""

    def read(directory, name, header_bytes):
        return np.fromfile(os.path.join(directory, name), np.uint8)[header_bytes:]

    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    places = [data_dir] if data_dir else [os.environ.get("MNIST_DATA"), os.path.join(cache, "trainyard", "mnist")]
    for place in filter(None, places):
        if os.path.exists(os.path.join(place, "train-images-idx3-ubyte")):
            return tuple(
                (read(place, f"{part}-images-idx3-ubyte", 16).reshape(-1, 28, 28, 1),
                 read(place, f"{part}-labels-idx1-ubyte", 8))
                for part in ("train", "t10k"))
    if data_dir:
        raise SystemExit(f"no MNIST in {data_dir}: it has no file train-images-idx3-ubyte")
    try:
        train, test = keras.datasets.mnist.load_data()
        return tuple((images[..., np.newaxis], labels) for images, labels in (train, test))
    except Exception as error:
        raise SystemExit(f"no MNIST found and the download failed ({error}): run script/mnist-data, or give --data-dir")


def build_model(hidden_layers):
    return keras.Sequential([
        keras.Input((28, 28, 1)),
        keras.layers.Conv2D(16, 5, strides=2, activation="relu"),
        keras.layers.Conv2D(32, 3, strides=2, activation="relu"),
        keras.layers.Flatten(),
        *(keras.layers.Dense(64, activation="relu") for _ in range(hidden_layers)),
        keras.layers.Dense(10),
    ])


class Batches:
    """The batch of a step, as a pure function of the step: a restarted run sees what it would have seen anyway."""

    def __init__(self, images, labels, batch_size, steps_per_epoch):
        self.images, self.labels = images, labels
        self.batch_size, self.steps_per_epoch = batch_size, steps_per_epoch
        self.epoch, self.order = None, None

    def part(self, step, index, count):
        """Part `index` of `count` of the batch of `step`."""
        epoch, position = divmod(step, self.steps_per_epoch)
        if epoch != self.epoch:
            self.epoch, self.order = epoch, np.random.default_rng([SEED, epoch]).permutation(len(self.labels))
        batch = np.arange(position * self.batch_size, (position + 1) * self.batch_size) % len(self.order)
        chosen = self.order[np.array_split(batch, count)[index]]
        return self.images[chosen], self.labels[chosen]


class Classifier(tf.Module):
    """What is served: images with values from 0 to 1, to classes and probabilities."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    @tf.function(input_signature=[tf.TensorSpec([None, 28, 28, 1], tf.float32, name="image")])
    def predict(self, image):
        logits = self.model(image, training=False)
        return {"classes": tf.argmax(logits, axis=-1), "probabilities": tf.nn.softmax(logits)}


def export(model, hidden_layers, output_dir):
    """Writes the model under the next free number, which appears only when it is whole."""
    tf.io.gfile.makedirs(output_dir)
    names = [name.strip("/") for name in tf.io.gfile.listdir(output_dir)]
    version = 1 + max((int(name) for name in names if name.isdigit()), default=0)
    path, unfinished = (os.path.join(output_dir, name) for name in (str(version), ".unfinished"))
    if tf.io.gfile.exists(unfinished):
        tf.io.gfile.rmtree(unfinished)
    plain = build_model(hidden_layers)  # A copy made outside the strategy, to leave its variables behind.
    plain.set_weights(model.get_weights())
    classifier = Classifier(plain)
    signatures = {"predict": classifier.predict, "serving_default": classifier.predict}
    tf.saved_model.save(classifier, unfinished, signatures=signatures)
    tf.io.gfile.rename(unfinished, path)
    print(f"exported {path}", flush=True)


def main():
    flags = parse_flags()
    strategy = tf.distribute.MultiWorkerMirroredStrategy()  # First of all TensorFlow does: it waits for all workers.
    cluster = strategy.cluster_resolver
    is_chief = cluster.task_type in (None, "chief", "master") or (
        cluster.task_id == 0 and not {"chief", "master"} & set(cluster.cluster_spec().jobs))
    train, test = load_mnist(flags.data_dir)
    steps_per_epoch = flags.steps_per_epoch or len(train[0]) // flags.batch_size
    batches = Batches(*train, flags.batch_size, steps_per_epoch)

    with strategy.scope():
        model = build_model(flags.hidden_layers)
        optimizer = keras.optimizers.Adam(flags.learning_rate)
        optimizer.build(model.trainable_variables)

    def score(images, labels, training):
        """The sums over these images, of losses and of right answers; the former to be differentiated."""
        logits = model(tf.cast(images, tf.float32) / 255.0, training=training)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.cast(labels, tf.int64), logits)
        right = tf.equal(tf.argmax(logits, axis=-1), tf.cast(labels, tf.int64))
        return tf.reduce_sum(losses), tf.reduce_sum(tf.cast(right, tf.float32))

    def train_replica(images, labels):
        with tf.GradientTape() as tape:
            loss, right = score(images, labels, training=True)
            # The optimizer adds up the gradients of all replicas, so each divides by the size of the whole batch.
            share = loss / flags.batch_size
        gradients = tape.gradient(share, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return tf.stack([loss, right])

    @tf.function
    def train_step(images, labels):
        return strategy.reduce("SUM", strategy.run(train_replica, (images, labels)), axis=None)

    @tf.function
    def test_step(images, labels):
        scores = strategy.run(lambda *batch: tf.stack(score(*batch, training=False)), (images, labels))
        return strategy.reduce("SUM", scores, axis=None)

    def on_replicas(part):
        """Gives each replica its own part of a batch."""
        return tuple(
            strategy.experimental_distribute_values_from_function(
                lambda context: tf.constant(part(context.replica_id_in_sync_group, strategy.num_replicas_in_sync)[i]))
            for i in (0, 1))

    def test_accuracy():
        images, labels = on_replicas(lambda index, count: [np.array_split(array, count)[index] for array in test])
        return float(test_step(images, labels)[1]) / len(test[0])

    step = tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, step=step)
    latest = tf.train.latest_checkpoint(flags.checkpoint_dir)  # All read the chief's; only the chief's are kept.
    if latest:
        checkpoint.restore(latest).assert_consumed()
        print(f"resuming from step {int(step)}", flush=True)
    directory = flags.checkpoint_dir if is_chief else tempfile.mkdtemp()
    manager = tf.train.CheckpointManager(checkpoint, directory, max_to_keep=2)
    writer = tf.summary.create_file_writer(flags.log_dir) if is_chief else tf.summary.create_noop_writer()

    with writer.as_default():
        for epoch in range(int(step) // steps_per_epoch, flags.epochs):
            print(f"Epoch {epoch + 1}/{flags.epochs}", flush=True)
            sums, seen = np.zeros(2), 0
            while int(step) < (epoch + 1) * steps_per_epoch:
                sums += train_step(*on_replicas(lambda *of: batches.part(int(step), *of))).numpy()
                seen += flags.batch_size
                step.assign_add(1)
                done = int(step) - epoch * steps_per_epoch
                if done % 20 == 0 or done == steps_per_epoch:
                    loss, accuracy = sums / seen
                    print(f"{done}/{steps_per_epoch} - loss: {loss:.4f} - accuracy: {accuracy:.4f}", flush=True)
                    tf.summary.scalar("loss", loss, int(step))
                    tf.summary.scalar("accuracy", accuracy, int(step))
                    writer.flush()
                if int(step) % flags.checkpoint_every == 0 or done == steps_per_epoch:
                    manager.save()
            tf.summary.scalar("epoch_accuracy", accuracy, epoch + 1)
            tf.summary.scalar("test_accuracy", test_accuracy(), epoch + 1)
        accuracy = test_accuracy()

    if is_chief:
        export(model, flags.hidden_layers, flags.output_dir)
    print(f"test accuracy: {accuracy:.4f}", flush=True)


if __name__ == "__main__":
    main()
