"""The simulator's API server answers as a real one does, so that what passes in the simulator means something.

Known and accepted differences (the stories keep away from them): managedFields and what they alone change, server-side
apply, JSON patch, deletion of collections and of namespaces, tokens of service accounts in pods, normal forms of a pod's
status (absent times written as null), the words of syntax errors.
"""

import os
import secrets

import pytest

from cluster import Cluster
from conformance import ROOT, Model, Real, Teller, differences
from stories import STORIES

CRD = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "tfjobs.kubeflow.org"},
       "spec": {"group": "kubeflow.org", "scope": "Namespaced", "names": {"plural": "tfjobs", "singular": "tfjob", "kind": "TFJob"},
                "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {
                        "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "required": ["tfReplicaSpecs"],
                                 "properties": {"tfReplicaSpecs": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}},
                        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}}}]}}


@pytest.fixture(scope="module")
def real():
    with Cluster.up() as cluster:
        cluster.api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
        cluster.wait(lambda: cluster.api.get("/apis/kubeflow.org/v1/tfjobs"), "the CRD")
        etcd = cluster.server.rsplit(":", 1)[0] + ":2379"
        yield Real(cluster.api, etcd, cluster.dir / "pki", lambda: cluster.restart("apiserver"))


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_the_model_answers_as_the_real_server_does(story, real):
    model = Model(os.environ.get("TRAINYARD_API_MODEL", ROOT / "build/release/tests/api_model"))
    namespace = f"{story.__name__.replace('_', '-')}-{secrets.token_hex(3)}"
    told = []
    try:
        for server in (model, real):
            teller = Teller(server, namespace)
            story(teller)
            told.append(teller)
    finally:
        model.close()
    found = differences(*told)
    assert not found, "\n".join([f"{len(found)} of {told[0].requests} answers differ:", *found])
