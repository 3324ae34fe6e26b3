"""Three clouds of points told apart by a Keras model on parameter servers, by TensorFlow's coordinator: the chief gets the data in shards
and sends each batch to a worker. The file `pace` says how many seconds of sleep there are to each batch; workers tell their steps.
"""

import os
import pathlib
import time

import numpy as np
import tensorflow as tf

from trainyard import build_data_shard_service
from trainyard.checkpoint import ShardCheckpoint
from trainyard.tensorflow import shard_dataset

RECORDS, EPOCHS, BATCH = 1600, 20, 16
CENTRES = np.float32([[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1]])
NOISE = np.float32(np.random.default_rng(7).normal(0, 0.4, [RECORDS, 4]))


def read(number):
    return CENTRES[number % 3] + NOISE[number], np.int64(number % 3)


def main():
    os.environ["GRPC_FAIL_FAST"] = "use_caller"
    task = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if task.task_type != "chief":
        tf.distribute.Server(task.cluster_spec(), task.task_type, task.task_id).join()
    service = build_data_shard_service(batch_size=BATCH, num_epochs=EPOCHS, dataset_size=RECORDS, num_minibatches_per_shard=1,
                                       dataset_name="points", shuffle=True, shards_per_round=20)
    strategy = tf.distribute.ParameterServerStrategy(task)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    tf.keras.utils.set_random_seed(1)
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(16, activation="relu"), tf.keras.layers.Dense(3)])
        optimizer = tf.keras.optimizers.SGD(0.01)
        optimizer.build(model.trainable_variables)
        total = tf.Variable(0.0)

    def train_replica(points, kinds):
        tf.print("\nsteps on")  # In the log of the worker that does it.
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(kinds, model(points)))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        total.assign_add(loss)

    @tf.function(reduce_retracing=True)
    def train_step(points, kinds):
        strategy.run(train_replica, (points, kinds))

    saved = ShardCheckpoint(service, tf.train.Checkpoint(model=model, optimizer=optimizer), os.environ["TRAINYARD_CHECKPOINT_DIR"] + "/model")
    saved.restore()
    done = 0
    while service.more():
        batches = 0
        for batch in shard_dataset(service, read, batch_size=BATCH):
            coordinator.schedule(train_step, batch)
            time.sleep(float(pathlib.Path("pace").read_text()))
            batches += 1
        coordinator.join()
        for _ in range(batches):
            service.report_batch_done()
        saved.save()
        done += batches
        print(f"loss = {float(total) / batches:.4f}, step = {done}", flush=True)
        total.assign(0.0)


if __name__ == "__main__":
    main()
