"""Our operator, outside the cluster that it works for.

    with our_operator(cluster, "--namespace=team-a") as operator:
        …

The definition of TFJob has to be there (`define`).
"""

import contextlib
import urllib.request

from lab import control
from yard import BINARY, ROOT

NAME = "our-operator"


def define(cluster):
    """Installs our definition of TFJob, and returns when the API server knows it."""
    cluster.kubectl("apply", "-f", ROOT / "deploy/crd.yaml")
    cluster.kubectl("wait", "--for=condition=Established", "crd/tfjobs.kubeflow.org")
    cluster.wait(lambda: cluster.api.get("/apis/kubeflow.org/v1/tfjobs"), "TFJobs")


class OurOperator:
    def __init__(self, cluster):
        self.cluster, self.log = cluster, cluster.state.log(NAME)

    def get(self, port, path):
        with urllib.request.urlopen(f"http://{self.cluster.state.address}:{port}{path}", timeout=5) as reply:
            return reply.read().decode()

    def metrics(self):
        return self.get(8082, "/metrics")

    def is_ready(self):
        status = control.components(self.cluster.state)[NAME]["status"]
        assert status is None, f"the operator ended with {status}:\n{self.log.read_text()[-3000:]}"
        return self.get(8083, "/readyz") == "ok"


@contextlib.contextmanager
def our_operator(cluster, *flags):
    address = cluster.state.address
    control.start(cluster.state, NAME, [BINARY, "operator", f"--kubeconfig={cluster.kubeconfig}",
                                        f"--metrics-bind-address={address}:8082",
                                        f"--health-probe-bind-address={address}:8083", *flags])
    operator = OurOperator(cluster)
    try:
        cluster.wait(operator.is_ready, "our operator is ready", 60)
        yield operator
    finally:
        control.kill(cluster.state, NAME)
