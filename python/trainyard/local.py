"""A ledger in this process, for a script that runs plain, without a master: the same shards in the same order.

It serves one process and one set, with the calls that `trainyard.master.Master` has. It keeps nothing by itself; once a file
is named (`keep_in`), commits are kept there, so that a script started again goes on where its last commit was.
"""

import json
import logging
import os
import threading

from trainyard import wire
from trainyard.errors import LeasesLost, ShardError

log = logging.getLogger("trainyard")

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_RECORD_SEED = 0x5EC0CD5EED  # As in src/ledger/ledger.cc.
_ROUNDS = 6
_MOST_ERRORS = 3
_VERSION = "local-1"


def _mixed(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & _MASK
    return x ^ x >> 31


class Permutation:
    """The order of an epoch, as in src/ledger/permutation.h: computed, not stored."""

    def __init__(self, seed, epoch, n):
        bits = (n - 1).bit_length()
        self._n = n
        self._half = 1 if bits < 2 else (bits + 1) // 2
        self._half_mask = (1 << self._half) - 1
        state = _mixed(seed + _GOLDEN & _MASK) ^ _mixed(epoch * _GOLDEN + 1 & _MASK)
        self._keys = [_mixed(state + (i + 1) * _GOLDEN & _MASK) for i in range(_ROUNDS)]

    def __call__(self, value):
        while True:
            left, right = value >> self._half, value & self._half_mask
            for key in self._keys:
                left ^= _mixed(right * _GOLDEN + key & _MASK) & self._half_mask
                left, right = right, left
            value = left << self._half | right
            if value < self._n:
                return value


class LocalLedger:
    def __init__(self):
        self._lock = threading.Lock()
        self._params = None
        self._path = None
        self._commits = {}
        self._begin()

    def _begin(self):
        self._epoch, self._position, self._next_id = 1, 0, 1
        self._due, self._out, self._errors, self._aside = [], {}, {}, []

    def keep_in(self, path):
        """Takes up what was committed to this file, and commits to it from now on."""
        with self._lock:
            self._path = path
            if not os.path.exists(path):
                return
            with open(path) as file:
                kept = json.load(file)
            self._restore(kept["state"])
            self._commits = kept["commits"]

    def register(self, params):
        with self._lock:
            if self._params is not None and _of_params(self._params) != _of_params(params):
                log.warning("the set was registered with other parameters, which stay in force: %s", self._params)
            self._params = self._params or params
            self._shards = -(-self._params.size // self._params.shard_size)
            return self._params

    def take(self, most, holding):
        with self._lock:
            lost = [id for id in self._out if id not in set(holding)]
            given = lost[:most]
            while len(given) < most and (shard := self._next()) is not None:
                self._out[self._next_id] = shard
                given.append(self._next_id)
                self._next_id += 1
            if given:
                return wire.TakeReply(wire.TAKEN, [self._lease(id) for id in given])
            return wire.TakeReply(wire.DRAIN if self._out else wire.END)

    def report(self, done, failed=(), holding=()):
        with self._lock:
            reply = wire.ReportReply()
            for id in done:
                if self._out.pop(id, None) is not None:
                    reply.counted += 1
                else:
                    reply.already += 1
            for id, error in failed:
                if (shard := self._out.pop(id, None)) is not None:
                    self._fail(shard, error)
            reply.over = [id for id in holding if id not in self._out]
            return reply

    def look(self):
        with self._lock:
            params = self._params
            if params is None:
                return wire.LookReply()
            total = params.size * params.epochs if params.epochs else -1
            waiting = sum(map(self._records_of, [*self._due, *self._out.values()]))
            passed = (self._epoch - 1) * params.size + sum(self._records_of((self._epoch, i)) for i in range(self._position))
            left = total - passed + waiting if params.epochs else -1
            return wire.LookReply(True, left == 0, self._epoch, params.epochs, len(self._due) + self._shards - self._position,
                                  len(self._out), left, total)

    def checkpoint(self):
        with self._lock:
            return json.dumps(self._state(without=()))

    def restore(self, content):
        with self._lock:
            self._restore(json.loads(content))

    def reset(self):
        with self._lock:
            self._begin()

    def commit(self, done, key, value):
        with self._lock:
            if self._commits.get(key) == value:
                return
            if any(id not in self._out for id in done):
                raise LeasesLost("a lease is not held any more")
            commits = {**self._commits, key: value}
            if self._path:
                _write(self._path, {"commits": commits, "state": self._state(without=done)})
            self._commits = commits
            for id in done:
                del self._out[id]

    def committed(self, key):
        with self._lock:
            return self._commits.get(key)

    def hurry(self):
        pass

    def close(self):
        pass

    def _next(self):
        if self._due:
            return self._due.pop(0)
        if self._position == self._shards:
            if self._params.epochs and self._epoch >= self._params.epochs:
                return None
            if self._params.barrier and self._out:
                return None
            self._epoch, self._position = self._epoch + 1, 0
        self._position += 1
        return self._epoch, self._position - 1

    def _index(self, shard):
        epoch, position = shard
        return Permutation(self._params.seed, epoch, self._shards)(position) if self._params.shuffle_shards else position

    def _records_of(self, shard):
        return min(self._params.shard_size, self._params.size - self._index(shard) * self._params.shard_size)

    def _lease(self, id):
        params, shard = self._params, self._out[id]
        start = self._index(shard) * params.shard_size
        end = min(start + params.shard_size, params.size)
        records = []
        if params.shuffle_records:
            order = Permutation(params.seed ^ _RECORD_SEED, shard[0], params.size)
            records = [order(i) for i in range(start, end)]
        return wire.Lease(id, shard[0], start, end, records)

    def _fail(self, shard, error):
        self._errors[shard] = self._errors.get(shard, 0) + 1
        if self._errors[shard] < _MOST_ERRORS:
            self._due.append(shard)
            return
        self._aside.append(shard)
        start = self._index(shard) * self._params.shard_size
        log.error("records %d to %d of epoch %d are set aside after %d errors: %s", start, start + self._records_of(shard) - 1,
                  shard[0], _MOST_ERRORS, error)

    def _state(self, without):
        held = [shard for id, shard in self._out.items() if id not in set(without)]
        return {"version": _VERSION, "params": _of_params(self._params), "epoch": self._epoch, "position": self._position,
                "due": [*self._due, *held], "aside": self._aside}

    def _restore(self, state):
        if state.get("version") != _VERSION:
            raise ShardError(f"this is no state of a set without a master, but version {state.get('version')!r}")
        if self._params is not None and state["params"] != _of_params(self._params):
            raise ShardError(f"the state is of another set: {state['params']}, not {_of_params(self._params)}")
        next_id = self._next_id
        self._begin()
        self._next_id = next_id  # Never used again, also not after this.
        self._epoch, self._position = state["epoch"], state["position"]
        self._due = [tuple(shard) for shard in state["due"]]
        self._aside = [tuple(shard) for shard in state["aside"]]


def _of_params(params):
    names = ("size", "shard_size", "epochs", "shuffle_shards", "shuffle_records", "barrier", "seed")
    return {name: getattr(params, name) for name in names}


def _write(path, value):
    """Whole or not at all, also if the machine stops."""
    with open(f"{path}.part", "w") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.part", path)
    directory = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
