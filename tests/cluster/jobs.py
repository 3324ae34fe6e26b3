"""Small jobs, and definitions of TFJob that are not ours, for the tests of the operator."""

import json

import samples
from cluster import holds


def worker(count=1, **spec):
    return {"runPolicy": {}, **spec, "tfReplicaSpecs": {"Worker": {"replicas": count, "template": samples.POD}}}


def path(namespace, name=""):
    return f"/apis/kubeflow.org/v1/namespaces/{namespace}/tfjobs" + (f"/{name}" if name else "")


def namespace(cluster, name):
    cluster.api.post("/api/v1/namespaces", {"metadata": {"name": name}})
    return name


def create(cluster, where, name, spec):
    return cluster.api.post(path(where), samples.job(spec, name=name))


def events(cluster, where):
    return [event["reason"] + ": " + event["message"] for event in cluster.api.get(f"/api/v1/namespaces/{where}/events")["items"]]


LOOSE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition_of_another(schema):
    """A TFJob that lets anything through, or drops what it does not know."""
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "tfjobs.kubeflow.org"},
            "spec": {"group": "kubeflow.org", "scope": "Namespaced", "names": {"kind": "TFJob", "plural": "tfjobs"},
                     "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                                   "schema": {"openAPIV3Schema": schema}}]}}


def apply_definition(cluster, schema):
    cluster.kubectl("apply", "-f", "-", input=json.dumps(definition_of_another(schema)))
    cluster.wait(lambda: holds(cluster.json("get", "crd", "tfjobs.kubeflow.org"), "Established"), "established")
    cluster.wait(lambda: cluster.api.get("/apis/kubeflow.org/v1/tfjobs"), "served")
