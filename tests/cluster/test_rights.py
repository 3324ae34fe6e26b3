"""What the operator may do is what it does: over all tests of this folder, by the servers' own record of what was asked.

Every operator of every test runs with the rights of deploy/ alone. This test comes when all parts have run (conftest.py)."""

import json
import os
import pathlib

import pytest
from conftest import PARTS
from trainyard_operator import SYSTEM, operator_kubeconfig

# What a run may do without: OpenShift asks for the right over finalizers; a GET follows an answer that was lost; an event is
# patched when it repeats; not every group needs every change. To bind a role is no request of its own, and what a master needs is
# looked at only where it was there already.
BY_CHANCE = {("rbac.authorization.k8s.io", "clusterroles", "bind"), ("rbac.authorization.k8s.io", "rolebindings", "get"),
             ("", "serviceaccounts", "get"),
             ("kubeflow.org", "tfjobs/finalizers", "update"), ("kubeflow.org", "tfjobs", "get"), ("", "pods", "get"),
             ("", "services", "get"), ("", "events", "patch")}


def granted(cluster):
    rules = [rule for kind, name in (("clusterrole", "trainyard-operator"), ("role", "trainyard-operator-lease"))
             for rule in cluster.json("get", kind, name, f"--namespace={SYSTEM}")["rules"]]
    return {(group, resource, verb) for rule in rules for group in rule["apiGroups"]
            for resource in rule["resources"] for verb in rule["verbs"]}


@pytest.mark.last
def test_what_the_operator_may_is_what_it_did(tfjobs):
    parts = [pathlib.Path(os.environ.get("TRAINYARD_ASKED", "/nowhere"), f"{part}.json") for part in PARTS]
    if not all(part.exists() for part in parts):
        pytest.skip("not all tests were asked for")
    asked = {tuple(what) for part in parts for what in json.loads(part.read_text())}
    operator_kubeconfig(tfjobs)  # which has them granted
    may = granted(tfjobs)
    assert [tuple(what) for *what, allowed in asked if not allowed] == []
    used = {tuple(what) for *what, _ in asked}
    assert used <= may
    unused = {right for right in may - used - BY_CHANCE if right[1] != "podgroups"}
    print(f"{len(used)} of {len(may)} rights were used, not {sorted(may - used)}")
    assert not unused
