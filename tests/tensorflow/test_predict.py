"""`trainyard predict`, the client: what it says of a picture is what the server says over REST; with TLS and a token as well."""

import json
import ssl
import struct
import subprocess
import urllib.request
import zlib

import pytest

from serving import Served
from test_serving import models  # noqa: F401
from yard import wait_for


@pytest.fixture(params=("2.15",))
def version(request):
    return request.param


PIXELS = [[(7 * x + 13 * y) % 256 for x in range(28)] for y in range(28)]


def png(path):
    def part(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes(row) for row in PIXELS)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", 28, 28, 8, 0, 0, 0, 0)) +
                     part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b""))
    return path


def test_a_picture_is_asked_about_as_the_seed_does(yard, version, models):
    picture = png(yard.home / "4.png")
    idx = yard.home / "images-idx3-ubyte"
    idx.write_bytes(struct.pack(">IIII", 0x803, 2, 28, 28) + bytes(784) + b"".join(map(bytes, PIXELS)))
    with Served(yard, version, models / "conv", "--name", "test") as served:
        host, port = served.grpc.split(":")
        flags = ("predict", "--host", host, "--port", port, "--model", "test", "--signature_name", "predict")
        said = yard.run(*flags, "--image", picture)
        assert 'key: "classes"' in said and "int64_val: " in said and "time elapsed: " in said
        want = served.predict("test", {"instances": [[[[x] for x in row] for row in PIXELS]]})["predictions"][0]
        for name in ((picture,), (idx, "--index", 1)):
            answer = json.loads(yard.run(*flags, "--json", "--image", *name))
            assert answer["version"] == 1 and answer["outputs"]["classes"] == [want["classes"]]
            assert answer["outputs"]["probabilities"][0] == pytest.approx(want["probabilities"], rel=1e-4, abs=1e-6)
        assert yard.refused(*flags[:-1], "none", "--image", picture) == "the model has no signature 'none'"
        assert "no model 'nobody' here" in yard.refused(*flags, "--image", picture, "--model", "nobody")


def test_with_tls_and_a_token(yard, version, models):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj",
                    "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"], cwd=yard.home, check=True, capture_output=True)
    (yard.home / "token").write_text("s3cret")
    picture = png(yard.home / "4.png")
    with Served(yard, version, models / "conv", "--certificate", "cert.pem", "--key", "key.pem", "--token-file", "token", ready=False) as served:
        trust = ssl.create_default_context(cafile=yard.home / "cert.pem")

        def fetch(path, **headers):
            request = urllib.request.Request(f"https://{served.rest}{path}", headers=headers)
            with urllib.request.urlopen(request, context=trust, timeout=20) as answer:
                return answer.read()

        def ready():
            try:
                return fetch("/readyz") == b"ready\n"
            except urllib.error.HTTPError:
                return False
        wait_for(ready, "ready", 60)
        assert b"AVAILABLE" in fetch("/v1/models/conv", Authorization="Bearer s3cret")
        host, port = served.grpc.split(":")
        flags = ("predict", "--host", host, "--port", port, "--model", "conv", "--image", picture)
        assert "classes" in yard.run(*flags, "--ca-file", "cert.pem", "--token-file", "token")
        assert "a token is needed" in yard.refused(*flags, "--ca-file", "cert.pem")
        yard.run(*flags, status=69)  # without TLS
