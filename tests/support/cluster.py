"""A real API server, or a whole Kubernetes with a node, for the length of a test.

    with Cluster.up() as cluster:                     # no node: pods stay as they are written, see play_kubelet.py
        cluster.kubectl("apply", "-f", "-", input=manifest)
        cluster.wait(lambda: cluster.pods(), "pods")

What `up` starts is what script/cluster starts (docs/test-cluster.md); several may be up at once.
"""

import contextlib
import datetime
import json
import os
import pathlib
import secrets
import subprocess
import sys

from yard import ROOT, wait_for, write_image

sys.path.insert(0, str(ROOT / "tests/cluster"))

from lab import control, down, kwok, main, node, up  # noqa: E402
from lab.api import Api, ApiError, holds  # noqa: E402

__all__ = ["Api", "ApiError", "Cluster", "holds"]


def now():
    return datetime.datetime.now(datetime.UTC)


class Cluster:
    were_asked = set()  # by operators, of those that were up in this run

    @classmethod
    @contextlib.contextmanager
    def up(cls, nodes=0, name=None, fsync=False, audit=False, grace=None):
        """`grace`: the seconds until Kubernetes marks a silent node, by default as long as it takes elsewhere."""
        cluster = cls(up.up(name or f"test-{secrets.token_hex(4)}", nodes, fsync, audit, grace))
        try:
            yield cluster
            cls.were_asked.update(cluster.asked_by_operators())
        finally:
            down.down(cluster.name)

    def __init__(self, state):
        self.state = state
        self.name, self.dir, self.server = state.name, state.dir, state.server
        self.kubeconfig, self.audit_log = state.dir / "admin.conf", state.dir / "audit.log"
        self.api = Api(state.server, state.dir / "pki")
        self.starts = []  # when the API server was starting: pairs of begin and end

    # -- asking

    def kubectl(self, *words, input=None, status=0):
        """What kubectl writes; its exit status must be as said, None for any. What it says to stderr is in `said`."""
        command = [self.state.program("kubectl"), *map(str, words)]
        env = {**os.environ, "KUBECONFIG": str(self.kubeconfig), "KUBECACHEDIR": str(self.dir / "kubectl")}
        done = subprocess.run(command, input=input, capture_output=True, text=True, timeout=300, env=env)
        self.said = done.stderr
        assert status in (None, done.returncode), f"{words}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def json(self, *words, **options):
        return json.loads(self.kubectl(*words, "-o", "json", **options))

    def pods(self, namespace="default", selector=""):
        query = f"?labelSelector={selector}" if selector else ""
        return self.api.get(f"/api/v1/namespaces/{namespace}/pods{query}")["items"]

    def wait(self, predicate, what="a condition", timeout=60):
        """Polls until the predicate holds and returns its value. While the API server is away it does not hold."""
        def tolerant():
            with contextlib.suppress(OSError, ApiError):
                return predicate()
        return wait_for(tolerant, what, timeout)

    def requests(self):
        """What was asked of the API server so far, oldest first: events of its audit log. By service accounts; with
        `audit=True` by everybody."""
        return [json.loads(line) for line in self.audit_log.read_text().splitlines()]

    def asked_by_operators(self):
        """(API group, resource, verb, whether rights allowed it) of what service accounts named trainyard-operator asked.

        A starting API server refuses whom it does not know yet; that is left out."""
        with self.audit_log.open() as log:
            events = [json.loads(line) for line in log if ":trainyard-operator" in line and line.endswith("\n")]
        for event in events:
            at = datetime.datetime.fromisoformat(event["requestReceivedTimestamp"])
            allowed = event.get("annotations", {}).get("authorization.k8s.io/decision") == "allow"
            starting = any(begin <= at <= end for begin, end in self.starts)
            if event["user"]["username"].endswith(":trainyard-operator") and (allowed or not starting):
                ref = event.get("objectRef", {})
                what = ref.get("resource", "") + ("/" + ref["subresource"] if "subresource" in ref else "")
                yield ref.get("apiGroup", ""), what, event["verb"], allowed

    def as_user(self, user, *groups):
        """A kubeconfig for somebody else, for tests of RBAC."""
        return pathlib.Path(main.kubeconfig(self.name, user, list(groups)))

    def play_nodes(self, count):
        """Adds nodes that exist on paper only (tests/cluster/kwok/stages.yaml says what becomes of their pods)."""
        kwok.start(self.state, count)

    def offer(self, **resources):
        """Sets how much the only node has of each extended resource; None removes it."""
        [node] = self.api.get("/api/v1/nodes")["items"]
        self.kubectl("patch", "node", node["metadata"]["name"], "--subresource=status", "--type=merge",
                     "-p", json.dumps({"status": {"capacity": resources, "allocatable": resources}}))

    def load_image(self, path):
        """Gives every node the image of an archive, as script/image writes one."""
        node.import_image(self.state, path)

    def load_serving_image(self, reference, version, program):
        """Gives the node the image that script/image makes for serving, with this version of TensorFlow; where its archive lies."""
        path = self.dir / f"{reference.replace('/', '_')}.tar"
        if not path.exists():
            write_image(path, "--serving", node.python_of(version), "--tag", reference, program=program)
            self.load_image(path)
        return path

    # -- faults

    def kill(self, component):
        """Kills "etcd", "apiserver", "node2/kubelet" or another component, and returns when it is gone."""
        control.kill(*control.find(self.state, component))

    def power_off(self, name):
        """Ends all processes of "node2" at once. Nobody hears of it: the API server goes on saying that its pods run."""
        node.power_off(self.state, name)

    def restart(self, component):
        """Kills it if it runs, starts it again, and returns when the API server is ready."""
        begin = now()
        up.restart(self.state, component)
        if component == "apiserver":
            self.starts.append((begin, now()))
