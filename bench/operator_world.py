"""An API server with one operator, and who watches the two: what is measured by operators.py is seen here.

Times are seconds of time.perf_counter(), as a watch brings them. Writes are counted in the API server's audit log, by the
user that the operator is. Nothing is asked of the operator itself, so all are measured alike.
"""

import collections
import concurrent.futures
import contextlib
import dataclasses
import http.client
import json
import os
import pathlib
import ssl
import threading
import time

from cluster import Cluster, holds
from yard import wait_for

# As a deployment would run it: its requests are authorized, and queued, like those of any service account.
USER = "system:serviceaccount:kubeflow:operator"
WRITES = {"create", "update", "patch", "delete", "deletecollection"}
KINDS = {"pods": "/api/v1/namespaces/{}/pods", "services": "/api/v1/namespaces/{}/services",
         "tfjobs": "/apis/kubeflow.org/v1/namespaces/{}/tfjobs"}
JOB_LABEL = "training.kubeflow.org/job-name"
QUIET = 2  # seconds without a write, after which nothing more will come
PATIENCE = 600  # seconds, for a watch that says nothing


@dataclasses.dataclass
class Seen:
    """One object: of which job, and when it was first seen in each of its phases; "made" is the first of all."""
    name: str
    job: str
    at: dict


def phase(thing):
    if thing.get("kind") == "TFJob":
        return next((condition for condition in ("Succeeded", "Running") if holds(thing, condition)), "made")
    return thing.get("status", {}).get("phase", "made")


class Witness:
    """Follows what there is in a namespace, kind by kind. Reading is by `with changed`."""

    def __init__(self, api, namespace):
        self.changed, self.seen = threading.Condition(), {kind: {} for kind in KINDS}  # by kind and UID
        self.reached = collections.Counter()  # how many were seen, by kind and phase
        for kind, path in KINDS.items():
            path = path.format(namespace)
            version = api.get(f"{path}?limit=1")["metadata"]["resourceVersion"]
            threading.Thread(target=self.follow, args=(api, kind, path, version), daemon=True).start()

    def follow(self, api, kind, path, version):
        """Until the cluster goes down. A watch that the server ends, as it does when we are slow, goes on where it ended."""
        with contextlib.suppress(ConnectionRefusedError):
            while True:
                with contextlib.suppress(ConnectionResetError, http.client.HTTPException, ssl.SSLError):
                    for event in api.watch(f"{path}?resourceVersion={version}", PATIENCE):
                        now, thing = time.perf_counter(), event["object"]
                        assert event["type"] != "ERROR", f"{path}: {thing}"
                        version = thing["metadata"]["resourceVersion"]
                        with self.changed:
                            self.take(kind, thing, now)
                            self.changed.notify_all()

    def take(self, kind, thing, now):
        meta = thing["metadata"]
        job = meta["name"] if kind == "tfjobs" else meta.get("labels", {}).get(JOB_LABEL)
        seen = self.seen[kind].setdefault(meta["uid"], Seen(meta["name"], job, {}))
        for one in {"made", phase(thing)} - seen.at.keys():
            seen.at[one] = now
            self.reached[kind, one] += 1

    def wait(self, predicate, what, seconds):
        with self.changed:
            if not self.changed.wait_for(predicate, seconds):
                raise TimeoutError(f"not within {seconds} s: {what}")

    def of(self, kind):
        return list(self.seen[kind].values())


class Audit:
    """The operator's writes, as the audit log grows."""

    def __init__(self, path):
        self.path, self.offset, self.writes = path, 0, []

    def read(self):
        """Takes in what is new and returns all."""
        with open(self.path, "rb") as log:
            log.seek(self.offset)
            for line in log:
                if not line.endswith(b"\n"):
                    break  # half written
                self.offset += len(line)
                if USER.encode() in line and (one := json.loads(line))["verb"] in WRITES and one["user"]["username"] == USER:
                    self.writes.append(one)
        return self.writes


class World:
    def __init__(self, cluster, pid):
        self.cluster, self.api, self.pid = cluster, cluster.api, pid
        self.audit = Audit(cluster.audit_log)

    def namespace(self, name):
        """Ready to have pods, which need its service account."""
        self.api.post("/api/v1/namespaces", {"metadata": {"name": name}})
        self.cluster.wait(lambda: self.api.get(f"/api/v1/namespaces/{name}/serviceaccounts/default"), "the service account")
        return name

    def submit(self, path, things, at_once=10):
        """Posts all of them, and says when each was sent, by name."""
        sent = {}

        def post(thing):
            sent[thing["metadata"]["name"]] = time.perf_counter()
            self.api.post(path, thing)
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            list(pool.map(post, things))
        return sent

    def settle(self, seconds=180):
        """Returns when the operator writes no more."""
        count, since = -1, 0

        def quiet():
            nonlocal count, since
            before, count = count, len(self.audit.read())
            if count != before:
                since = time.monotonic()
            return time.monotonic() - since >= QUIET
        wait_for(quiet, "the operator writes no more", seconds)

    def writes_in(self, namespace):
        return [one for one in self.audit.read() if one.get("objectRef", {}).get("namespace") == namespace]

    def cpu(self):
        """Seconds of the processor that the operator has used so far."""
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    def memory(self):
        """Megabytes of the operator: (resident, its proportional share), once they change no more."""
        def now():
            lines = pathlib.Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines()
            sizes = {words[0]: int(words[1]) / 1024 for words in map(str.split, lines) if words[0] in ("Rss:", "Pss:")}
            return sizes["Rss:"], sizes["Pss:"]
        deadline, before = time.monotonic() + 20, now()
        while True:
            time.sleep(1)  # the distance of two samples
            after = now()
            if abs(after[0] - before[0]) <= before[0] / 100 or time.monotonic() > deadline:
                return after
            before = after


@contextlib.contextmanager
def world(start):
    """A fresh cluster with an operator that is ready. `start(cluster, kubeconfig)` runs it for the length of a
    `with`, and gives its pid."""
    with Cluster.up(fsync=True, audit=True) as cluster:
        cluster.api.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
            "metadata": {"name": "operator"}, "subjects": [{"kind": "User", "name": USER}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}})
        with start(cluster, cluster.as_user(USER)) as pid:
            yield World(cluster, pid)
