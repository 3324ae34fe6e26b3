"""Callbacks for Keras' fit (Keras 2 and 3).

    dataset = shard_dataset(service, read_record, batch_size=64)

    # Reporting alone: all the data is one epoch of Keras'.
    model.fit(dataset, callbacks=[ReportShards(service)])

    # With the model's checkpoints: build the service with shards_per_round; a round is a call of fit, after which the model is saved.
    saved = SaveShards(service, directory)
    saved.restore(model)
    while service.more():
        model.fit(dataset, callbacks=[saved])

A round is no epoch of one long fit, because Keras 2 takes the number of batches in its first epoch for that of all, and ends at the first
round that has fewer.

fit's loop must be in this process: with tf.distribute's ParameterServerStrategy give the callback to the chief, with MirroredStrategy batches
are global ones and count as such.
"""

import tensorflow as tf

from trainyard.checkpoint import ShardCheckpoint
from trainyard.errors import ShardError


class ReportShards(tf.keras.callbacks.Callback):
    """Reports each batch that was trained."""

    def __init__(self, service):
        super().__init__()
        self._service = service
        self._reported = -1

    def on_epoch_begin(self, epoch, logs=None):
        self._reported = -1

    def on_train_batch_end(self, batch, logs=None):
        # With steps_per_execution several batches end at once.
        for _ in range(batch - self._reported):
            self._service.report_batch_done()
        self._reported = batch


class SaveShards(ReportShards):
    """Also saves the model after each round and reports the round in the same stroke (trainyard.checkpoint)."""

    def __init__(self, service, directory, key=None):
        super().__init__(service)
        self._directory, self._key = directory, key
        self._saved, self._begun = None, False

    def restore(self, model):
        """Loads the model of the last commit. The model must be built and compiled. False: there is none yet."""
        model.optimizer.build(model.trainable_variables)
        self._saved = ShardCheckpoint(self._service, tf.train.Checkpoint(model=model, optimizer=model.optimizer), self._directory, self._key)
        return self._saved.restore()

    def on_train_begin(self, logs=None):
        self._begun = False
        if self._saved is None:
            self.restore(self.model)

    def on_epoch_begin(self, epoch, logs=None):
        if self._begun:
            raise ShardError("SaveShards takes one epoch a fit: while service.more(): model.fit(dataset, callbacks=[saved])")
        self._begun = True
        super().on_epoch_begin(epoch, logs)

    def on_epoch_end(self, epoch, logs=None):
        self._saved.save()
