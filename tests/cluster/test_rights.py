"""What the operator may do is what it does: over all tests of this folder, by the servers' own record of what was asked.

Every operator of every test runs with the rights of deploy/ alone. This is the last test (conftest.py sees to that)."""

import pathlib

import pytest
from cluster import Cluster
from trainyard_operator import SYSTEM, operator_kubeconfig

# What a run may do without: OpenShift asks for the right over finalizers; a GET follows an answer that was lost; an event is
# patched when it repeats; not every group needs every change.
BY_CHANCE = {("kubeflow.org", "tfjobs/finalizers", "update"), ("kubeflow.org", "tfjobs", "get"), ("", "pods", "get"),
             ("", "services", "get"), ("", "events", "patch")}


def granted(cluster):
    rules = [rule for kind, name in (("clusterrole", "trainyard-operator"), ("role", "trainyard-operator-lease"))
             for rule in cluster.json("get", kind, name, f"--namespace={SYSTEM}")["rules"]]
    return {(group, resource, verb) for rule in rules for group in rule["apiGroups"]
            for resource in rule["resources"] for verb in rule["verbs"]}


@pytest.mark.last
def test_what_the_operator_may_is_what_it_did(request, tfjobs):
    files = {pathlib.Path(item.path).name for item in request.session.items}
    if request.config.option.keyword or files != {path.name for path in pathlib.Path(__file__).parent.glob("test_*.py")}:
        pytest.skip("not all tests were asked for")
    asked = Cluster.were_asked.union(*(cluster.asked_by_operators() for cluster in Cluster.now_up))
    operator_kubeconfig(tfjobs)  # which has them granted
    may = granted(tfjobs)
    assert [tuple(what) for *what, allowed in asked if not allowed] == []
    used = {tuple(what) for *what, _ in asked}
    assert used <= may
    unused = {right for right in may - used - BY_CHANCE if right[1] != "podgroups"}
    print(f"{len(used)} of {len(may)} rights were used, not {sorted(may - used)}")
    assert not unused
