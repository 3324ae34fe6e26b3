"""`trainyard operator`, outside the cluster that it works for, for the length of a test.

    install_crd(cluster)
    with operator(cluster) as it:
        cluster.kubectl("apply", "-f", "-", input=manifest)
        it.kill()
        it.restart()

It listens on free ports of the loopback. At the end it is asked to stop and must do so well. Should the test itself be
killed, it ends with the cluster: it carries the mark by which `down` finds what belongs to one.
"""

import contextlib
import json
import os
import re
import secrets
import signal
import subprocess
import urllib.error
import urllib.request

from cluster import holds
from lab import state
from yard import BINARY, ROOT, wait_for

DEPLOY = ROOT / "deploy"
CRD, RIGHTS = DEPLOY / "crd.yaml", DEPLOY / "rbac.yaml"
SYSTEM = "trainyard-system"
STOPS_WITHIN = 5  # seconds


def install_crd(cluster):
    """TFJob in every version, ready to be used."""
    cluster.kubectl("apply", "-f", CRD)
    # Not by `kubectl wait`, which fails on an object that has no status yet.
    cluster.wait(lambda: holds(cluster.json("get", "crd", "tfjobs.kubeflow.org"), "Established"), "TFJob is established")
    for version in ("v1", "v1beta2", "v1beta1", "v1alpha2", "v1alpha1"):
        cluster.wait(lambda: cluster.api.get(f"/apis/kubeflow.org/{version}/tfjobs"), f"TFJob {version}")


def operator_kubeconfig(cluster):
    """As whom the operator runs: with the rights of deploy/, and no others."""
    cluster.kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}}))
    cluster.kubectl("apply", "-f", RIGHTS)
    return cluster.as_user(f"system:serviceaccount:{SYSTEM}:trainyard-operator")


def remove_deployed(cluster):
    """Takes away all of deploy/ that is there. The operator goes first: a rest of one whose rights went before is refused."""
    cluster.kubectl("delete", "deployment", "trainyard-operator", f"--namespace={SYSTEM}", "--cascade=foreground", "--ignore-not-found")
    cluster.kubectl("delete", "-k", DEPLOY, "--ignore-not-found")


@contextlib.contextmanager
def operator(cluster, *flags, kubeconfig=None, binary=BINARY, wait=True, variables=None):
    """Ready when it is handed out, unless it is not to be waited for."""
    it = Operator(cluster, [str(binary), "operator", f"--kubeconfig={kubeconfig or operator_kubeconfig(cluster)}",
                            "--health-probe-bind-address=127.0.0.1:0", "--metrics-bind-address=127.0.0.1:0",
                            *map(str, flags)], variables or {})
    try:
        it.start() if wait else it.launch()
        yield it
        it.stop()
    except BaseException:
        print(f"-- the end of {it.log}:\n{it.said()[-6000:]}")  # pytest shows it with the failure
        raise
    finally:
        it.kill()


class Operator:
    def __init__(self, cluster, command, variables):
        self.command, self.process = command, None
        self.log = cluster.state.log(f"trainyard-operator-{secrets.token_hex(3)}")  # there may be several
        self.env = {**os.environ, "MY_POD_NAMESPACE": SYSTEM, **variables, state.MARKER: str(cluster.dir)}

    @property
    def pid(self):
        return self.process.pid

    def launch(self):
        with self.log.open("a") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env)

    def start(self):
        """Returns when it has listed the cluster."""
        already = len(self.said())
        self.launch()

        def ports():
            assert self.process.poll() is None, f"it ended with {self.process.returncode}:\n{self.said()[already:]}"
            return dict(re.findall(r"(health|metrics) on port (\d+)\n", self.said()[already:]))
        self.ports = wait_for(lambda: len(found := ports()) == 2 and found, "the operator listens")
        wait_for(lambda: ports() and self.is_ready(), "the operator is ready")

    def stop(self):
        """Asks it to stop, unless it was killed."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(STOPS_WITHIN)
            assert self.process.returncode == 0, self.said()[-3000:]

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def restart(self):
        """Kills it if it runs, and starts it again."""
        self.kill()
        self.start()

    def said(self):
        return self.log.read_text() if self.log.exists() else ""

    def get(self, page, path):
        """A page of "health" or "metrics"."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[page]}{path}", timeout=5) as reply:
            return reply.read().decode()

    def is_ready(self):
        try:
            return self.get("health", "/readyz") == "ok"
        except urllib.error.HTTPError:
            return False

    def metrics(self):
        """All of them: {'name{labels}': value}."""
        lines = [line for line in self.get("metrics", "/metrics").splitlines() if line and line[0] != "#"]
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}
