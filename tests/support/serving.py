"""A server under test: `trainyard serve`, asked over REST with nothing but the standard library."""

import http.client
import json
import os
import pathlib
import signal
import subprocess

from yard import proc_file, wait_for

PYTHONS = {"2.15": os.environ.get("TRAINYARD_TEST_PYTHON_215"), "2.21": os.environ.get("TRAINYARD_TEST_PYTHON_221")}


class Served:
    """Stops when the block ends; must then have ended well."""

    def __init__(self, yard, version, *words, ready=True):
        self.yard = yard
        self.out = yard.home / "serve.out"
        self.file = self.out.open("w")
        self.process = yard.start("serve", "--python", PYTHONS[version], "--port", 0, "--rest-port", 0, "--json", *words,
                                  stdout=self.file, stderr=self.file)
        where = wait_for(self.listening, "listening", 60)
        self.grpc = where["grpc"]
        self.rest = where["rest"].removeprefix("http://").removeprefix("https://")
        if ready:
            wait_for(lambda: self.get("/readyz")[0] == 200, "ready", 120)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(150)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        assert kind or self.process.returncode == 0, self.text()

    def text(self):
        return self.out.read_text()

    def listening(self):
        assert self.process.poll() is None, self.text()
        for line in self.text().splitlines():
            if line.startswith('{"listening"'):
                return json.loads(line)["listening"]
        return None

    def ask(self, method, path, body=None, headers=None):
        """(status, body), on a connection of its own."""
        connection = http.client.HTTPConnection(self.rest, timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def get(self, path, **headers):
        return self.ask("GET", path, headers=headers)

    def post(self, path, body, headers=None):
        """(status, parsed body)."""
        status, text = self.ask("POST", path, body if isinstance(body, (str, bytes)) else json.dumps(body), headers)
        return status, json.loads(text)

    def predict(self, model, body, at=""):
        status, answer = self.post(f"/v1/models/{model}{at}:predict", body)
        assert status == 200, answer
        return answer

    def versions(self, model):
        """{version: state}"""
        status, text = self.get(f"/v1/models/{model}")
        assert status == 200, text
        return {int(each["version"]): each["state"] for each in json.loads(text)["model_version_status"]}

    def runtimes(self):
        """Pids of the runtime processes."""
        threads = pathlib.Path(f"/proc/{self.process.pid}/task").glob("*")
        pids = {int(pid) for thread in threads for pid in proc_file(self.process.pid, f"task/{thread.name}/children").split()}
        return sorted(pid for pid in pids if b"trainyard-runtime" in proc_file(pid, "cmdline"))

    def resident(self):
        """Bytes of memory of the server itself."""
        return int(pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * 4096
