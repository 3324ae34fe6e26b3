"""Tells the same story to the simulator's API server and to a real one, and compares what they answered.

A story is a function of a `Teller`. What it asks for may rest on earlier answers (a uid, a version), so it is told anew to
each server. What differs by nature is levelled before the comparison: uids, versions and generated names become "the
first that was seen", "the second" and so on, so that "the same as before" still shows; times are times.
"""

import json
import pathlib
import re
import ssl
import subprocess
import threading
import time
import urllib.parse
import urllib.request

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


class Model:
    """The simulator's, a program that reads commands and prints answers."""

    def __init__(self, binary):
        self.process = subprocess.Popen([binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def close(self):
        self.process.stdin.close()
        self.process.wait(150)

    def command(self, **command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def request(self, method, path, body, content_type):
        answer = self.command(method=method, path=path, contentType=content_type, **({} if body is None else {"body": body}))
        return answer["status"], answer["body"]

    def namespace(self, name):
        status, _ = self.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}}, "application/json")
        assert status == 201

    def watch(self, name, path):
        answer = self.command(watch=name, path=path)
        return answer["status"], answer.get("body")

    def events(self, name, last):
        return self.command(events=name)["events"]

    def settle(self):
        self.command(settle=60)

    def compact(self):
        self.command(compact=True)

    def quota(self, namespace, pods):
        self.command(quota=pods, namespace=namespace)


class Real:
    """A running API server: `api` is a lab.api.Api, `etcd` the address of its store, `restart` restarts it."""

    def __init__(self, api, etcd, pki, restart):
        self.api, self.etcd, self.pki, self.restart = api, etcd, pki, restart
        self.watches = {}

    def close(self):
        pass

    def request(self, method, path, body, content_type):
        data = body if body is None or isinstance(body, str) else json.dumps(body)
        response = self.api.exchange(method, path, data, {"Content-Type": content_type, "Accept": "application/json"})
        text = response.read().decode()
        return response.status, json.loads(text) if "json" in response.headers.get("Content-Type", "") else text

    def namespace(self, name):
        self.api.post("/api/v1/namespaces", {"metadata": {"name": name}})
        self.wait(lambda: self.request("GET", f"/api/v1/namespaces/{name}/serviceaccounts/default", None, "")[0] == 200)

    @staticmethod
    def wait(holds, seconds=30):
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, "not in time"
            time.sleep(0.02)

    def watch(self, name, path):
        connection = self.api.connect(60)
        connection.request("GET", path, headers={"Accept": "application/json"})
        response = connection.getresponse()
        if response.status != 200:
            return response.status, json.loads(response.read())
        events = self.watches[name] = []

        def read():
            for line in response:
                events.append(json.loads(line))
            events.append({"type": "END"})
        threading.Thread(target=read, daemon=True).start()
        return 200, None

    def events(self, name, last):
        events = self.watches[name]
        self.wait(lambda: any(e["type"] in ("ERROR", "END") or last(e) for e in list(events)))
        told = [e for e in events if e["type"] != "END"]
        del events[:]
        return told

    def settle(self):
        pass

    def compact(self):
        tls = ssl.create_default_context(cafile=f"{self.pki}/ca.crt")
        tls.load_cert_chain(f"{self.pki}/etcd.crt", f"{self.pki}/etcd.key")
        def ask(path, body):
            request = urllib.request.Request(self.etcd + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
            return json.load(urllib.request.urlopen(request, context=tls, timeout=10))
        revision = ask("/v3/kv/range", {"key": "YQ=="})["header"]["revision"]
        ask("/v3/kv/compaction", {"revision": revision, "physical": True})
        self.restart()  # it keeps some history in memory
        self.wait(lambda: self.watch("jobs again", "/apis/kubeflow.org/v1/tfjobs?watch=true&timeoutSeconds=1")[0] == 200)

    def quota(self, namespace, pods):
        path = f"/api/v1/namespaces/{namespace}/resourcequotas"
        self.api.post(path, {"metadata": {"name": "quota"}, "spec": {"hard": {"pods": str(pods)}}})
        self.wait(lambda: self.api.get(path + "/quota").get("status", {}).get("used"))


class Teller:
    """Asks one server, and keeps the levelled answers."""

    def __init__(self, server, namespace):
        self.server, self.ns = server, namespace
        self.told, self.seen = [], {}
        self.requests = 0
        server.namespace(namespace)

    # -- what a story is made of

    def at(self, resource, name="", sub="", **query):
        groups = {"tfjobs": "apis/kubeflow.org/v1", "leases": "apis/coordination.k8s.io/v1"}
        path = "/".join(filter(None, ["", groups.get(resource, "api/v1"), "namespaces", self.ns, resource, name, sub]))
        path = "/" + path.lstrip("/")
        return path + ("?" + urllib.parse.urlencode(query) if query else "")

    def ask(self, method, path, body=None, content_type="application/json", words=True):
        """`words`: whether the message is compared too."""
        self.requests += 1
        status, answer = self.server.request(method, path, body, content_type)
        if not words:
            answer = {**answer, "message": ""}
        self.told.append((f"{method} {path} {'' if body is None else json.dumps(body)}", status, self.level(answer)))
        return answer

    def get(self, path, **options):
        return self.ask("GET", path, **options)

    def post(self, path, body):
        return self.ask("POST", path, body)

    def put(self, path, body):
        return self.ask("PUT", path, body)

    def delete(self, path, body=None):
        return self.ask("DELETE", path, body)

    def merge(self, path, body):
        return self.ask("PATCH", path, body, MERGE)

    def strategic(self, path, body):
        return self.ask("PATCH", path, body, STRATEGIC)

    def watch(self, name, path):
        self.requests += 1
        status, answer = self.server.watch(name, path + ("&" if "?" in path else "?") + "watch=true")
        self.told.append((f"WATCH {path}", status, self.level(answer)))

    def events(self, name, last=None):
        """What the watch has told; `last`: the name of the object whose appearance ends it."""
        events = self.server.events(name, lambda e: e["object"].get("metadata", {}).get("name") == last)
        self.told.append((f"events of {name}", 200, self.level(events)))
        return events

    def until(self, path, status=404, holds=lambda answer: True):
        """Others act: waits for what they do."""
        self.server.settle()
        # The garbage collector learns of a new kind each 30 s.
        deadline = time.monotonic() + 90
        while True:
            got, answer = self.server.request("GET", path, None, "")
            if got == status and holds(answer):
                break
            assert time.monotonic() < deadline, f"{path} stays at {got} {answer}"
            time.sleep(0.05)
        self.told.append((f"until {path}", got, self.level(answer)))
        return answer

    # -- levelling

    def level(self, value, key="", inside=""):
        if isinstance(value, dict):
            if value.get("kind", "").endswith("List") and "items" in value and inside == "":
                value = {**value, "metadata": {**value["metadata"], "resourceVersion": "of a list"}}
            if "causes" in value:  # the real one checks some things several times, and says so each time
                value = {**value, "causes": [c for i, c in enumerate(value["causes"]) if c not in value["causes"][:i]]}
            return {k: self.level(v, k, key) for k, v in value.items() if k not in ("managedFields",)}
        if isinstance(value, list):
            return [self.level(v, key, inside) for v in value]
        if not isinstance(value, str):
            return value
        if key == "resourceVersion" and value.isdigit():
            return self.nth("version", value)
        if key == "continue":
            return "token" if value else ""
        if key == "clusterIP" and value != "None" or key == "clusterIPs" and value != "None":
            return "address"
        value = UID.sub(lambda m: self.nth("uid", m.group()), value)
        value = TIME.sub("TIME", value)
        value = value.replace(self.ns, "NS")
        value = re.sub(r"(gen-)[a-z0-9]{5}\b", r"\1xxxxx", value)
        value = re.sub(r"(error decoding patch|json parse error|cannot be handled as a \w+)\b.*", r"\1", value)
        value = re.sub(r"(resource version: |current: |Version in \w+ \()\d+( \(\d+\))?", r"\1N", value)
        return value

    def nth(self, what, value):
        seen = self.seen.setdefault(what, {})
        return seen.setdefault(value, f"{what}-{len(seen) + 1}")


def differences(model, real):
    """Where two tellings of a story differ, in words."""
    out = []
    for mine, theirs in zip(model.told, real.told):
        ask, status, answer = theirs
        if (mine[1], mine[2]) == (status, answer):
            continue
        out.append(f"{ask[:300]}\n    model {mine[1]} real {status}" + "".join(
            f"\n    {path or '.'}: model {a!r}\n    {' ' * len(path or '.')}   real {b!r}" for path, a, b in apart(mine[2], answer)))
    assert len(model.told) == len(real.told)
    return out


MISSING = "(missing)"


def apart(a, b, path=""):
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted({*a, *b}):
            yield from apart(a.get(key, MISSING), b.get(key, MISSING), f"{path}.{key}")
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b)):
            yield from apart(x, y, f"{path}[{i}]")
    elif a != b:
        yield path, a, b


ROOT = pathlib.Path(__file__).resolve().parents[2]
