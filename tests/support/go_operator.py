"""The training-operator in Go, the one we compare with, outside the cluster that it works for.

    with go_operator(cluster, controller_threads=10, kube_api_qps=1000) as operator:
        …
        operator.metrics()

Keywords are its flags, but for `variables` of its environment. The CRD comes with it, unless `own_crd=False` says that
there is one; its admission webhook is not registered, so nothing is refused.
"""

import contextlib
import os
import sys
import urllib.request

from cluster import ApiError, holds
from lab import binaries, control, pki
from yard import ROOT

INIT = ROOT / "tests/cluster/lab/operator_init.py"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/tfjobs.kubeflow.org"
NAME = "go-operator"


class GoOperator:
    def __init__(self, cluster):
        self.cluster, self.log = cluster, cluster.state.log(NAME)

    def get(self, port, path):
        with urllib.request.urlopen(f"http://{self.cluster.state.address}:{port}{path}", timeout=5) as reply:
            return reply.read().decode()

    def metrics(self):
        return self.get(8080, "/metrics")

    def is_ready(self):
        status = control.components(self.cluster.state)[NAME]["status"]
        assert status is None, f"the operator ended with {status}:\n{self.log.read_text()[-3000:]}"
        return self.get(8081, "/readyz") == "ok"

    @property
    def pid(self):
        """In the cluster's own namespace if it has a node."""
        return control.components(self.cluster.state)[NAME]["pid"]


def create(api, path, value):
    try:
        api.post(path, value)
    except ApiError as error:
        if error.status != 409:  # there already: the operator was stopped and starts again
            raise


def prepare(cluster, crd):
    api = cluster.api
    if crd:
        api.patch(CRD + "?fieldManager=go-operator", crd, kind="apply")  # too large for any other way of applying
    create(api, "/api/v1/namespaces", {"metadata": {"name": "kubeflow"}})
    create(api, "/api/v1/namespaces/kubeflow/secrets", {"metadata": {"name": "training-operator-webhook-cert"}})
    cluster.wait(lambda: holds(api.get(CRD), "Established"), "the CRD is established")
    pki.sign(cluster.dir / "pki", NAME, NAME, names=["DNS:training-operator.kubeflow.svc"])


def command(cluster, program, flags):
    state, private = cluster.state, ["unshare", "--mount", "--propagation=private"]
    if os.getuid() != 0:
        private.append("--map-root-user")
    flags = {"enable-scheme": "tfjob", "kubeconfig": cluster.kubeconfig, "zap-devel": "false",
             "metrics-bind-address": f"{state.address}:8080", "health-probe-bind-address": f"{state.address}:8081",
             # It listens on every address of the machine, so the port has to be the cluster's own.
             "webhook-server-port": 24000 + state.number,
             **{name.replace("_", "-"): value for name, value in flags.items()}}
    return [*private, sys.executable, "-IB", INIT, cluster.dir / f"pki/{NAME}.crt", cluster.dir / f"pki/{NAME}.key",
            program, *(f"--{name}={value}" for name, value in flags.items())]


@contextlib.contextmanager
def go_operator(cluster, own_crd=True, variables=None, **flags):
    folder = binaries.ensure(binaries.OPERATOR)
    prepare(cluster, (folder / "manifests/base/crds/kubeflow.org_tfjobs.yaml").read_text() if own_crd else None)
    control.start(cluster.state, NAME, ["env", *(f"{name}={value}" for name, value in (variables or {}).items()),
                                        *command(cluster, folder / "training-operator.v1", flags)])
    operator = GoOperator(cluster)
    try:
        cluster.wait(operator.is_ready, "the operator is ready", 60)
        yield operator
    finally:
        control.kill(cluster.state, NAME)
