"""The data of a job, shard by shard, and the account of which records were trained.

    service = build_data_shard_service(batch_size=64, num_epochs=3, dataset_size=60000, dataset_name="mnist")
    while shard := service.fetch_shard():
        for record in shard.records():
            ...
        service.report_batch_done()          # after each batch

A record is known by its place: which shard, and where in it. What the input pipeline delivers is queued, batch by batch; reporting
a batch takes the oldest from that queue. So a short batch counts what it holds, and a shard is reported only when each of its records
was in a batch that was trained. tf.data pipelines are best made by `trainyard.tensorflow`, which does the delivering.

Two ways to go through the data:

  flow     (default) shards are fetched as the pipeline asks for them and reported as soon as they are trained
  rounds   (`shards_per_round=N`) `more()` fetches up to N shards, one pass of the pipeline trains just those, and they are reported
           together with the model that has learned them (trainyard.checkpoint): all of it, or nothing

Thread-safe: the pipeline's threads fetch and deliver while the training thread reports.
"""

import atexit
import collections
import dataclasses
import logging
import os
import threading
import time
import weakref

from trainyard import wire
from trainyard.errors import Closed, ShardError
from trainyard.local import LocalLedger

log = logging.getLogger("trainyard")

TRAINING, EVALUATION, PREDICTION = 1, 2, 3  # elasticai_api's TaskType
_DEFAULT_NAMES = {EVALUATION: "_EDL_DEFAULT_EVALUATION_DATA"}
_DEFAULT_NAME = "_EDL_DEFAULT_TRAINING_DATA"  # As the published clients call a set without a name.
_DEFAULT_BATCHES = 8  # As their master's --num_minibatches_per_task.
_BEAT = 10.0  # Seconds. The master takes a member for silent after 60 at the earliest (src/ledger/ledger.h).
_STUCK = 600.0  # Seconds. A script that has not trained a batch for so long is stuck: others may have its shards.


@dataclasses.dataclass(frozen=True)
class Shard:
    """Records [start, end) of a set; with `shuffle`, those listed in `indices` instead."""

    name: str
    start: int
    end: int
    indices: tuple = ()
    epoch: int = 1
    id: int = 0
    skip: frozenset = frozenset()  # Places in it that were trained already, before the pipeline was made anew.

    def records(self):
        """The numbers of the records to read, in order."""
        return [record for _, record in self.places()]

    def places(self):
        """(place in the shard, number of the record)"""
        numbers = self.indices or range(self.start, self.end)
        return [(place, number) for place, number in enumerate(numbers) if place not in self.skip]


class _Held:
    """A lease that was not reported yet, and which of its records were trained."""

    def __init__(self, lease):
        self.lease = lease
        self.size = lease.end - lease.start
        self.trained = bytearray(self.size)
        self.left = self.size

    def train(self, places):
        if isinstance(places, range):
            part = slice(places.start, places.stop)
            self.left -= self.trained[part].count(0)
            self.trained[part] = bytes([1]) * len(places)
        else:
            for place in places:
                self.left -= not self.trained[place]
                self.trained[place] = 1


@dataclasses.dataclass
class _Delivered:
    """What the pipeline handed out: shards' ids, each with places in it (a range or a list). A batch is reported whole."""

    runs: list
    is_batch: bool


def build_data_shard_service(batch_size, num_epochs=None, dataset_size=None, shuffle=False, shuffle_shards=False, task_type=TRAINING,
                             num_minibatches_per_shard=0, dataset_name=None, *, seed=0, barrier=False, shards_per_call=1,
                             shards_per_round=None, max_backoff=5.0, master_addr=None, worker_id=None):
    """The service for a data set, registered with the job's master; without a master (no MASTER_ADDR), one in this process.

    shuffle           the records of an epoch come in a random order, which depends on seed and epoch alone
    shuffle_shards    the shards do
    dataset_size      None: others register the set, and it is waited for
    num_epochs        0: endless
    barrier           an epoch begins when all of the last one was reported, not when all of it was handed out
    shards_per_call   how many to fetch at once, and to report at once
    shards_per_round  go through the data in rounds: see above
    max_backoff       the longest pause, in seconds, between two tries while the master does not answer
    """
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}: at least 1")
    if dataset_size is not None and dataset_size < 1:
        raise ValueError(f"dataset_size is {dataset_size}: there is nothing to train on")
    name = dataset_name or _DEFAULT_NAMES.get(task_type, _DEFAULT_NAME)
    address = master_addr or _master_address()
    if address:
        from trainyard.master import Master  # Needs grpcio.
        number = int(os.environ.get("WORKER_ID", 0)) if worker_id is None else worker_id
        ledger = Master(address, number, name, max_backoff=max_backoff)
    else:
        ledger = LocalLedger()
    if dataset_size is not None:
        ledger.register(wire.RegisterRequest(
            size=dataset_size, shard_size=batch_size * (num_minibatches_per_shard or _DEFAULT_BATCHES),
            epochs=1 if num_epochs is None else num_epochs, shuffle_shards=shuffle_shards, shuffle_records=shuffle, barrier=barrier,
            seed=seed))
    elif not address:
        raise ValueError("dataset_size is needed where there is no master")
    else:
        while not ledger.look().registered:
            time.sleep(0.2)
    return DataShardService(ledger, name, batch_size, dataset_size, shards_per_call, shards_per_round)


def _master_address():
    # torch.distributed has a MASTER_ADDR of its own, without a port.
    for name in ("DLROVER_MASTER_ADDR", "MASTER_ADDR"):
        if ":" in (address := os.environ.get(name, "")):
            return address
    return None


def _beat(weak, stop):
    while not stop.wait(_BEAT):
        service = weak()
        if service is None:
            return
        try:
            service._say_alive()
        except ShardError as error:
            if not stop.is_set():
                log.warning("the heartbeat ends: %s", error)
            return
        del service


class DataShardService:
    def __init__(self, ledger, name, batch_size, dataset_size=None, shards_per_call=1, shards_per_round=None):
        self.name, self.batch_size, self.dataset_size = name, batch_size, dataset_size
        self.leaving = False  # This process was asked to leave: the data may not be over.
        self._ledger = ledger
        self._most = shards_per_round or shards_per_call
        self._rounds = shards_per_round is not None
        self._lock = threading.RLock()
        self._taking, self._reporting = threading.Lock(), threading.Lock()
        self._held = {}  # id -> _Held, in the order they came; those trained stay until their report is answered
        self._ready = collections.deque()  # leases that no pipeline has got yet
        self._delivered = collections.deque()
        self._finished = []  # ids that are trained and not reported
        self._pass, self._progress = 0, 0
        self._ended = self._closed = False
        self._beating, self._stop = False, threading.Event()
        self._active = time.monotonic()  # when the script last did anything with its shards
        weak = weakref.ref(self)
        atexit.register(lambda: (service := weak()) and service.close())

    # -- the seed's three steps

    def fetch_shard(self):
        """The next shard, or None when this pass through the data is over. `more()` then says whether there is more."""
        lease = self._next_lease(None)
        if lease is None:
            return None
        shard = self._shard(lease)
        places = [place for place, _ in shard.places()] if shard.skip else range(lease.end - lease.start)
        self.deliver([(lease.id, places)], is_batch=False)
        return shard

    def report_batch_done(self, batch_size=None, err_msg=""):
        """The oldest batch that was delivered and not yet reported is trained (or failed). Says whether that finished a shard.

        Where the pipeline is not ours, only numbers of records are known: `batch_size`, or what the service was built with.
        """
        self._active = time.monotonic()
        with self._lock:
            runs = self._pop(batch_size)
            failed = [(id, err_msg) for id in dict.fromkeys(id for id, _ in runs) if id in self._held] if err_msg else []
            for id, _ in failed:
                self._drop(id)
            for id, places in () if err_msg else runs:
                held = self._held.get(id)
                if held is not None and held.left:
                    held.train(places)
                    self._progress += len(places)
                    if not held.left:
                        self._finished.append(id)
            due = self._finished and not self._rounds and (
                len(self._finished) >= self._most or all(not held.left for held in self._held.values()))
        if failed:
            with self._reporting:
                self._ledger.report([], failed)
        if due:
            self.flush()
        return bool(due)

    # -- passes

    def more(self):
        """Waits for shards to train. False: the data is over, or this process was asked to leave.

        To be asked between two passes of the pipeline. What the last pass fetched and did not train comes again in the next; if it
        has trained nothing at all, the rest is what the pipeline drops (`drop_remainder`), and counts as trained.
        """
        self.flush()
        with self._lock:
            if left := self._left_over():
                if self._progress:
                    self.begin_pass()
                    return True
                self._drop_the_rest(left)
            elif self._finished and self._rounds and not self._ready:
                raise ShardError("more() before the last round was committed: save the model first")
        self.flush()
        while True:
            with self._lock:
                if self._ready:
                    return True
                if self._ended or self._closed:
                    return False
            if self._take() == wire.DRAIN:
                time.sleep(0.1)  # A report of ours is still under way in another thread.

    def begin_pass(self):
        """A pipeline begins, or begins again; whatever an older one still has is void. Returns the pass's number."""
        with self._lock:
            self._pass += 1
            self._progress = 0
            self._delivered.clear()
            waiting = {lease.id for lease in self._ready}
            again = [held.lease for held in self._held.values() if held.left and held.lease.id not in waiting]
            self._ready.extendleft(reversed(again))
            return self._pass

    def shards(self, of_pass, to_the_end=False):
        """The shards of a pass, for a pipeline that delivers by itself.

        When all is handed out and this process still has some of it, a pass ends, since most pipelines need the end of their input to give
        out the last batch. One that needs no such thing goes on to_the_end: it waits until those are trained, and for what comes back
        from others, until all of the data is reported.
        """
        if self._rounds:
            with self._lock:
                round_is_here = self._ready or self._finished
            if not round_is_here and not self.more():
                return
        while True:
            while (lease := self._next_lease(of_pass)) is not None:
                yield self._shard(lease)
            if self._rounds or not to_the_end or not self._wait_until_trained(of_pass):
                return

    def deliver(self, runs, of_pass=None, is_batch=True):
        """The pipeline hands out these records: (shard's id, places in it) ... False: that pipeline is void."""
        with self._lock:
            if of_pass is not None and of_pass != self._pass:
                return False
            self._delivered.append(_Delivered(list(runs), is_batch))
            return True

    # -- the account

    def flush(self):
        """Reports what is trained. In rounds nothing is reported before it is committed."""
        if self._rounds:
            return
        with self._reporting:
            with self._lock:
                done, self._finished = self._finished, []
                holding = [id for id in self._held if id not in done]
            if not done:
                return
            reply = self._ledger.report(done, holding=holding)
            if reply.over:
                log.warning("the set %r was restored meanwhile, or others have done them: %d shards are not trained to their end", self.name,
                            len(reply.over))
            with self._lock:
                for id in [*done, *reply.over]:
                    self._drop(id)
                self._finished = [id for id in self._finished if id in self._held]

    @property
    def settled(self):
        """Each shard is trained whole or not at all: what is in the model is what is reported, or will be by the next flush()."""
        with self._lock:
            return all(held.left in (0, held.size) for held in self._held.values())

    def commit(self, key, value):
        """Reports this round, and keeps `value` under `key` in the same stroke: all of it, or nothing (LeasesLost)."""
        if not self._rounds:
            raise ShardError("commit() is for rounds: build the service with shards_per_round")
        with self._reporting:
            with self._lock:
                if not self.settled:
                    raise ShardError(self._not_whole())
                done = list(self._finished)
            self._ledger.commit(done, key, value)
            with self._lock:
                for id in done:
                    del self._held[id]
                self._finished = []

    def committed(self, key):
        """What was last committed under the key, by whichever process; None for nothing."""
        return self._ledger.committed(key)

    def keep_in(self, path):
        """Without a master, commits are kept in this file. With one they are kept in its ledger."""
        if isinstance(self._ledger, LocalLedger):
            self._ledger.keep_in(path)

    def forget(self):
        """Drops all that is held, trained or not: it is handed out again."""
        with self._lock:
            self.begin_pass()
            self._held.clear()
            self._ready.clear()
            self._finished = []

    def get_shard_checkpoint(self):
        """The state of the whole set as text; what is held, by anybody, counts as not trained."""
        self.flush()
        return self._ledger.checkpoint()

    def restore_shard_from_checkpoint(self, content):
        """The set becomes what the text says, for everybody."""
        with self._taking, self._reporting:
            self._ledger.restore(content)
            self._ended = False
            self.forget()

    def reset_dataset(self):
        """The set begins again, for everybody."""
        with self._taking, self._reporting:
            self._ledger.reset()
            self._ended = False
            self.forget()

    def look(self):
        """How far the set is: see LookReply in proto/shards.proto."""
        return self._ledger.look()

    def get_current_epoch(self):
        return self._ledger.look().epoch

    def get_minibatch_count_per_epoch(self):
        return -(-self.dataset_size // self.batch_size)

    def close(self):
        """Reports what is trained, and ends calls under way. A master that is gone is not waited for."""
        if self._closed:
            return
        self._closed = True
        self._stop.set()
        try:
            self._ledger.hurry()
            self.flush()
        except ShardError as error:
            log.warning("at the end: %s", error)
        self._ledger.close()

    # -- inside

    def _next_lease(self, of_pass):
        while True:
            with self._lock:
                if of_pass is not None and of_pass != self._pass:
                    return None
                if self._ready:
                    return self._ready.popleft()
                if self._ended or self._closed or self._rounds:
                    return None
            try:
                if self._take() in (wire.DRAIN, wire.END):
                    return None
            except Closed:
                return None

    def _wait_until_trained(self, of_pass):
        """Until nothing is held, to ask again then. False: this pass is over."""
        while True:
            with self._lock:
                if of_pass != self._pass or self._ended or self._closed:
                    return False
                if not self._held:
                    return True
            time.sleep(0.02)

    def _take(self):
        with self._taking:
            with self._lock:
                if self._ready:
                    return wire.TAKEN
                holding = list(self._held)
            reply = self._ledger.take(self._most, holding)
            self._active = time.monotonic()
            self._begin_to_beat()
            with self._lock:
                for lease in reply.leases:
                    self._held[lease.id] = _Held(lease)
                    self._ready.append(lease)
                if reply.next == wire.END:
                    self._ended, self.leaving = True, reply.leaving
            return reply.next

    def _begin_to_beat(self):
        """Nothing is reported before a shard or a round is over, and that may take longer than the master waits for a sign."""
        if self._beating or isinstance(self._ledger, LocalLedger):
            return
        self._beating = True
        threading.Thread(target=_beat, args=(weakref.ref(self), self._stop), name="trainyard-heartbeat", daemon=True).start()

    def _say_alive(self):
        with self._lock:
            holding = list(self._held)
        if holding and time.monotonic() - self._active < _STUCK:
            self._ledger.report([], holding=holding)

    def _shard(self, lease):
        with self._lock:
            held = self._held.get(lease.id)
            skip = frozenset(i for i, trained in enumerate(held.trained) if trained) if held and held.left < held.size else frozenset()
        return Shard(self.name, lease.start, lease.end, tuple(lease.records), lease.epoch, lease.id, skip)

    def _pop(self, count):
        """The runs of the oldest batch, or of so many records."""
        if count is None:
            if self._delivered and self._delivered[0].is_batch:
                return self._delivered.popleft().runs
            count = self.batch_size
        runs = []
        while count > 0 and self._delivered:
            first = self._delivered[0]
            id, places = first.runs[0]
            runs.append((id, places[:count]))
            if len(places) > count:
                first.runs[0] = id, places[count:]
            else:
                first.runs.pop(0)
            if not first.runs:
                self._delivered.popleft()
            count -= len(places)
        return runs

    def _drop(self, id):
        self._held.pop(id, None)
        self._ready = collections.deque(lease for lease in self._ready if lease.id != id)

    def _left_over(self):
        """Of what a pipeline has got, what was not trained whole."""
        waiting = {lease.id for lease in self._ready}
        return [held for held in self._held.values() if held.left and held.lease.id not in waiting]

    def _drop_the_rest(self, left):
        if self._rounds:
            raise ShardError(self._not_whole())
        log.warning("%d records of %r count as trained, though the pipeline dropped them", sum(held.left for held in left), self.name)
        for held in left:
            held.left = 0
            self._finished.append(held.lease.id)

    def _not_whole(self):
        return (f"{sum(held.left for held in self._left_over())} records of this round were not trained: it is committed whole, "
                "so its pipeline must not drop any (drop_remainder, take, filter)")
