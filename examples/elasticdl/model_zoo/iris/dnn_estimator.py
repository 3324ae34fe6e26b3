"""An Estimator on the iris data set, for ElasticDL's tutorial: docs/elasticdl.md.

The records come in shards from the master of the job, by ElasticDL's client (elasticai_api); chief and workers ask for
them, and report each batch when it is trained. Needs TensorFlow 2.15 or older, the last that has Estimators.
"""

import csv
import os

import tensorflow as tf
from elasticai_api.common.data_shard_service import build_data_shard_service
from elasticai_api.tensorflow.hooks import ElasticDataShardReportHook

DATA = "/data/iris.data"
BATCH_SIZE = 32
CLASSES = {"Iris-setosa": 0, "Iris-versicolor": 1, "Iris-virginica": 2}


def read(path):
    with open(path) as file:
        return [([float(value) for value in row[:-1]], [CLASSES[row[-1]]]) for row in csv.reader(file) if row]


def train_records(records, shards):
    while shard := shards.fetch_shard():
        yield from records[shard.start:shard.end]


def batches(records, size):
    """`records` is a function that returns an iterable of (features, label)."""
    signature = (tf.TensorSpec((4,), tf.float32), tf.TensorSpec((1,), tf.int32))
    dataset = tf.data.Dataset.from_generator(records, output_signature=signature)
    return dataset.map(lambda features, label: ({"x": features}, label)).batch(size)


def main():
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.INFO)
    records = read(DATA)
    shards = build_data_shard_service(batch_size=BATCH_SIZE, num_epochs=100, dataset_size=len(records),
                                      num_minibatches_per_shard=1, dataset_name="iris_training_data")
    model = tf.estimator.DNNClassifier(
        hidden_units=[10, 10], feature_columns=[tf.feature_column.numeric_column("x", shape=(4,))], n_classes=len(CLASSES),
        model_dir=os.environ.get("TRAINYARD_CHECKPOINT_DIR", "/data/model"),
        config=tf.estimator.RunConfig(save_checkpoints_steps=100))
    tf.estimator.train_and_evaluate(
        model,
        tf.estimator.TrainSpec(lambda: batches(lambda: train_records(records, shards), BATCH_SIZE), hooks=[ElasticDataShardReportHook(shards)]),
        tf.estimator.EvalSpec(lambda: batches(lambda: records, 50), start_delay_secs=1, throttle_secs=2))


if __name__ == "__main__":
    main()
