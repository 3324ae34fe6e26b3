"""Two workers add up numbers in lockstep until worker 1 finds that it cannot go on."""

import os

import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()


@tf.function
def step():
    return strategy.reduce("SUM", strategy.run(lambda: tf.ones([])), axis=None)


for number in range(100_000):
    step()
    if number == 50 and os.environ["TRAINYARD_INDEX"] == "1":
        raise RuntimeError("the data of worker 1 is bad")
