"""The chart in deploy/helm: it makes what deploy/ has, and Helm installs it."""

import json
import os
import subprocess

import pytest
import yaml

from docs import run_page
from lab import binaries
from trainyard_operator import SYSTEM
from yard import BINARY, ROOT

DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm/trainyard"


@pytest.fixture(scope="session")
def env(tmp_path_factory):
    """Helm on PATH, with a home of its own."""
    return {"PATH": f"{binaries.ensure(binaries.HELM)}:{os.environ['PATH']}", "HOME": str(tmp_path_factory.mktemp("helm"))}


@pytest.fixture(scope="session")
def helm(env):
    """Runs Helm; returns what it writes."""
    def run(*words, status=0, **values):
        flags = [f"--set-json={name}={json.dumps(value)}" for name, value in values.items()]
        done = subprocess.run(["helm", *map(str, words), *flags], capture_output=True, text=True, env=env)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr * (status != 0)
    return run


def rendered(helm, **values):
    """The objects that the chart makes, by kind and name."""
    return objects(helm("template", "trainyard", CHART, f"--namespace={SYSTEM}", "--include-crds", **values))


def objects(*texts):
    found = [value for text in texts for value in yaml.safe_load_all(text) if value]
    by_name = {(value["kind"], value["metadata"]["name"]): value for value in found}
    assert len(by_name) == len(found)
    return by_name


def manifests(*names):
    return objects(*((DEPLOY / f"{name}.yaml").read_text() for name in names))


def operator_of(found):
    return found["Deployment", "trainyard-operator"]["spec"]


def test_the_chart_makes_what_the_manifests_have(helm):
    wanted = manifests("crd", "rbac", "operator")
    assert rendered(helm, createNamespace=True) == wanted
    del wanted["Namespace", SYSTEM]  # that is `helm install --create-namespace`
    assert rendered(helm) == wanted


def test_for_one_namespace_the_rights_are_those_of_one_namespace(helm):
    wanted = manifests("crd", "rbac-namespaced", "operator")
    operator_of(wanted)["template"]["spec"]["containers"][0]["args"].append(f"--namespace={SYSTEM}")
    assert rendered(helm, createNamespace=True, namespaced=True) == wanted


def test_values_reach_the_deployment(helm):
    spec = operator_of(rendered(helm, image="registry.example/trainyard:1", replicas=2, gangScheduler="volcano",
                                extraArgs=["--leader-election-id=other"], resources={"limits": {"memory": "1Gi"}}))
    container = spec["template"]["spec"]["containers"][0]
    assert (spec["replicas"], container["image"]) == (2, "registry.example/trainyard:1")
    assert container["args"] == ["operator", "--leader-elect", "--master-image", "registry.example/trainyard:1", "--gang-scheduler-name=volcano", "--leader-election-id=other"]
    assert container["resources"]["limits"] == {"memory": "1Gi"}


def test_a_value_that_does_not_exist_is_refused(helm):
    assert "gangSchedular" in helm("template", "trainyard", CHART, status=1, gangSchedular="volcano")


def test_helm_finds_nothing_to_say_about_the_chart(helm):
    assert "WARNING" not in helm("lint", "--strict", CHART)


def test_helm_installs_the_chart_and_takes_it_away(helm, tfjobs):
    where = ["--kubeconfig", tfjobs.kubeconfig, "--namespace=by-helm"]
    helm("install", "trainyard", CHART, *where, "--create-namespace", namespaced=True)
    made = tfjobs.json("get", "deployment", "trainyard-operator", "-n", "by-helm")
    assert made["spec"]["template"]["spec"]["containers"][0]["args"][-1] == "--namespace=by-helm"
    helm("upgrade", "trainyard", CHART, *where, namespaced=True, replicas=0)
    helm("uninstall", "trainyard", *where)
    left = tfjobs.kubectl("get", "deployments,roles,rolebindings,serviceaccounts", "-n", "by-helm", "-o", "name")
    assert left == "serviceaccount/default\n"
    assert tfjobs.json("get", "crd", "tfjobs.kubeflow.org")


def test_every_command_of_the_page_about_images_runs(env, tfjobs, tmp_path):
    for folder in ("script", "deploy"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    path = [str(BINARY.parent), tfjobs.state.programs, env["PATH"]]
    assert run_page("image.md", tmp_path, {**env, "PATH": ":".join(path), "KUBECONFIG": str(tfjobs.kubeconfig),
                                           "TRAINYARD_BINARY": str(BINARY)}) == 8
