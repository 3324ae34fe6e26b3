"""Kubeflow's training-operator in a cluster with a node, by its own manifests: a pod, rights, a webhook, all its kinds.

    with kubeflow(cluster, folder):
        cluster.kubectl("apply", "-f", "-", input=tfjob)

Outside the cluster, and without the webhook, it is in go_operator.py.
"""

import contextlib
import json
import re

from cluster import holds
from lab import binaries, images, pki
from oci_image import Layer

NAMESPACE, NAME = "kubeflow", "training-operator"
DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{NAME}"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/validator.training-operator.kubeflow.org"
YEAR = "365"  # it replaces certificates that end within 90 days, and then waits a minute for a kubelet to show them


def write_image(target, product):
    """The image that the manifests name, with the program that we have built."""
    text = (product / "manifests/overlays/standalone/kustomization.yaml").read_text()
    reference = ":".join(re.search(r"- name: (\S+)\n\s+newTag: (\S+)", text).groups())
    layer = Layer()
    layer.file("manager", (product / "training-operator.v1").read_bytes(), 0o755)
    images.write(target, reference, layer, Entrypoint=["/manager"])
    return target


def secret(folder):
    pki.make_authority(folder, YEAR)
    pki.sign(folder, "tls", NAME, names=[f"DNS:{NAME}.{NAMESPACE}.svc"], days=YEAR)
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "training-operator-webhook-cert", "namespace": NAMESPACE},
            "data": {name: pki.encoded(folder / name) for name in ("ca.crt", "ca.key", "tls.crt", "tls.key")}}


def apply(cluster, part="overlays/standalone"):
    """Applies a folder of its manifests, and returns it. The CRDs are too large for any other way of applying."""
    folder = binaries.ensure(binaries.OPERATOR) / "manifests" / part
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-k", folder)
    return folder


@contextlib.contextmanager
def kubeflow(cluster, folder):
    """The folder is for what it takes to start it."""
    cluster.load_image(write_image(folder / "kubeflow.tar", binaries.ensure(binaries.OPERATOR)))
    cluster.kubectl("create", "namespace", NAMESPACE)
    cluster.kubectl("create", "-f", "-", input=json.dumps(secret(folder / "webhook")))
    manifests = apply(cluster)
    try:
        cluster.wait(lambda: holds(cluster.api.get(DEPLOYMENT), "Available"), "the training-operator is available", 120)
        yield
    finally:
        cluster.kubectl("delete", "-k", manifests, "--ignore-not-found", "--wait=false")
