"""The job's master over gRPC. Each call is made again until it is answered: a lost connection is never the end of the data."""

import logging
import random
import threading
import time

import grpc

from trainyard import wire
from trainyard.errors import Closed, LeasesLost, NotOfThisJob, ShardError

log = logging.getLogger("trainyard")

# Asking again gives the same answer. All else (UNAVAILABLE, a deadline, a broken stream, a proxy's mood) is asked again.
_FINAL = {
    grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND, grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.OUT_OF_RANGE, grpc.StatusCode.UNIMPLEMENTED,
}
_DENIED = {grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED}
# A master that was just started again learns from the job's host who is of the job: only who is denied for longer is not.
_GRACE = 10.0
_DEADLINE = 30.0  # The master holds Take for up to 20 s; nothing else takes long.


class Master:
    """The calls of trainyard.Shards for one set and one member. Any thread may call; close() ends calls under way."""

    def __init__(self, address, number, set_name, max_backoff=5.0, deadline=_DEADLINE):
        self.address = address
        self._number, self._set = number, set_name
        self._max_backoff, self._deadline = max_backoff, deadline
        self._channel = grpc.insecure_channel(address, options=[
            ("grpc.enable_http_proxy", 0),  # The master is this machine's or this cluster's.
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.min_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", int(max_backoff * 1000)),
            ("grpc.max_receive_message_length", -1),  # Leases may list their records.
        ])
        self._calls = {
            name: self._channel.unary_unary(f"/trainyard.Shards/{name}", request.encode_message, reply.decode_message)
            for name, (request, reply) in wire.METHODS.items()}
        self._closed = threading.Event()
        self._give_up = None  # When, if ever, not to ask again.
        self._under_way = set()
        self._lock = threading.Lock()

    def register(self, params):
        params.number, params.set = self._number, self._set
        reply = self._ask("Register", params)
        if reply.conflict:
            log.warning("the set %r was registered with other parameters, which stay in force: %s", self._set, reply.in_force)
        return reply.in_force or params

    def take(self, most, holding):
        return self._ask("Take", self._of(wire.TakeRequest, most=most, holding=list(holding)))

    def report(self, done, failed=(), holding=()):
        failures = [wire.Failure(id, error or "failed") for id, error in failed]
        return self._ask("Report", self._of(wire.ReportRequest, done=list(done), failed=failures, holding=list(holding)))

    def look(self):
        return self._ask("Look", self._of(wire.LookRequest))

    def checkpoint(self):
        return self._ask("Checkpoint", self._of(wire.CheckpointRequest)).content

    def restore(self, content):
        self._ask("Restore", self._of(wire.RestoreRequest, content=content))

    def reset(self):
        self._ask("Reset", self._of(wire.ResetRequest))

    def commit(self, done, key, value):
        """All of `done` count and `value` is kept under `key`, or nothing of it (LeasesLost)."""
        self._ask("Commit", self._of(wire.CommitRequest, done=list(done), key=key, value=value))

    def committed(self, key):
        """The last value that was committed under the key, or None."""
        reply = self._ask("Committed", self._of(wire.CommittedRequest, key=key))
        return reply.value if reply.known else None

    def hurry(self):
        """The process is about to end: calls get a few seconds from now on."""
        self._deadline = 3.0
        self._give_up = time.monotonic() + self._deadline

    def close(self):
        with self._lock:
            self._closed.set()
            under_way = list(self._under_way)
        for call in under_way:
            call.cancel()
        self._channel.close()

    def _of(self, request, **fields):
        return request(number=self._number, set=self._set, **fields)

    def _ask(self, name, request):
        began, pause, failures, denied = time.monotonic(), 0.05, 0, None
        while True:
            try:
                reply = self._once(name, request)
            except grpc.RpcError as error:
                code, text = error.code(), error.details()
                if self._closed.is_set():
                    raise Closed(f"{name}: closed") from None
                denied = (denied or time.monotonic()) if code in _DENIED else None
                if code in _FINAL and (denied is None or time.monotonic() - denied >= _GRACE):
                    raise _refusal(name, code, text) from None
                failures += 1
                if failures == 1:
                    log.warning("%s: the master at %s does not answer (%s: %s); asking again until it does",
                                name, self.address, code.name, text)
            else:
                if failures:
                    log.warning("%s: answered after %.1f s", name, time.monotonic() - began)
                return reply
            if self._give_up is not None and time.monotonic() > self._give_up:
                raise Closed(f"{name}: not answered in time")
            # Spread out, so that a master that comes back is not met by all at once.
            if self._closed.wait(pause * random.uniform(0.5, 1.0)):
                raise Closed(f"{name}: closed")
            pause = min(2 * pause, self._max_backoff)

    def _once(self, name, request):
        with self._lock:
            if self._closed.is_set():
                raise Closed(f"{name}: closed")
            call = self._calls[name].future(request, timeout=self._deadline)
            self._under_way.add(call)
        try:
            return call.result()
        except grpc.FutureCancelledError:
            raise Closed(f"{name}: closed") from None
        finally:
            with self._lock:
                self._under_way.discard(call)


def _refusal(name, code, text):
    words = f"{name}: {text}" if text else f"{name}: {code.name}"
    if code in _DENIED:
        return NotOfThisJob(words)
    if name == "Commit" and code == grpc.StatusCode.FAILED_PRECONDITION:
        return LeasesLost(words)
    return ShardError(words)
