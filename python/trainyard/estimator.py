"""Session hooks for Estimators (TensorFlow up to 2.15).

    hooks = [ElasticDataShardReportHook(service)]
    spec = tf.estimator.TrainSpec(lambda: input_fn(service), hooks=hooks)

and with the state of the shards beside the model's checkpoints, on the chief, after the hook that reports:

    if config.is_chief:
        hooks += [SaveShardsHook(service, model_dir, save_steps=100)]

What that guarantees, with one process and with parameter servers, is in the README.
"""

import logging
import os
import re

import tensorflow as tf

log = logging.getLogger("trainyard")


class ElasticDataShardReportHook(tf.compat.v1.train.SessionRunHook):
    """Reports a batch after each step, as in ElasticDL's tutorial; calls that get no answer are made again until they do."""

    def __init__(self, data_shard_service):
        self._service = data_shard_service

    def after_run(self, run_context, run_values):
        self._service.report_batch_done()

    def end(self, session):
        self._service.flush()


class SaveShardsHook(tf.compat.v1.train.CheckpointSaverHook):
    """Saves the model, in place of the Estimator's own hook, and the state of the set as `shards-STEP.json` beside it. When a session begins
    with a restored model, so does the set.

    The state is fetched before the model is written: what it calls done is in the model, whatever the other workers do meanwhile. A save
    waits until each shard of this process is trained whole or not at all (shard_dataset with batch_size: the end of each shard).
    """

    def __init__(self, service, checkpoint_dir, save_secs=None, save_steps=None, **options):
        if "://" in str(checkpoint_dir):
            raise ValueError(f"{checkpoint_dir}: checkpoints of shards need a directory; object stores are not supported")
        super().__init__(checkpoint_dir, save_secs=save_secs, save_steps=save_steps, **options)
        self._service, self._directory = service, checkpoint_dir

    def after_create_session(self, session, coord):
        # The model is what the newest checkpoint has, or begins anew, and now the set follows. Not before: what a worker learned in between
        # would be reported in the restored set, and not be in the restored model.
        # Which checkpoint that was is told by its name: its global step may be later, if workers stepped on while it was saved.
        restored = tf.train.latest_checkpoint(self._directory)
        path = self._state_path(_step_of(restored)) if restored else None
        if restored and os.path.exists(path):
            with open(path) as file:
                self._service.restore_shard_from_checkpoint(file.read())
            log.info("the shards are as they were at %s", os.path.basename(restored))
        elif restored:
            log.warning("there is no %s: which records %s has learned is not known, and those reported stay so", path, restored)
        elif (standing := self._service.look()).records_left != standing.records_total:
            self._service.reset_dataset()
        super().after_create_session(session, coord)

    def after_run(self, run_context, run_values):
        if self._service.settled:
            super().after_run(run_context, run_values)

    def _save(self, session, step):
        path = self._state_path(step)
        with open(f"{path}.part", "w") as file:
            file.write(self._service.get_shard_checkpoint())
        os.replace(f"{path}.part", path)
        should_stop = super()._save(session, step)
        kept = {self._state_path(_step_of(name)) for name in self._get_saver().last_checkpoints}
        for name in os.listdir(self._directory):
            other = os.path.join(self._directory, name)
            if re.fullmatch(r"shards-\d+\.json", name) and other not in kept | {path}:
                os.remove(other)
        return should_stop

    def _state_path(self, step):
        return os.path.join(self._directory, f"shards-{step}.json")


def _step_of(checkpoint):
    return int(checkpoint.rsplit("-", 1)[1])
