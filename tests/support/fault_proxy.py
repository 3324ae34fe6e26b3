"""A proxy between an operator and the API server that makes faults on purpose, at a write or on a watch that a test names.

    with FaultProxy(cluster.server, cluster.dir / "pki", "admin") as proxy:
        operator = start("operator", "--kubeconfig", proxy.kubeconfig(tmp_path / "conf"))
        proxy.fault("POST pods/mnist-worker-0#1", "kill stored", kill=operator.kill)
        proxy.stream("pods").held = True

Plain HTTP on one side, TLS with a client certificate on the other. Writes are known by what they do and how often that was
done before, `PATCH tfjobs/mnist/status#2`, since the order of those that are sent together means nothing; tries without
effect (dryRun), events and leases are apart. Whatever the test is about, a DELETE that does not name a UID, or a status
that does not name the version it was decided on, is kept in `violations`.

One thread with an event loop serves the connections; what is set from outside is read there.
"""

import asyncio
import collections
import dataclasses
import hashlib
import json
import pathlib
import ssl
import threading
import time
import urllib.parse

KINDS = ("kill before", "kill stored", "kill answered", "lose", "500 before", "500 stored", "409", "429", "410 on watches",
         "stall")
APART = ("events", "leases")
LIMIT = 64 << 20  # bytes of a line or an event


@dataclasses.dataclass
class Write:
    number: int
    label: str
    path: str
    digest: str  # of the body
    status: int | None = None  # what the operator was told; None: nothing, or not yet
    version: str = ""  # of what was stored
    uid: str = ""
    at: float = dataclasses.field(default_factory=time.monotonic)


@dataclasses.dataclass
class Stream:
    """What happens to the watches of one resource."""
    held: bool = False  # nothing gets through, until it does
    doubled: bool = False
    bookmarks: bool = True
    cut_after: int | None = None  # this many events, once, in the middle of the next
    gone_after: int | None = None  # this many events, once: 410
    list_version: str | None = None  # lists are as of this version, until it is None again
    events: int = 0  # let through
    lists: int = 0
    watches: int = 0  # open now


class Refused(Exception):
    """The other side is gone."""


def label_of(method, path, body):
    """(`POST pods/mnist-worker-0`, resource)."""
    where = urllib.parse.urlsplit(path)
    parts = where.path.strip("/").split("/")
    parts = parts[3:] if parts[0] == "apis" else parts[2:]
    if parts[0] == "namespaces" and len(parts) > 2:
        parts = parts[2:]
    if method == "POST" and len(parts) == 1:
        parts.append(body.get("metadata", {}).get("name", ""))
    dry = " dry" if "dryRun" in where.query else ""
    return f"{method} {'/'.join(parts)}{dry}", parts[0]


def failure(status, reason, message):
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason,
            "code": status}


async def read_head(reader):
    """The first line, and the headers in small letters."""
    line = await reader.readline()
    if not line.endswith(b"\n"):
        raise Refused
    headers = {}
    while (header := (await reader.readline()).strip()):
        name, _, value = header.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    return line.decode("latin-1").split(None, 2), headers


async def read_chunk(reader):
    size = int((await reader.readline()).split(b";")[0] or b"0", 16)
    chunk = await reader.readexactly(size)
    await reader.readline()
    return chunk


async def read_body(reader, headers):
    if "chunked" not in headers.get("transfer-encoding", ""):
        return await reader.readexactly(int(headers.get("content-length", 0)))
    parts = []
    while (chunk := await read_chunk(reader)):
        parts.append(chunk)
    return b"".join(parts)


def answer_bytes(status, body, extra=""):
    return f"HTTP/1.1 {status} .\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{extra}\r\n".encode() + body


class FaultProxy:
    def __init__(self, server, pki, user):
        """`user` says whose certificate is shown: a name in `pki`."""
        where = urllib.parse.urlsplit(server)
        self.upstream = (where.hostname, where.port)
        self.tls = ssl.create_default_context(cafile=f"{pki}/ca.crt")
        self.tls.load_cert_chain(f"{pki}/{user}.crt", f"{pki}/{user}.key")
        self.writes, self.apart, self.violations = [], [], []
        self.reads = self.refused = self.open = 0
        self.counts, self.faults = collections.Counter(), {}
        self.streams = collections.defaultdict(Stream)
        self.kept, self.clients = [], set()
        self.on_write = lambda write: None  # before it is sent; for what is made elsewhere
        self.stall_seconds, self.retry_after = 2.0, 1
        self.closed = False

    # -- for tests

    def fault(self, label, kind, kill=None):
        """At this write, once. `kill` ends the operator, and returns when it is gone."""
        assert kind in KINDS, kind
        self.faults[label] = (kind, kill)

    def stream(self, resource):
        return self.streams[resource]

    def write_count(self):
        return len(self.writes)

    def kubeconfig(self, path):
        named = {"clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}],
                 "users": [{"name": "u", "user": {}}], "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}]}
        pathlib.Path(path).write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "x", **named}))
        return path

    def link(self, up):
        """Takes the line down (connections are cut, and refused) or puts it up again."""
        asyncio.run_coroutine_threadsafe(self.listen() if up else self.cut(), self.loop).result(10)

    # -- life

    def __enter__(self):
        self.loop, self.port = asyncio.new_event_loop(), 0
        self.thread = threading.Thread(target=self.loop.run_forever, name="fault-proxy", daemon=True)
        self.thread.start()
        self.link(True)
        return self

    def __exit__(self, *_):
        self.closed = True
        self.link(False)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.loop.close()

    async def listen(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", self.port, limit=LIMIT)
        self.port = self.server.sockets[0].getsockname()[1]

    async def cut(self):
        self.server.close()
        tasks = set(self.clients)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=5)
        for _, writer in self.kept:
            writer.close()
        self.kept.clear()

    # -- connections

    async def serve(self, reader, writer):
        task = asyncio.current_task()
        self.clients.add(task)
        try:
            while await self.exchange(reader, writer):
                pass
        except (Refused, OSError, EOFError, ValueError, asyncio.CancelledError):
            pass  # what has gone wrong for the operator is for the operator to mend
        finally:
            self.clients.discard(task)
            writer.transport.abort()

    async def exchange(self, reader, writer):
        (method, path, _), headers = await read_head(reader)
        body = await read_body(reader, headers)
        if method == "GET" and "watch=1" in path:
            await self.watch(reader, writer, path)
            return False
        if method == "GET":
            self.reads += 1
            status, out, extra = await self.forward("GET", self.as_of(path), headers, body)
            writer.write(answer_bytes(status, out, extra))
            await writer.drain()
            return True
        return await self.write(writer, method, path, headers, body)

    async def connect(self):
        return await asyncio.open_connection(*self.upstream, ssl=self.tls, limit=LIMIT)

    async def forward(self, method, path, headers, body):
        """(status, body, more headers) from the API server."""
        kind = f"Content-Type: {headers['content-type']}\r\n" if body else ""
        request = (f"{method} {path} HTTP/1.1\r\nHost: {self.upstream[0]}\r\nAccept: application/json\r\n{kind}"
                   f"User-Agent: {headers.get('user-agent', '')}\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body
        while True:
            was_kept = bool(self.kept)
            try:
                reader, writer = self.kept.pop() if was_kept else await self.connect()
                writer.write(request)
                (_, status, _), answered = await read_head(reader)
                break
            except (Refused, OSError):
                if not was_kept:
                    self.refused += 1
                    raise
        out = await read_body(reader, answered)
        self.kept.append((reader, writer))
        extra = f"Retry-After: {answered['retry-after']}\r\n" if "retry-after" in answered else ""
        return int(status), out, extra

    # -- writes

    async def write(self, writer, method, path, headers, body):
        value = json.loads(body) if body else {}
        label, resource = label_of(method, path, value)
        self.counts[label] += 1
        apart = resource in APART or label.endswith(" dry")
        kept = self.apart if apart else self.writes
        write = Write(len(kept) + 1, f"{label}#{self.counts[label]}", path, hashlib.sha256(body).hexdigest()[:12])
        if not apart:
            self.check(method, label, value)
            self.on_write(write)
        kept.append(write)
        kind, kill = self.faults.pop(write.label, (None, None))
        self.open += 1
        try:
            return await self.carry_out(writer, write, kind, kill, (method, path, headers, body))
        finally:
            self.open -= 1

    async def carry_out(self, writer, write, kind, kill, request):
        if kind == "kill before":
            kill()
            return False
        if kind == "stall":
            await asyncio.sleep(self.stall_seconds)
        refusal = {"500 before": failure(500, "InternalError", "made by the test"),
                   "409": failure(409, "AlreadyExists" if request[0] == "POST" else "Conflict", "made by the test"),
                   "429": failure(429, "TooManyRequests", "made by the test")}.get(kind)
        if refusal:
            status, out, extra = refusal["code"], json.dumps(refusal).encode(), ""
            extra = f"Retry-After: {self.retry_after}\r\n" if status == 429 else ""
        else:
            status, out, extra = await self.forward(*request)
            if status < 300:
                stored = json.loads(out)
                write.version = stored.get("metadata", {}).get("resourceVersion", "")
                write.uid = stored.get("metadata", {}).get("uid") or stored.get("details", {}).get("uid", "")
        if kind == "500 stored":
            status, out = 500, json.dumps(failure(500, "InternalError", "made by the test")).encode()
        if kind == "kill stored":
            kill()
            return False
        if kind == "lose":
            return False
        write.status = status
        if kind == "410 on watches":
            for stream in self.streams.values():
                stream.gone_after = 0
        writer.write(answer_bytes(status, out, extra))
        await writer.drain()
        if kind == "kill answered":
            await asyncio.sleep(0.005)  # so that it has read the answer
            kill()
            return False
        return True

    def check(self, method, label, value):
        if method == "DELETE" and not value.get("preconditions", {}).get("uid"):
            self.violations.append(f"{label} without a UID")
        if label.endswith("/status") and not value.get("metadata", {}).get("resourceVersion"):
            self.violations.append(f"{label} without a resourceVersion")

    # -- lists and watches

    def as_of(self, path):
        where = urllib.parse.urlsplit(path)
        if "limit=" not in where.query:
            return path
        stream = self.streams[where.path.rsplit("/", 1)[1]]
        stream.lists += 1
        if stream.list_version is None or "continue=" in where.query:
            return path
        return f"{path}&resourceVersion={stream.list_version}&resourceVersionMatch=Exact"

    async def watch(self, client, writer, path):
        stream = self.streams[urllib.parse.urlsplit(path).path.rsplit("/", 1)[1]]
        reader, upstream = await self.connect()
        left = asyncio.ensure_future(client.read(1))  # it says nothing more; this ends when it goes
        passing = asyncio.ensure_future(self.pass_on(reader, upstream, writer, path, stream))
        stream.watches += 1
        try:
            await asyncio.wait({left, passing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stream.watches -= 1
            for task in (left, passing):
                task.cancel()
            await asyncio.gather(left, passing, return_exceptions=True)
            upstream.transport.abort()

    async def pass_on(self, reader, upstream, writer, path, stream):
        upstream.write(f"GET {path} HTTP/1.1\r\nHost: {self.upstream[0]}\r\nAccept: application/json\r\n\r\n".encode())
        (_, status, _), headers = await read_head(reader)
        if status != "200":
            writer.write(answer_bytes(int(status), await read_body(reader, headers)))
            return await writer.drain()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        await self.pass_events_on(reader, writer, stream)

    async def pass_events_on(self, reader, writer, stream):
        buffer, waiting = bytearray(), None
        try:
            while True:
                waiting = waiting or asyncio.ensure_future(self.event(reader, buffer))
                if stream.gone_after != 0:
                    await asyncio.wait({waiting}, timeout=0.05)
                while stream.held:
                    await asyncio.sleep(0.01)
                if stream.gone_after is not None and stream.events >= stream.gone_after:
                    stream.gone_after = None
                    error = {"type": "ERROR", "object": failure(410, "Expired", "made by the test")}
                    return await self.send_event(writer, json.dumps(error).encode() + b"\n")
                if not waiting.done():
                    continue
                line, waiting = waiting.result(), None
                if line is None:
                    return None
                if not line:
                    writer.write(b"0\r\n\r\n")
                    return await writer.drain()
                if line.startswith(b'{"type":"BOOKMARK"') and not stream.bookmarks:
                    continue
                if stream.cut_after is not None and stream.events >= stream.cut_after:
                    stream.cut_after = None
                    writer.write(f"{len(line):x}\r\n".encode() + line[:len(line) // 2])
                    return await writer.drain()
                stream.events += 1
                for _ in range(2 if stream.doubled else 1):
                    await self.send_event(writer, line)
        finally:
            if waiting:
                waiting.cancel()

    @staticmethod
    async def send_event(writer, line):
        writer.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        await writer.drain()

    async def event(self, reader, buffer):
        """The next line; empty at the end, nothing if it broke off. A server sends several in a chunk, or one in several."""
        try:
            while b"\n" not in buffer:
                chunk = await read_chunk(reader)
                if not chunk:
                    return b""
                buffer += chunk
        except (OSError, EOFError, ValueError):
            return None
        line, _, rest = bytes(buffer).partition(b"\n")
        buffer[:] = rest
        return line + b"\n"
