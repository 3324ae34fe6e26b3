"""Serving against the bare C API and against a server in Python, side by side: ratios.

    serving.py BUILD PYTHON [SECONDS]
"""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

build, python = pathlib.Path(sys.argv[1]), sys.argv[2]
seconds = sys.argv[3] if len(sys.argv) > 3 else "3"
ROOT = pathlib.Path(__file__).resolve().parents[1]


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def until_up(url):
    for _ in range(600):
        try:
            return urllib.request.urlopen(url, timeout=5).read()
        except OSError:
            time.sleep(0.1)
    sys.exit(f"{url} does not come up")


def load(kind, port, what, clients, rows=1):
    """Requests a second, each of so many pictures."""
    out = subprocess.run([build / "bench/serve_load", kind, "127.0.0.1", str(port), what, str(clients), seconds, str(rows)],
                         capture_output=True, text=True, check=True).stdout.split()
    return {"rate": float(out[0]), "p50": float(out[1]), "p99": float(out[2]), "failed": int(out[3])}


class Running:
    def __init__(self, command, **options):
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, **options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(30)


def show(name, found, base, note=""):
    print(f"  {name:<34} {found['rate']:9.0f}/s  {found['rate'] / base:5.2f}   p50 {found['p50']:6.2f} ms  p99 {found['p99']:6.2f} ms"
          f"{'  FAILED ' + str(found['failed']) if found['failed'] else ''}{note}", flush=True)


def serve(model, *flags):
    port, rest = free_port(), free_port()
    running = Running([build / "trainyard", "serve", model, "--python", python, "--port", str(port), "--rest-port", str(rest),
                       "--name", "conv", "--threads", "1", *flags])
    until_up(f"http://127.0.0.1:{rest}/readyz")
    return running, port, rest


with tempfile.TemporaryDirectory() as place:
    # The network of examples/mnist.py, as it is before any training.
    export = "import sys; sys.path.insert(0, sys.argv[1]); import mnist; mnist.export(mnist.build_model(2), sys.argv[2])"
    model = f"{place}/conv"
    subprocess.run([python, "-c", export, ROOT / "examples", model], check=True, capture_output=True)
    libraries = subprocess.run([python, "-c", "import importlib.util, os; print(os.path.dirname(importlib.util.find_spec('tensorflow').origin))"],
                               capture_output=True, text=True, check=True).stdout.strip()
    running, port, rest = serve(model, "--batch", "1")
    with running:
        text = until_up(f"http://127.0.0.1:{rest}/v1/models/conv/metadata")
        signature = json.loads(text)["metadata"]["signature_def"]["signature_def"]["serving_default"]
        tensors = [signature["inputs"]["image"]["name"], ",".join(each["name"] for each in signature["outputs"].values())]

        def bare(rows, thread="pool"):
            out = subprocess.run([build / "bench/serve_bare", libraries, f"{model}/1", *tensors, str(rows), seconds, thread],
                                 capture_output=True, text=True, check=True, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}).stdout
            return float(out)
        one = bare(1)
        print(f"bare C API, one thread: {one:.0f} runs/s of 1 picture; by the thread that asks, as we do: {bare(1, 'caller'):.0f}")
        path = "/v1/models/conv:predict"
        print("no batching (goals: 0.5 over REST, 0.6 over gRPC, p99 5 ms)")
        for clients in (1, 4, 8):
            show(f"REST, {clients} clients", load("rest", rest, path, clients), one)
            show(f"gRPC, {clients} clients", load("grpc", port, "conv", clients), one)
        ours = load("rest", rest, path, 8)["rate"]
        for rows in (16, 32):
            together = bare(rows)
            print(f"requests of {rows} pictures (goal: 0.8 of the bare C API at {rows}: {together:.0f} runs/s)")
            show("REST, 4 clients", load("rest", rest, path, 4, rows), together)
            show("gRPC, 4 clients", load("grpc", port, "conv", 4, rows), together)
    for rows in (16, 32):
        print(f"requests of 1 picture, put together up to {rows}, beside the bare C API at 1")
        running, port, rest = serve(model, "--batch", str(rows))
        with running:
            show(f"REST, {2 * rows} clients", load("rest", rest, path, 2 * rows), one)
            show(f"gRPC, {2 * rows} clients", load("grpc", port, "conv", 2 * rows), one)
    port = free_port()
    with Running([python, ROOT / "bench/python_server.py", f"{model}/1", str(port)]):
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.1)
        found = load("rest", port, path, 8)
        print(f"a server in Python, 8 clients: {found['rate']:.0f}/s, p99 {found['p99']:.1f} ms; ours without batching: "
              f"{ours / found['rate']:.1f} times that (goal: 5)")
