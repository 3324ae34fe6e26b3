"""Counts how often each record was trained, in the model itself: the proof that elastic training loses and doubles nothing.

Under Trainyard:           trainyard run examples/elastic_count.py --elastic 1:4 -w 3
Alone, in this process:    python examples/elastic_count.py

Each worker has a model of its own, a variable count[record] that its training step adds to, and saves it after each round of shards
with what it reports (trainyard.checkpoint). Workers may be killed at any time, and so may whoever started them. Once the data is over
the models of all workers, dead ones as well, are added up: each record must have been trained as many times as there are epochs.
Needs the Python package of Trainyard (docs/python.md) and TensorFlow 2.15 or later.
"""

import argparse
import logging
import os
import sys
import time

import numpy as np
import tensorflow as tf

from trainyard import build_data_shard_service
from trainyard.checkpoint import ShardCheckpoint, committed_model
from trainyard.tensorflow import shard_dataset


def parse_flags():
    env = os.environ.get
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--records", type=int, default=3000)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--shards-per-round", type=int, default=4, help="after which the model is saved")
    parser.add_argument("--seconds-per-batch", type=float, default=0.01, help="so that there is time for things to happen")
    parser.add_argument("--checkpoint-dir", default=env("TRAINYARD_CHECKPOINT_DIR", "checkpoints"))
    parser.add_argument("--name", default=f"{env('TRAINYARD_ROLE', 'worker')}-{env('TRAINYARD_INDEX', '0')}", help="of this worker")
    return parser.parse_args()


def added_up(flags, service):
    """The counts of all workers' models, each as its worker last committed it."""
    total = np.zeros(flags.records, np.int64)
    for name in sorted(os.listdir(flags.checkpoint_dir)):
        counts = tf.Variable(tf.zeros(flags.records, tf.int64))
        if path := committed_model(service, os.path.join(flags.checkpoint_dir, name)):
            tf.train.Checkpoint(counts=counts).read(path).assert_existing_objects_matched()
        print(f"{name} trained {int(tf.reduce_sum(counts))} records", flush=True)
        total += counts.numpy()
    return total


def main():
    flags = parse_flags()
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    service = build_data_shard_service(
        batch_size=flags.batch_size, num_epochs=flags.epochs, dataset_size=flags.records, num_minibatches_per_shard=2,
        dataset_name="records", shuffle=True, seed=7, shards_per_round=flags.shards_per_round)
    dataset = shard_dataset(service, np.int64, batch_size=flags.batch_size).prefetch(2)
    counts = tf.Variable(tf.zeros(flags.records, tf.int64))
    saved = ShardCheckpoint(service, tf.train.Checkpoint(counts=counts), os.path.join(flags.checkpoint_dir, flags.name))
    if saved.restore():
        print(f"going on with {int(tf.reduce_sum(counts))} records trained", flush=True)

    @tf.function(reduce_retracing=True)
    def train_step(batch):
        counts.scatter_add(tf.IndexedSlices(tf.ones_like(batch), batch))

    while service.more():
        for batch in dataset:
            train_step(batch)
            time.sleep(flags.seconds_per_batch)
            service.report_batch_done()
        saved.save()
        left = service.look().records_left
        print(f"{flags.records * flags.epochs - left}/{flags.records * flags.epochs}", flush=True)

    if service.leaving:
        print("asked to leave", flush=True)
        return
    total = added_up(flags, service)
    if wrong := np.flatnonzero(total != flags.epochs).tolist():
        sys.exit(f"{len(wrong)} records were not trained {flags.epochs} times: "
                 + ", ".join(f"{record} {total[record]} times" for record in wrong[:20]))
    print(f"every record was trained {flags.epochs} times", flush=True)


if __name__ == "__main__":
    main()
