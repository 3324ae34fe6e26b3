"""A master for tests of our Python client: the service trainyard.Shards over a ledger in memory, with faults to order."""

import collections
import contextlib
from concurrent import futures

import grpc

from trainyard import wire
from trainyard.errors import LeasesLost
from trainyard.local import LocalLedger


class FakeMaster:
    def __init__(self, port=0):
        self._ledgers = collections.defaultdict(LocalLedger)
        self.asked = []  # (method, request), also those that then failed
        self.faults = collections.defaultdict(list)  # method -> what the next calls meet: a status code, before or after the deed
        self.answers = collections.defaultdict(list)  # method -> replies to give in place of the ledger's
        self._server = None
        self.port = port
        self.start()

    @property
    def ledger(self):
        return self._ledgers["test"]

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def start(self):
        handlers = {name: grpc.unary_unary_rpc_method_handler(self._handler(name), request.decode_message,
                                                              lambda reply: reply.encode_message())
                    for name, (request, _) in wire.METHODS.items()}
        self._server = grpc.server(futures.ThreadPoolExecutor(8), options=[("grpc.so_reuseport", 0)])
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("trainyard.Shards", handlers),))
        self.port = self._server.add_insecure_port(f"127.0.0.1:{self.port}")
        self._server.start()

    def stop(self):
        self._server.stop(None).wait()

    def count(self, method):
        return sum(name == method for name, _ in self.asked)

    def reported(self):
        """The ids reported as done, in the order they came."""
        return [id for name, request in self.asked if name in ("Report", "Commit") for id in request.done]

    def _handler(self, name):
        def handle(request, context):
            self.asked.append((name, request))
            fault = self.faults[name].pop(0) if self.faults[name] else None
            if isinstance(fault, grpc.StatusCode):
                context.abort(fault, "as the test wants it")
            reply = self.answers[name].pop(0) if self.answers[name] else self._answer(name, request, context)
            if fault == "lost":  # Done, and the answer does not get through.
                context.abort(grpc.StatusCode.UNAVAILABLE, "the answer is lost")
            return reply

        return handle

    def _answer(self, name, request, context):
        ledger = self._ledgers[request.set]
        if name == "Register":
            return wire.RegisterReply(False, ledger.register(request))
        if name == "Take":
            return ledger.take(request.most, request.holding)
        if name == "Report":
            return ledger.report(request.done, [(one.id, one.error) for one in request.failed], request.holding)
        if name == "Look":
            return ledger.look()
        if name == "Checkpoint":
            return wire.CheckpointReply(ledger.checkpoint())
        if name == "Committed":
            value = ledger.committed(request.key)
            return wire.CommittedReply(value is not None, value or "")
        try:
            {"Restore": lambda: ledger.restore(request.content), "Reset": ledger.reset,
             "Commit": lambda: ledger.commit(request.done, request.key, request.value)}[name]()
        except LeasesLost as lost:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(lost))
        return wire.Empty()


@contextlib.contextmanager
def fake_master():
    master = FakeMaster()
    try:
        yield master
    finally:
        master.stop()
