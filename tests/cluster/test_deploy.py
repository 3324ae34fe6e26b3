"""The manifests in deploy/ on a real API server: what they give away, and whether a strict cluster takes them."""

import json

import pytest

from cluster import ApiError
from samples import POD, job, replicas
from yard import ROOT, wait_for

DEPLOY = ROOT / "deploy"
OPERATOR = "system:serviceaccount:trainyard-system:trainyard-operator"


@pytest.fixture(scope="module")
def installed(tfjobs):
    tfjobs.kubectl("apply", "-k", DEPLOY)
    assert "would violate PodSecurity" not in tfjobs.said, tfjobs.said
    return tfjobs


def rules_of(cluster, kind, name, *where):
    """What a role grants: {(group, resource, verb)}."""
    return {(group, resource, verb) for rule in cluster.json("get", kind, name, *where)["rules"]
            for group in rule["apiGroups"] for resource in rule["resources"] for verb in rule["verbs"]}


def test_a_namespace_that_enforces_restricted_takes_the_operator(installed):
    """Its own namespace enforces it: a pod that was not as it should be would not be there."""
    namespace = installed.json("get", "namespace", "trainyard-system")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    [pod] = installed.wait(lambda: installed.pods("trainyard-system"), "the pod of the operator")
    assert pod["spec"]["serviceAccountName"] == "trainyard-operator"
    with pytest.raises(ApiError, match='violates PodSecurity "restricted'):
        installed.api.post("/api/v1/namespaces/trainyard-system/pods", {"metadata": {"name": "loose"}, **POD})


def test_what_is_applied_again_changes_nothing(installed):
    lines = installed.kubectl("apply", "-k", DEPLOY).splitlines()
    assert len(lines) == 11 and all(line.endswith("unchanged") for line in lines), lines


MAY = ["list tfjobs", "watch tfjobs", "delete tfjobs", "patch tfjobs/status", "update tfjobs/finalizers", "create pods",
       "patch pods", "delete pods", "list services", "create services", "create events",
       "create serviceaccounts", "create rolebindings.rbac.authorization.k8s.io", "create jobs.batch", "delete jobs.batch",
       "create podgroups.scheduling.volcano.sh", "delete podgroups.scheduling.x-k8s.io"]
MAY_NOT = ["get secrets", "list secrets", "create pods/exec", "get pods/log", "create tfjobs", "update tfjobs", "patch tfjobs",
           "update tfjobs/status", "create roles.rbac.authorization.k8s.io", "bind clusterroles.rbac.authorization.k8s.io",
           "bind roles.rbac.authorization.k8s.io", "create clusterrolebindings.rbac.authorization.k8s.io", "list serviceaccounts",
           "delete rolebindings.rbac.authorization.k8s.io", "get configmaps", "create configmaps", "list nodes", "update pods", "get leases.coordination.k8s.io",
           "get validatingwebhookconfigurations.admissionregistration.k8s.io",
           "patch customresourcedefinitions.apiextensions.k8s.io", "deletecollection pods"]


def allowed(cluster, user, asked, namespace):
    verb, resource = asked.split()
    resource, _, subresource = resource.partition("/")
    name, _, group = resource.partition(".")
    group = group or ("kubeflow.org" if name == "tfjobs" else "")
    attributes = {"verb": verb, "resource": name, "group": group, "subresource": subresource, "namespace": namespace}
    review = {"spec": {"user": user, "groups": ["system:serviceaccounts", "system:authenticated"],
                       "resourceAttributes": attributes}}
    return cluster.api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews",
                            {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", **review})["status"]["allowed"]


def test_the_operator_may_do_what_it_does_and_nothing_else(installed):
    wait_for(lambda: allowed(installed, OPERATOR, MAY[0], "default"), "rights are known")
    assert [asked for asked in MAY if not allowed(installed, OPERATOR, asked, "default")] == []
    assert [asked for asked in MAY_NOT if allowed(installed, OPERATOR, asked, "default")] == []
    for verb in ("get", "create", "update"):
        assert allowed(installed, OPERATOR, f"{verb} leases.coordination.k8s.io", "trainyard-system")
    granted = rules_of(installed, "clusterrole", "trainyard-operator")
    assert not any("*" in right for right in granted)


def test_the_operator_gives_no_rights_away_but_those_of_masters(installed):
    """By the server's own rule against escalation: what it does not have itself, it may give only by a role it may bind."""
    def bind(role, status=0):
        subject = {"kind": "ServiceAccount", "name": "default", "namespace": "default"}
        return installed.kubectl(f"--as={OPERATOR}", "--as-group=system:authenticated", "create", "--dry-run=server", "-f", "-", input=json.dumps(
            {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "given", "namespace": "default"},
             "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}, "subjects": [subject]}), status=status)
    assert "created" in bind("trainyard-master")
    for role in ("edit", "view", "cluster-admin"):
        bind(role, status=1)
        assert "attempting to grant RBAC permissions not currently held" in installed.said


def test_whoever_may_edit_or_view_a_namespace_may_do_so_with_its_jobs(installed):
    for role in ("edit", "view"):
        installed.kubectl("create", "rolebinding", f"{role}-bob", f"--clusterrole={role}", f"--user={role}or", "-n", "default")
    installed.wait(lambda: allowed(installed, "editor", "create tfjobs", "default") and
                   allowed(installed, "viewor", "get tfjobs/status", "default"), "roles are put together")
    assert allowed(installed, "editor", "patch tfjobs/scale", "default")
    assert allowed(installed, "editor", "watch tfjobs", "default")
    assert not allowed(installed, "editor", "patch tfjobs/status", "default")
    assert not allowed(installed, "viewor", "delete tfjobs", "default")
    installed.kubectl("--kubeconfig", installed.as_user("editor"), "create", "--dry-run=server", "-f", "-",
                      input=json.dumps(job(replicas(Worker={}))))


def test_in_one_namespace_the_rights_are_the_same_and_end_there(installed, tmp_path):
    (tmp_path / "rbac.yaml").write_text((DEPLOY / "rbac-namespaced.yaml").read_text())
    (tmp_path / "kustomization.yaml").write_text("namespace: team-b\nresources: [rbac.yaml]\n")
    installed.kubectl("create", "namespace", "team-b")
    installed.kubectl("apply", "-k", tmp_path)
    of_cluster = rules_of(installed, "clusterrole", "trainyard-operator")
    of_lease = rules_of(installed, "role", "trainyard-operator-lease", "-n", "trainyard-system")
    here = {(group, "roles" if resource == "clusterroles" else resource, verb) for group, resource, verb in of_cluster | of_lease}
    assert rules_of(installed, "role", "trainyard-operator", "-n", "team-b") == here
    assert rules_of(installed, "role", "trainyard-master", "-n", "team-b") == rules_of(installed, "clusterrole", "trainyard-master")
    user = "system:serviceaccount:team-b:trainyard-operator"
    installed.wait(lambda: allowed(installed, user, "create pods", "team-b"), "rights are known")
    assert not allowed(installed, user, "list pods", "default")
    kinds = {line.split("/")[0] for line in installed.kubectl("get", "-k", tmp_path, "-o", "name").split()}
    assert kinds == {"serviceaccount", "role.rbac.authorization.k8s.io", "rolebinding.rbac.authorization.k8s.io"}
