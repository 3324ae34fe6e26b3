"""The messages of proto/shards.proto, and as much of protobuf's encoding as they need.

Written by hand so that the package needs no protobuf: every TensorFlow pins another major version of it, and generated code
works with few of them. A field that is not known is skipped, as protobuf does. tests/python/test_wire.py compares with protoc.
"""

import dataclasses

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def at(number, kind=int, many=False):
    """A field of a message: its number and what it holds (`int`, `bool`, `str`, `"uint"`, or a message)."""
    meta = {"number": number, "kind": kind, "many": many}
    if many:
        return dataclasses.field(default_factory=list, metadata=meta)
    if kind in (int, bool, str, "uint"):
        return dataclasses.field(default={int: 0, bool: False, str: "", "uint": 0}[kind], metadata=meta)
    return dataclasses.field(default=None, metadata=meta)


def _varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(data, at_byte):
    value = shift = 0
    while True:
        byte = data[at_byte]
        value |= (byte & 0x7F) << shift
        at_byte += 1
        if not byte & 0x80:
            return value & (1 << 64) - 1, at_byte
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than ten bytes")


def _of_varint(value, kind):
    if kind is bool:
        return value != 0
    return value - (1 << 64) if kind is int and value >= 1 << 63 else value


def _encode_field(number, kind, value):
    if kind in (int, bool, "uint"):
        return _varint(number << 3 | _VARINT) + _varint(int(value))
    data = value.encode() if kind is str else value.encode_message()
    return _varint(number << 3 | _BYTES) + _varint(len(data)) + data


def _skip(data, wire_type, at_byte):
    if wire_type == _VARINT:
        return _read_varint(data, at_byte)[1]
    if wire_type == _BYTES:
        size, at_byte = _read_varint(data, at_byte)
        return at_byte + size
    if wire_type in (_FIXED32, _FIXED64):
        return at_byte + (4 if wire_type == _FIXED32 else 8)
    raise ValueError(f"wire type {wire_type}")


class Message:
    """What every message can do. Fields left at their default are not sent."""

    def encode_message(self):
        out = []
        for field in dataclasses.fields(self):
            number, kind, many = (field.metadata[k] for k in ("number", "kind", "many"))
            value = getattr(self, field.name)
            if not many:
                if value or kind not in (int, bool, str, "uint") and value is not None:
                    out.append(_encode_field(number, kind, value))
            elif value and kind in (int, bool, "uint"):  # Packed.
                data = b"".join(_varint(int(one)) for one in value)
                out.append(_varint(number << 3 | _BYTES) + _varint(len(data)) + data)
            else:
                out.extend(_encode_field(number, kind, one) for one in value)
        return b"".join(out)

    @classmethod
    def decode_message(cls, data):
        message = cls()
        fields = {field.metadata["number"]: field for field in dataclasses.fields(cls)}
        at_byte = 0
        try:
            while at_byte < len(data):
                key, at_byte = _read_varint(data, at_byte)
                field, wire_type = fields.get(key >> 3), key & 7
                begin, at_byte = at_byte, _skip(data, wire_type, at_byte)
                if at_byte > len(data):
                    raise IndexError
                if field is not None:
                    message._take_field(field, wire_type, data, begin, at_byte)
        except IndexError:
            raise ValueError(f"{cls.__name__}: cut short") from None
        return message

    def _take_field(self, field, wire_type, data, begin, end):
        kind, many = field.metadata["kind"], field.metadata["many"]
        if kind in (int, bool, "uint"):
            if wire_type == _BYTES:  # Packed.
                _, begin = _read_varint(data, begin)
            values = []
            while begin < end:
                value, begin = _read_varint(data, begin)
                values.append(_of_varint(value, kind))
        else:
            if wire_type != _BYTES:
                raise ValueError(f"{field.name}: wire type {wire_type}")
            _, begin = _read_varint(data, begin)
            part = bytes(data[begin:end])
            values = [part.decode() if kind is str else kind.decode_message(part)]
        if many:
            getattr(self, field.name).extend(values)
        elif values:
            setattr(self, field.name, values[-1])


def message(cls):
    return dataclasses.dataclass(cls)


TAKEN, WAIT, DRAIN, END = range(4)  # enum Next


@message
class RegisterRequest(Message):
    number: int = at(1)
    set: str = at(2, str)
    size: int = at(3)
    shard_size: int = at(4)
    epochs: int = at(5)
    shuffle_shards: bool = at(6, bool)
    shuffle_records: bool = at(7, bool)
    barrier: bool = at(8, bool)
    seed: int = at(9, "uint")


@message
class RegisterReply(Message):
    conflict: bool = at(1, bool)
    in_force: RegisterRequest = at(2, RegisterRequest)


@message
class TakeRequest(Message):
    number: int = at(1)
    set: str = at(2, str)
    most: int = at(3)
    holding: list = at(4, many=True)


@message
class Lease(Message):
    id: int = at(1)
    epoch: int = at(2)
    start: int = at(3)
    end: int = at(4)
    records: list = at(5, many=True)


@message
class TakeReply(Message):
    next: int = at(1)
    leases: list = at(2, Lease, many=True)
    leaving: bool = at(3, bool)


@message
class Failure(Message):
    id: int = at(1)
    error: str = at(2, str)


@message
class ReportRequest(Message):
    number: int = at(1)
    set: str = at(2, str)
    done: list = at(3, many=True)
    failed: list = at(4, Failure, many=True)
    holding: list = at(5, many=True)


@message
class ReportReply(Message):
    counted: int = at(1)
    already: int = at(2)
    unknown: int = at(3)
    over: list = at(4, many=True)


@message
class LookRequest(Message):
    number: int = at(1)
    set: str = at(2, str)


@message
class LookReply(Message):
    registered: bool = at(1, bool)
    complete: bool = at(2, bool)
    epoch: int = at(3)
    epochs: int = at(4)
    todo: int = at(5)
    doing: int = at(6)
    records_left: int = at(7)
    records_total: int = at(8)


@message
class CheckpointRequest(Message):
    number: int = at(1)
    set: str = at(2, str)


@message
class CheckpointReply(Message):
    content: str = at(1, str)


@message
class RestoreRequest(Message):
    number: int = at(1)
    set: str = at(2, str)
    content: str = at(3, str)


@message
class ResetRequest(Message):
    number: int = at(1)
    set: str = at(2, str)


@message
class CommitRequest(Message):
    number: int = at(1)
    set: str = at(2, str)
    done: list = at(3, many=True)
    key: str = at(4, str)
    value: str = at(5, str)


@message
class CommittedRequest(Message):
    number: int = at(1)
    set: str = at(2, str)
    key: str = at(3, str)


@message
class CommittedReply(Message):
    known: bool = at(1, bool)
    value: str = at(2, str)


@message
class Empty(Message):
    """RestoreReply, ResetReply, CommitReply."""


METHODS = {
    "Register": (RegisterRequest, RegisterReply),
    "Take": (TakeRequest, TakeReply),
    "Report": (ReportRequest, ReportReply),
    "Look": (LookRequest, LookReply),
    "Checkpoint": (CheckpointRequest, CheckpointReply),
    "Restore": (RestoreRequest, Empty),
    "Reset": (ResetRequest, Empty),
    "Commit": (CommitRequest, Empty),
    "Committed": (CommittedRequest, CommittedReply),
}
