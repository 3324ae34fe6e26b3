"""`trainyard serve` while models change, files go and runtimes die; and asked by people who mean no good."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

from conftest import SOAK
from serving import PYTHONS, Served
from test_serving import MODELS, config, models  # noqa: F401
from yard import ROOT, wait_for

VERSIONS = ("2.15", "2.21") if SOAK else ("2.15",)


@pytest.fixture(params=VERSIONS)
def version(request):
    return request.param


@contextlib.contextmanager
def load(yard, version, served, model="dense"):
    """Asks without a pause while the block runs; then `found` has what came back."""
    stop = yard.home / "stop"
    process = subprocess.Popen([PYTHONS[version], ROOT / "tests/scripts/load_serving.py", served.grpc, served.rest, model, stop],
                               stdout=subprocess.PIPE, text=True, env=yard.env)
    found = {}
    try:
        assert process.stdout.readline() == "begun\n"
        yield found
    finally:
        stop.touch()
        found.update(json.loads(process.communicate(timeout=120)[0]))


def slowly(source, target):
    """Copies a version as a slow network would: half a file at a time, in no good order, each step seen by the server."""
    target.mkdir()
    for path in sorted(source.rglob("*"), key=lambda path: path.name != "saved_model.pb"):
        if path.is_dir():
            continue
        to = target / path.relative_to(source)
        to.parent.mkdir(exist_ok=True)
        content = path.read_bytes()
        with to.open("wb") as file:
            for half in (content[:len(content) // 2], content[len(content) // 2:]):
                file.write(half)
                file.flush()
                time.sleep(0.05)  # the time of the slow network


def test_no_request_fails_while_versions_change(yard, version, models):
    switches, least = (100, 100_000) if SOAK else (5, 2000)
    base = yard.home / "dense"
    shutil.copytree(models / "dense", base)
    with Served(yard, version, base, "--poll", "100ms") as served:
        with load(yard, version, served) as found:
            for number in range(2, 2 + switches):
                slowly(base / str(number - 1), base / str(number))
                wait_for(lambda: served.versions("dense").get(number) == "AVAILABLE", f"version {number}", 60)
                wait_for(lambda: served.versions("dense")[number - 1] == "END", f"version {number - 1} gone", 60)
                shutil.rmtree(base / str(number - 1))

            def enough():
                text = served.get("/metrics")[1].decode()
                line = next(line for line in text.splitlines() if 'model="dense"' in line and 'result="ok"' in line)
                return int(line.split()[-1]) >= least
            wait_for(enough, "enough requests", 600)
        assert found["failed"] == 0 and not found["falls"], found
        assert found["requests"] >= least, found
        assert len(served.runtimes()) == 1
        print(f"{found['requests']} requests across {switches} switches, 0 failed; longest gap {found['longest_gap']:.3f} s")


def test_a_runtime_that_is_killed_comes_back_and_costs_one_batch(yard, version, models):
    base = yard.home / "dense"
    shutil.copytree(models / "dense", base)
    with Served(yard, version, base) as served:
        server = served.process.pid
        with load(yard, version, served) as found:
            took = []
            for _ in range(20 if SOAK else 2):
                pid, = served.runtimes()
                begun = time.monotonic()
                yard.kill(pid)
                wait_for(lambda: served.runtimes() not in ([], [pid]) and served.get("/readyz/dense")[0] == 200, "back", 30)
                took.append(time.monotonic() - begun)
                shutil.rmtree(base, ignore_errors=True)  # from here on only the server has its files
        assert served.process.pid == server and served.process.poll() is None
        # Of four clients at most four were in the batch that died.
        assert found["failed"] <= 4 * len(took), found
        served.predict("dense", {"instances": [[1, 2, 3, 4]]})
        print(f"killed to back: {max(took):.2f} s at most, {found['failed']} of {found['requests']} requests failed")


def test_what_happens_to_the_directory_does_not_reach_the_version_that_is_served(yard, version, models):
    base = yard.home / "dense"
    shutil.copytree(models / "dense", base)
    with Served(yard, version, base, "--poll", "50ms") as served:
        answer = served.predict("dense", {"instances": [[1, 2, 3, 4]]})

        def goes_on():
            assert served.predict("dense", {"instances": [[1, 2, 3, 4]]}) == answer
        # A version that is not whole: its graph is cut, then its variables are.
        shutil.copytree(base / "1", base / "2")
        os.truncate(base / "2/saved_model.pb", 100)
        wait_for(lambda: served.versions("dense").get(2) == "END", "2 is refused", 60)
        goes_on()
        shutil.copy(base / "1/saved_model.pb", base / "2/saved_model.pb")
        os.truncate(base / "2/variables/variables.data-00000-of-00001", 10)
        wait_for(lambda: "variables" in served.text() or "2 does not load: " in served.text(), "2 is refused again", 60)
        wait_for(lambda: served.versions("dense").get(2) == "END", "2 is refused again", 60)
        goes_on()
        # Made whole, it is served.
        shutil.copy(base / "1/variables/variables.data-00000-of-00001", base / "2/variables/variables.data-00000-of-00001")
        wait_for(lambda: served.versions("dense").get(2) == "AVAILABLE", "2 is served", 60)
        # The one that is served: replaced, then deleted, then the base path with it.
        shutil.rmtree(base / "1")
        shutil.rmtree(base / "2")
        shutil.copytree(models / "conv/1", base / "2")
        goes_on()
        shutil.rmtree(base)
        for _ in range(5):
            goes_on()
        assert served.get("/readyz")[0] == 200


def bodies():
    """Predict bodies that are wrong, for a model that takes x: float (-1,4)."""
    good = '{"instances": [[1, 2, 3, 4]]}'
    yield from (good[:size] for size in range(len(good)))
    broken = (good[:at] + what + good[at + 1:] for at in range(0, len(good), 2) for what in ("\x00", "}", '"', "\\"))
    yield from (body for body in broken if body != good)
    for value in ("null", "true", '"a"', "{}", "[]", "[[]]", "[[1,2,3]]", "[[1,2,3,4,5]]", "[1,2,3,4]", "[[[1,2,3,4]]]", "[[1,2,3,{}]]",
                  '[[1,2,3,"4"]]', "[[1,2,3,4],[1,2,3]]", "[[1,2,3,1e999]]", "[[1,2,3,0x4]]", "[[1,2,3,04]]", '[{"y": [1,2,3,4]}]',
                  '[{"x": [1,2,3,4], "y": 1}]', '[{"x": {"b64": "AAAA"}}]', "[" * 200 + "]" * 200, "[" * 100_000):
        yield '{"instances": %s}' % value
        yield '{"inputs": %s}' % value.replace("[[1,2,3,4],", "[[1,2,3],")
    yield '{"instances": [[1,2,3,4]], "signature_name": "none"}'
    yield '{"instances": [[1,2,3,4]], "signature_name": 1}'
    yield '{"instances": [[1,2,3,4]], "inputs": [[1,2,3,4]]}'


def raw(served, data):
    """What comes back to bytes of any kind."""
    host, port = served.rest.split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        out = b""
        while part := connection.recv(65536):
            out += part
    return out


def test_malformed_requests_are_refused_one_by_one(yard, version, models):
    with Served(yard, version, "--config", config(models, ("dense", "text", "many")), "--max-request", "1Mi") as served:
        def round_of_them():
            count = 0
            for body in bodies():
                status, answer = served.post("/v1/models/dense:predict", body.encode("latin-1"))
                assert status == 400 and answer["error"], (body[:80], status, answer)
                count += 1
            for path, status in {"/v1/models/dense:guess": 404, "/v1/models/none:predict": 404, "/v1/models/dense/versions/9:predict": 404,
                                 "/v1/models/dense/versions/x:predict": 400, "/v1/models/dense/labels/x:predict": 400, "/": 404,
                                 "/v1/models/:predict": 404, "/v1/models/%2e%2e/%2e%2e/etc/passwd": 404, "/v1/models/dense:classify": 400,
                                 "/v1/models/dense:regress": 400, "/v1/models/../dense:predict": 404}.items():
                assert served.ask("POST", path, "{}" if ":predict" not in path else '{"instances": [[1,2,3,4]]}')[0] == status, path
                count += 1
            for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
                assert served.ask(method, "/v1/models/dense:predict")[0] == 405
                count += 1
            assert served.ask("POST", "/v1/models/dense:predict", b"x" * (2 << 20))[0] == 413
            for data in (b"\0" * 100, b"GET / HTTP/9.9\r\n\r\n", b"POST /v1/models/dense:predict HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
                         b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"):
                assert b" 200 " not in raw(served, data).split(b"\r\n")[0]
                count += 1
            return count
        count = round_of_them()
        said = subprocess.run([PYTHONS[version], ROOT / "tests/scripts/malformed_serving.py", served.grpc], capture_output=True, text=True)
        assert said.returncode == 0, said.stderr + said.stdout
        count += int(said.stdout.split()[0])
        before, runtimes = served.resident(), served.runtimes()
        for _ in range(20 if SOAK else 2):
            round_of_them()
        assert served.resident() < before + (4 << 20)
        assert served.runtimes() == runtimes
        assert count >= 200
        served.predict("dense", {"instances": [[1, 2, 3, 4]]})
        print(f"{count} kinds of malformed requests, each refused")


def test_too_many_at_once_are_told_to_come_back(yard, version, models):
    with Served(yard, version, models / "dense", "--queue", 1, "--batch", 1) as served:
        runtime, = served.runtimes()
        yard.kill(runtime, sig=signal.SIGSTOP)  # so that what is asked now waits
        statuses = []
        threads = [threading.Thread(target=lambda: statuses.append(served.post("/v1/models/dense:predict", {"instances": [[1, 2, 3, 4]]})[0]))
                   for _ in range(8)]
        for thread in threads:
            thread.start()
        wait_for(lambda: statuses.count(429) >= 5, "refused", 30)  # one or two are with the runtime, one waits
        yard.kill(runtime, sig=signal.SIGCONT)
        for thread in threads:
            thread.join()
        assert set(statuses) == {200, 429}, statuses


def test_versions_labels_and_models_by_config_file(yard, version, models):
    base = yard.home / "dense"
    for number in (1, 2, 3):
        shutil.copytree(models / "dense/1", base / str(number))
    file = yard.home / "models.config"
    file.write_text(f'model_config_list {{ config {{ name: "d" base_path: "{base}" model_version_policy {{ specific {{ versions: 1 '
                    f'versions: 2 }} }} version_labels {{ key: "stable" value: 1 }} }} }}')
    with Served(yard, version, "--config", file, "--poll", "100ms") as served:
        assert set(served.versions("d")) == {1, 2}
        body = {"instances": [[1, 2, 3, 4]]}
        assert served.predict("d", body) == served.predict("d", body, "/versions/1") == served.predict("d", body, "/labels/stable")
        status, text = served.get("/v1/models/d/labels/stable/metadata")
        assert (status, json.loads(text)["model_spec"]["version"]) == (200, "1")
        assert served.post("/v1/models/d/versions/3:predict", body)[0] == 404
        file.write_text(f'model_config_list {{ config {{ name: "e" base_path: "{base}" }} }}')
        wait_for(lambda: served.get("/readyz/e")[0] == 200, "e is served", 60)
        wait_for(lambda: served.get("/readyz/d")[0] == 404, "d is gone", 60)
        assert served.versions("e") == {3: "AVAILABLE"}
        file.write_text("nonsense {")
        wait_for(lambda: "line 1" in served.text(), "told", 30)
        served.predict("e", body)


def test_a_token_is_asked_for_everywhere_but_at_the_probes(yard, version, models):
    secret = yard.home / "token"
    secret.write_text("s3cret\n")
    with Served(yard, version, models / "dense", "--token-file", secret) as served:
        body = {"instances": [[1, 2, 3, 4]]}
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            for method, path in (("GET", "/v1/models/dense"), ("GET", "/metrics"), ("POST", "/v1/models/dense:predict"),
                                 ("GET", "/v1/models/dense/metadata"), ("GET", "/monitoring/prometheus/metrics")):
                assert served.ask(method, path, "{}", headers)[0] == 401, path
        assert served.get("/healthz")[0] == served.get("/readyz")[0] == 200
        status, _ = served.post("/v1/models/dense:predict", body, {"Authorization": "Bearer s3cret"})
        assert status == 200
        assert "s3cret" not in served.text()


def closing(served, model):
    """Asks over REST, and closes before there is an answer."""
    host, port = served.rest.split(":")
    body = json.dumps({"instances": [[1]]})
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(f"POST /v1/models/{model}:predict HTTP/1.1\r\nHost: {served.rest}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())


def test_requests_of_clients_that_are_gone_do_not_delay_others(yard, version, models):
    with Served(yard, version, models / "slow") as served:
        for _ in range(20):
            closing(served, "slow")
        begun = time.monotonic()
        served.predict("slow", {"instances": [[1]]})
        took = time.monotonic() - begun
        assert took < 10, took  # and not the 20 s of 20 runs
        counted = wait_for(lambda: 'status="CANCELLED"' in served.get("/metrics")[1].decode(), "counted", 30)
        assert counted


def test_a_rest_request_ends_at_its_timeout(yard, version, models):
    with Served(yard, version, models / "dense", "--rest-timeout", "1s") as served:
        runtime, = served.runtimes()
        yard.kill(runtime, sig=signal.SIGSTOP)
        status, answer = served.post("/v1/models/dense:predict", {"instances": [[1, 2, 3, 4]]})
        assert status == 504 and answer["error"], answer
        yard.kill(runtime, sig=signal.SIGCONT)
        served.predict("dense", {"instances": [[1, 2, 3, 4]]})


def test_a_version_that_is_overwritten_comes_back_as_what_is_there_now(yard, version, models):
    base = yard.home / "dense"
    shutil.copytree(models / "dense", base)
    with Served(yard, version, base, "--poll", "100ms") as served:
        for path in (models / "many/1").rglob("*"):  # into the same files, as cp does
            if path.is_file() and (base / "1" / path.relative_to(models / "many/1")).exists():
                (base / "1" / path.relative_to(models / "many/1")).write_bytes(path.read_bytes())
        served.predict("dense", {"instances": [[1, 2, 3, 4]]})
        pid, = served.runtimes()
        yard.kill(pid)
        wait_for(lambda: served.post("/v1/models/dense:predict", {"signature_name": "times", "instances": [2]})[0] == 200, "back", 60)
        assert "overwritten" in served.text()


def test_a_server_that_is_killed_leaves_no_files(yard, version, models):
    temporary = yard.home / "links"
    temporary.mkdir()
    yard.env["TMPDIR"] = str(temporary)
    served = Served(yard, version, models / "dense")
    assert list(temporary.glob("trainyard-model-*"))
    yard.kill(served.process.pid)
    served.process.wait(30)
    wait_for(lambda: not list(temporary.iterdir()), "nothing is left", 30)
