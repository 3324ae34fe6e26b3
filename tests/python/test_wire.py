"""Our encoding of the messages beside protobuf's own (protoc reads and writes them as text)."""

import re
import subprocess

import pytest

from trainyard import wire
from yard import ROOT


def protoc(how, name, data):
    return subprocess.run(["protoc", f"--{how}=trainyard.{name}", f"--proto_path={ROOT}/proto", "shards.proto"], input=data,
                          capture_output=True, check=True).stdout


FULL = [
    (wire.RegisterRequest(65536, "iris ∞", 1 << 40, 64, 100, True, True, True, (1 << 64) - 1),
     'number: 65536 set: "iris ∞" size: 1099511627776 shard_size: 64 epochs: 100 shuffle_shards: true shuffle_records: true '
     'barrier: true seed: 18446744073709551615'),
    (wire.RegisterReply(True, wire.RegisterRequest(set="a", size=1)), 'conflict: true in_force { set: "a" size: 1 }'),
    (wire.RegisterReply(False, wire.RegisterRequest()), 'in_force { }'),
    (wire.TakeRequest(7, "a", 1024, [1, 300, 2**31 - 1]), 'number: 7 set: "a" most: 1024 holding: [1, 300, 2147483647]'),
    (wire.TakeReply(wire.TAKEN, [wire.Lease(1, 2, 0, 3, [2, 0, 1]), wire.Lease(2, 2, 3, 4)]),
     "leases { id: 1 epoch: 2 end: 3 records: [2, 0, 1] } leases { id: 2 epoch: 2 start: 3 end: 4 }"),
    (wire.TakeReply(wire.END, [], True), "next: END leaving: true"),
    (wire.TakeReply(wire.WAIT), "next: WAIT"),
    (wire.TakeReply(wire.DRAIN), "next: DRAIN"),
    (wire.ReportRequest(1, "a", [5, 6], [wire.Failure(7, "no such file")], [8]),
     'number: 1 set: "a" done: [5, 6] failed { id: 7 error: "no such file" } holding: 8'),
    (wire.ReportReply(1, 2, 3, [4, 5]), "counted: 1 already: 2 unknown: 3 over: [4, 5]"),
    (wire.LookReply(True, True, 3, 4, 5, 6, -1, -1),
     "registered: true complete: true epoch: 3 epochs: 4 todo: 5 doing: 6 records_left: -1 records_total: -1"),
    (wire.CheckpointReply('{"a": 1}'), r'content: "{\"a\": 1}"'),
    (wire.RestoreRequest(1, "a", "x"), 'number: 1 set: "a" content: "x"'),
    (wire.CommitRequest(1, "a", [9], "worker-0", "model-1"), 'number: 1 set: "a" done: 9 key: "worker-0" value: "model-1"'),
    (wire.CommittedReply(True, "model-1"), 'known: true value: "model-1"'),
]


@pytest.mark.parametrize("message, text", FULL, ids=lambda value: type(value).__name__ if not isinstance(value, str) else "")
def test_a_message_has_the_bytes_that_protobuf_gives_it(message, text):
    name = type(message).__name__
    data = protoc("encode", name, text.encode())
    assert message.encode_message() == data
    assert type(message).decode_message(data) == message


def test_the_methods_and_fields_are_those_of_the_proto():
    text = (ROOT / "proto/shards.proto").read_text()
    assert {*wire.METHODS} == {*re.findall(r"rpc (\w+)\(", text)}
    for name, body in re.findall(r"message (\w+) \{(.*?)\}", text, re.S):
        fields = {field: int(number) for field, number in re.findall(r"(\w+) = (\d+);", body)}
        cls = getattr(wire, name, wire.Empty)
        ours = {field.name: field.metadata["number"] for field in wire.dataclasses.fields(cls)}
        assert ours == fields, name


def test_unknown_fields_are_skipped():
    known = wire.LookRequest(3, "a").encode_message()
    strange = bytes([0xA0, 6, 1]) + bytes([0xAA, 6, 2, 8, 9]) + bytes([0xAD, 6, 1, 2, 3, 4]) + bytes([0xA9, 6, *range(8)])
    assert wire.LookRequest.decode_message(strange + known + strange) == wire.LookRequest(3, "a")


def test_numbers_that_are_not_packed_are_read_too():
    assert wire.TakeRequest.decode_message(bytes([0x20, 5, 0x20, 6])).holding == [5, 6]


def test_bytes_that_are_cut_short_are_an_error_and_never_a_hang():
    whole = wire.TakeReply(wire.TAKEN, [wire.Lease(1, 2, 0, 300, [2, 1000, 1])]).encode_message()
    for size in range(1, len(whole)):
        try:
            assert wire.TakeReply.decode_message(whole[:size]) != wire.TakeReply.decode_message(whole)
        except ValueError:
            pass
    with pytest.raises(ValueError):
        wire.TakeReply.decode_message(b"\x08" + b"\xff" * 20)
