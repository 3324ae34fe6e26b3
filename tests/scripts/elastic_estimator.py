"""Three clouds of points told apart by workers on parameter servers, who get their data in shards: by an Estimator (`dnn`), or by a Keras
model that was made one (`keras`). The file `pace` says how many seconds of sleep there are to each step; each process tells its steps in one named after it.
"""

import os
import pathlib
import sys
import time

import numpy as np
import tensorflow as tf

from trainyard import build_data_shard_service
from trainyard.estimator import ElasticDataShardReportHook
from trainyard.tensorflow import shard_dataset

RECORDS, EPOCHS, BATCH = 1600, 40, 16
CENTRES = np.float32([[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1]])
NOISE = np.float32(np.random.default_rng(7).normal(0, 0.4, [RECORDS, 4]))
STEPS = pathlib.Path("steps-{TRAINYARD_ROLE}-{TRAINYARD_INDEX}".format(**os.environ))


class Steps(tf.compat.v1.train.SessionRunHook):
    def __init__(self):
        self.count = 0

    def after_run(self, run_context, run_values):
        self.count += 1
        part = STEPS.with_suffix(".part")
        part.write_text(str(self.count))
        part.replace(STEPS)  # never read half
        time.sleep(float(pathlib.Path("pace").read_text()))


def read(number):
    kind = number % 3
    return {"x": CENTRES[kind] + NOISE[number]}, np.int32([kind])


def estimator_of(which, config):
    if which == "dnn":
        return tf.estimator.DNNClassifier([16], [tf.feature_column.numeric_column("x", shape=(4,))], n_classes=3, config=config,
                                          optimizer=lambda: tf.keras.optimizers.legacy.SGD(0.01))
    model = tf.keras.Sequential([tf.keras.Input((4,), name="x"), tf.keras.layers.Dense(16, activation="relu"), tf.keras.layers.Dense(3)])
    model.compile(tf.keras.optimizers.legacy.SGD(0.01), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return tf.keras.estimator.model_to_estimator(model, config=config)


def main():
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.INFO)
    # Workers come one by one by themselves: they need not be held back for it.
    config = tf.estimator.RunConfig(os.environ["TRAINYARD_CHECKPOINT_DIR"], log_step_count_steps=10, tf_random_seed=1,
                                    experimental_max_worker_delay_secs=0)
    hooks, train_fn = [], lambda: None
    if config.task_type in ("chief", "worker"):
        service = build_data_shard_service(batch_size=BATCH, num_epochs=EPOCHS, dataset_size=RECORDS, num_minibatches_per_shard=1,
                                           dataset_name="points", shuffle=True)
        hooks = [ElasticDataShardReportHook(service), Steps()]

        def train_fn():
            return shard_dataset(service, read, batch_size=BATCH, to_the_end=True)

    tf.estimator.train_and_evaluate(estimator_of(sys.argv[1], config), tf.estimator.TrainSpec(train_fn, hooks=hooks),
                                    tf.estimator.EvalSpec(train_fn))


if __name__ == "__main__":
    main()
