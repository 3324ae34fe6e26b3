"""A model's checkpoints, bound to the shards that the model has learned: each record counts once, whatever dies when.

    service = build_data_shard_service(..., shards_per_round=8)
    saved = ShardCheckpoint(service, tf.train.Checkpoint(model=model, optimizer=optimizer), directory)
    saved.restore()
    while service.more():                 # a round of shards
        for batch in dataset:
            train(batch)
            service.report_batch_done()
        saved.save()

Saving writes the model under a name of its own, and then commits: the ledger notes that the round's shards are done and that this
name is now the model, in one entry. A process that dies before the commit leaves a model that nobody will load, and its shards
are handed out again; one that dies after it has lost nothing. There is no moment between the two. A process whose shards were given
to another one meanwhile cannot commit: it goes back to its last commit. So every record of every epoch is in exactly one of the
committed models (one for each `key`), once.

Without a master the ledger is a file in the directory, `shards.json`, and the same holds.
"""

import logging
import os
import shutil
import uuid

from trainyard.errors import LeasesLost, ShardError

log = logging.getLogger("trainyard")

_NOTHING = "nothing"  # Committed before the first model, so that foreign checkpoints are told from unfinished ones.
_LEDGER = "shards.json"


def committed_model(service, directory, key=None):
    """Where the model is that was last committed, by whichever process: for tf.train.Checkpoint.read. None: there is none yet."""
    name = service.committed(key or os.path.basename(os.path.abspath(directory)))
    return None if name in (None, _NOTHING) else os.path.join(directory, name)


class ShardCheckpoint:
    """checkpoint: a tf.train.Checkpoint. directory: this model's alone. key: names this model among those that share the data; each has
    one process at a time, and its successor has the same key (default: the directory's own name, say worker-0)."""

    def __init__(self, service, checkpoint, directory, key=None, keep=2):
        if "://" in str(directory):
            raise ValueError(f"{directory}: checkpoints of shards need a directory; object stores are not supported")
        self.directory = os.path.abspath(directory)
        self.key = key or os.path.basename(self.directory)
        self._service, self._checkpoint, self._keep = service, checkpoint, keep
        self._saved = []
        os.makedirs(self.directory, exist_ok=True)
        service.keep_in(os.path.join(self.directory, _LEDGER))

    def restore(self):
        """Loads the model that was last committed. False: there was none, and the model as it is now is committed as the first one, to go
        back to. Build the model and the optimizer before."""
        name = self._service.committed(self.key)
        if name is None:
            if strange := self._names():
                raise ShardError(f"{self.directory} has checkpoints ({strange[0]}, …) that this job has not made: "
                                 "take an empty directory for a new job")
            self._service.commit(self.key, _NOTHING)
            name = _NOTHING
        self._saved = [] if name == _NOTHING else [name]
        self._remove_others()
        if not self._saved:
            self._write()
            return False
        if not os.path.exists(self._path(name) + ".index"):
            raise ShardError(f"the model {name} was committed, and is not in {self.directory} any more")
        self._checkpoint.read(self._path(name)).assert_existing_objects_matched()
        return True

    def save(self):
        """Saves the model and reports its shards. False: they were given to another process meanwhile, and the model is what it was at the
        last commit."""
        if not self._service.settled:
            self._service.commit(self.key, "")  # Says what is wrong.
        try:
            self._write()
        except LeasesLost as lost:
            log.warning("%s; going back to the last commit", lost)
            self._service.forget()
            self.restore()
            return False
        return True

    def _write(self):
        name = f"model-{uuid.uuid4().hex[:12]}"
        self._checkpoint.write(self._path(name))
        self._sync(name)
        self._service.commit(self.key, name)
        self._saved.append(name)
        self._saved = self._saved[-self._keep:]
        self._remove_others()

    def _path(self, name):
        return os.path.join(self.directory, name)

    def _names(self):
        return sorted({entry.split(".")[0] for entry in os.listdir(self.directory) if entry.startswith("model-")})

    def _sync(self, name):
        """On the disk before the ledger says so."""
        for entry in [entry for entry in os.listdir(self.directory) if entry.startswith(f"{name}.")] + ["."]:
            file = os.open(self._path(entry), os.O_RDONLY)
            try:
                os.fsync(file)
            finally:
                os.close(file)

    def _remove_others(self):
        """Killed while it writes, TensorFlow leaves a directory: model-…_temp."""
        for entry in os.listdir(self.directory):
            if entry.startswith("model-") and entry.split(".")[0] not in self._saved:
                path = self._path(entry)
                shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
