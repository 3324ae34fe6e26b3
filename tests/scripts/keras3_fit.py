"""Keras `fit` under MultiWorkerMirroredStrategy, on made-up data.

Works on Keras 2 (TensorFlow 2.15, or TF_USE_LEGACY_KERAS=1). On Keras 3 it fails with
`ValueError: Attempt to convert a value (PerReplica...`, which the verdict must recognise.
"""

import numpy as np
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
data = tf.data.Dataset.from_tensor_slices((np.ones((64, 4), "f"), np.ones((64, 1), "f")))
model.fit(data.batch(16).repeat(), epochs=1, steps_per_epoch=4, verbose=2)
