"""An Estimator that gets its data in shards, after ElasticDL's tutorial: workers may come and go while it trains.

Under Trainyard:           trainyard run examples/elastic_iris.py --chief --ps 1 -w 2 --evaluator --elastic 1:4
Alone, in this process:    python examples/elastic_iris.py

Needs TensorFlow 2.15 or older (later ones have no Estimator) and the Python package of Trainyard (docs/python.md). Without --data the rows are
drawn from three normal distributions that look like Fisher's irises; with it they are those of `iris.data`
(https://archive.ics.uci.edu/dataset/53/iris, CC BY 4.0).
"""

import argparse
import csv
import os

import numpy as np
import tensorflow as tf

from trainyard import build_data_shard_service
from trainyard.estimator import ElasticDataShardReportHook, SaveShardsHook
from trainyard.tensorflow import shard_dataset

KINDS = ("Iris-setosa", "Iris-versicolor", "Iris-virginica")
COLUMNS = ("sepal_length", "sepal_width", "petal_length", "petal_width")
# Mean and spread of each column, in centimetres.
LOOKS = (((5.0, 3.4, 1.5, 0.25), (0.35, 0.38, 0.17, 0.11)), ((5.9, 2.8, 4.3, 1.3), (0.52, 0.31, 0.47, 0.20)),
         ((6.6, 3.0, 5.6, 2.0), (0.64, 0.32, 0.55, 0.27)))


def parse_flags():
    env = os.environ.get
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", help="iris.data; default: rows like it")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--checkpoint-every", type=int, default=50, metavar="STEPS")
    parser.add_argument("--model-dir", default=env("TRAINYARD_LOG_DIR", "tensorboard"))
    return parser.parse_args()


def load_rows(path):
    """[([four measures], kind)]"""
    if path:
        with open(path) as file:
            return [(np.float32(row[:4]), KINDS.index(row[4])) for row in csv.reader(file) if row]
    random = np.random.default_rng(1936)
    return [(np.float32(random.normal(*LOOKS[i % 3])), i % 3) for i in range(150)]


def columns():
    return [tf.feature_column.numeric_column(name) for name in COLUMNS]


def main():
    flags = parse_flags()
    if not hasattr(tf, "estimator"):
        raise SystemExit("tf.estimator is gone since 2.16: use TensorFlow 2.15")
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.INFO)
    rows = load_rows(flags.data)

    def read(number):
        measures, kind = rows[number]
        return dict(zip(COLUMNS, measures)), np.int32(kind)

    # Many checkpoints, since the evaluator fails on one that is deleted while it takes it up.
    config = tf.estimator.RunConfig(flags.model_dir, log_step_count_steps=50, keep_checkpoint_max=50)
    estimator = tf.estimator.DNNClassifier(
        [10, 10], columns(), n_classes=3, config=config,
        optimizer=lambda: tf.keras.optimizers.legacy.Adagrad(0.1))

    hooks, train_fn = [], None
    if config.task_type in ("chief", "master", "worker"):  # Those who train.
        service = build_data_shard_service(
            batch_size=flags.batch_size, num_epochs=flags.epochs, dataset_size=len(rows), num_minibatches_per_shard=1,
            dataset_name="iris_training_data", shuffle=True)
        hooks.append(ElasticDataShardReportHook(service))
        if config.is_chief:
            hooks.append(SaveShardsHook(service, flags.model_dir, save_steps=flags.checkpoint_every))

        def train_fn():
            return shard_dataset(service, read, batch_size=flags.batch_size, to_the_end=True).prefetch(2)

    def test_fn():
        inputs = {name: np.stack([row[0][i] for row in rows]) for i, name in enumerate(COLUMNS)}
        return tf.data.Dataset.from_tensor_slices((inputs, np.int32([row[1] for row in rows]))).batch(150)

    tf.estimator.train_and_evaluate(estimator, tf.estimator.TrainSpec(train_fn or test_fn, hooks=hooks),
                                    tf.estimator.EvalSpec(test_fn, steps=None, start_delay_secs=2, throttle_secs=2))
    if config.is_chief:
        os.environ.pop("TF_CONFIG", None)  # The rest needs none of the others, who may be gone.
        trained = tf.estimator.DNNClassifier([10, 10], columns(), n_classes=3, model_dir=flags.model_dir)
        print(f"accuracy: {trained.evaluate(test_fn, name='final')['accuracy']:.4f}", flush=True)


if __name__ == "__main__":
    main()
