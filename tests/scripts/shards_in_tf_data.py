"""For tests/tensorflow/test_shards.py: pipelines, callbacks and checkpoints of our Python package. One line of JSON at the end.

    shards_in_tf_data.py DIRECTORY

A process that dies is played here by objects that are left behind; tests/tensorflow/test_elastic_count.py kills real ones.
"""

import json
import logging
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

from trainyard import ShardError, build_data_shard_service
from trainyard.checkpoint import ShardCheckpoint
from trainyard.keras import ReportShards, SaveShards
from trainyard.tensorflow import shard_dataset, ticketed_dataset, track

logging.basicConfig(level=logging.INFO)


def build(**options):
    return build_data_shard_service(**{"batch_size": 4, "num_epochs": 2, "dataset_size": 30, "num_minibatches_per_shard": 2,
                                       "dataset_name": "numbers", **options})


def number(record):
    return np.int64(record)


def batches(_):
    """Each batch is of one shard, the last of a shard shorter; nested records; a prefetch behind."""
    service = build(dataset_name="batches")
    dataset = shard_dataset(service, lambda i: {"x": np.float32([i, i]), "name": f"r{i}"}, batch_size=3).prefetch(4)
    seen, sizes = [], []
    while service.more():
        for batch in dataset:
            assert batch["x"].shape[1] == 2 and batch["name"].dtype == tf.string
            seen += [int(name[1:]) for name in batch["name"].numpy()]
            sizes.append(len(batch["x"]))
            service.report_batch_done()
    return {"seen": seen, "sizes": sizes, "complete": service.look().complete}


def shuffled(_):
    """Records shuffled and batched behind the source, the rest dropped: each shard is reported with its last record."""
    service = build(dataset_name="shuffled", num_epochs=1)
    dataset = track(ticketed_dataset(service, number).shuffle(30, seed=3).batch(4, drop_remainder=True), service).prefetch(2)
    seen, passes = [], 0
    while service.more():
        passes += 1
        for batch in dataset:
            seen += batch.numpy().tolist()
            service.report_batch_done()
            shards = [range(0, 8), range(8, 16), range(16, 24), range(24, 30)]
            assert service.look().doing == sum(not {*shard} <= {*seen} for shard in shards), seen
    return {"seen": seen, "passes": passes, "complete": service.look().complete}


def singles(_):
    """Single records, in order, batched behind the source."""
    service = build(dataset_name="singles", num_epochs=1)
    sizes = []
    for batch in shard_dataset(service, number).batch(7):
        sizes.append(len(batch))
        service.report_batch_done(len(batch))
    return {"sizes": sizes, "complete": service.look().complete}


def build_model():
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.SGD(0.001), "mse")
    return model


def features(record):
    return np.float32([record, 1]), np.float32([record])


def distance(model):
    """From one that was trained without us: two epochs of shards of 8, in batches of 4."""
    plain = build_model()
    for _ in range(2):
        for first in [*range(0, 28, 4), 28]:
            x, y = zip(*map(features, range(first, min(first + 4, 30))))
            plain.train_on_batch(np.stack(x), np.stack(y))
    return max(float(np.max(np.abs(a - b))) for a, b in zip(model.get_weights(), plain.get_weights()))


def keras_reports(_):
    service = build(dataset_name="reports")
    model = build_model()
    model.fit(shard_dataset(service, features, batch_size=4), callbacks=[ReportShards(service)], verbose=0)
    return {"off": distance(model), "complete": service.look().complete}


class Died(Exception):
    pass


class DieInTheThirdRound(tf.keras.callbacks.Callback):
    rounds = 0

    def on_train_batch_end(self, batch, logs=None):
        if self.rounds == 3:
            raise Died

    def on_epoch_begin(self, epoch, logs=None):
        self.rounds += 1


def keras_saves(directory):
    lives = 0
    while True:
        lives += 1
        service = build(dataset_name="saves", shards_per_round=1)
        model, saved = build_model(), SaveShards(service, f"{directory}/saves")
        saved.restore(model)
        if not service.more():
            return {"lives": lives, "off": distance(model), "complete": service.look().complete}
        dies = DieInTheThirdRound()
        try:
            while service.more():
                model.fit(shard_dataset(service, features, batch_size=4), callbacks=[saved, dies], verbose=0)
        except Died:
            pass


def keras_uneven(directory):
    """Rounds of two batches and of one; and a fit of several epochs, which Keras 2 would end at a round shorter than the first."""
    service = build(dataset_name="uneven", dataset_size=27, shards_per_round=1)
    model, saved = build_model(), SaveShards(service, f"{directory}/uneven")
    saved.restore(model)
    dataset, refused = shard_dataset(service, features, batch_size=4), False
    try:
        model.fit(dataset, epochs=9, callbacks=[saved], verbose=0)
    except ShardError:
        refused = True
    rounds = 1
    while service.more():
        model.fit(dataset, callbacks=[saved], verbose=0)
        rounds += 1
    return {"refused": refused, "rounds": rounds, "complete": service.look().complete}


def commits(directory):
    """Counts each record in the model; dies at random moments."""
    dice, lives, halves = np.random.default_rng(4), 0, []

    def die(*_):
        raise Died

    def live():
        service = build(dataset_name="commits", shards_per_round=2, num_epochs=5)
        counts = tf.Variable(tf.zeros(30, tf.int64))
        saved = ShardCheckpoint(service, tf.train.Checkpoint(counts=counts), f"{directory}/commits")
        saved.restore()
        while service.more():
            for batch in shard_dataset(service, number, batch_size=4):
                counts.scatter_add(tf.IndexedSlices(tf.ones(len(batch), tf.int64), batch))
                service.report_batch_done()
                if dice.random() < 0.1:
                    raise Died
            if dice.random() < 0.2:  # Saved, and not committed.
                service.commit = die
            if dice.random() < 0.2:  # Half saved, as TensorFlow leaves it: parts that are joined at the end.
                parts = Path(directory, "commits", f"model-{lives}_temp")
                parts.mkdir()
                (parts / "part-00000-of-00001.index").write_bytes(b"half")
                halves.append(parts)
                raise Died
            saved.save()
            if dice.random() < 0.2:  # Committed, and not a word after.
                raise Died
        return counts.numpy().tolist(), service.look().complete

    while True:
        lives += 1
        try:
            counts, complete = live()
            assert halves and not any(half.exists() for half in halves)
            return {"counts": counts, "complete": complete, "lives": lives}
        except Died:
            pass


def estimator(directory):
    """The same as an Estimator, whose chief saves the shards' state beside the model, and goes back to it."""
    from trainyard.estimator import ElasticDataShardReportHook, SaveShardsHook

    dice, lives = np.random.default_rng(5), 0

    class Mortal(tf.compat.v1.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            if dice.random() < 0.04:
                raise Died

    def model_fn(features, labels, mode):
        counts = tf.compat.v1.get_variable("counts", [30], tf.int64, tf.compat.v1.zeros_initializer())
        step = tf.group(tf.compat.v1.scatter_add(counts, features, tf.ones_like(features)),
                        tf.compat.v1.assign_add(tf.compat.v1.train.get_global_step(), 1))
        return tf.estimator.EstimatorSpec(mode, loss=tf.constant(0.0), train_op=step)

    while True:
        lives += 1
        service = build(dataset_name="estimator", num_epochs=6)
        trained = tf.estimator.Estimator(model_fn, f"{directory}/estimator")
        hooks = [ElasticDataShardReportHook(service), SaveShardsHook(service, f"{directory}/estimator", save_steps=5), Mortal()]
        try:
            trained.train(lambda: shard_dataset(service, number, batch_size=3, to_the_end=True).prefetch(3), hooks=hooks)
        except Died:
            continue
        return {"counts": trained.get_variable_value("counts").tolist(), "complete": service.look().complete, "lives": lives}


cases = [batches, shuffled, singles, keras_reports, keras_saves, keras_uneven, commits, *([estimator] if hasattr(tf, "estimator") else [])]
print(json.dumps({case.__name__: case(sys.argv[1]) for case in cases}), flush=True)
