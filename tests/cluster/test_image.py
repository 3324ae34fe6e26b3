"""The container image that script/image writes, and deploy/ with it on a real node."""

import subprocess

import pytest

from cluster import holds
from image_archive import config_of, config_said_by
from jobs import create, namespace, path
from samples import RESTRICTED, pod
from trainyard_operator import DEPLOY, remove_deployed
from yard import BINARY, write_image


def test_the_same_program_gives_the_same_image(image, tmp_path):
    assert write_image(tmp_path / "again.tar").read_bytes() == image.read_bytes()


def test_the_dockerfile_says_what_the_archive_says(image):
    assert config_said_by(DEPLOY / "Dockerfile") == config_of(image)


def test_a_pod_of_the_image_runs_the_program_where_only_restricted_pods_may(with_image):
    where = namespace(with_image, "strict")
    with_image.kubectl("label", "namespace", where, "pod-security.kubernetes.io/enforce=restricted")
    container = {"name": "a", "image": "trainyard:latest", "imagePullPolicy": "Never", "args": ["--version"],
                 "securityContext": RESTRICTED}
    pods = f"/api/v1/namespaces/{where}/pods"
    with_image.api.post(pods, {"metadata": {"name": "version"}, "spec": {"restartPolicy": "Never", "containers": [container]}})
    with_image.wait(lambda: with_image.api.get(f"{pods}/version")["status"]["phase"] == "Succeeded", "it ends well")
    here = subprocess.run([BINARY, "--version"], capture_output=True, text=True, check=True).stdout
    assert with_image.kubectl("logs", "version", "-n", where) == here


@pytest.fixture
def deployed(with_image):
    """Everything of deploy/, and afterwards nothing of it: the node is of other tests too."""
    with_image.kubectl("apply", "-k", DEPLOY)
    yield with_image
    print(with_image.kubectl("logs", "deployment/trainyard-operator", "-n", "trainyard-system", status=None))  # shown if it failed
    with_image.kubectl("delete", "tfjobs", "--all", "--all-namespaces")
    remove_deployed(with_image)


def test_the_operator_of_deploy_becomes_available_and_runs_a_job(deployed):
    where = namespace(deployed, "operated-from-within")
    deployment = "/apis/apps/v1/namespaces/trainyard-system/deployments/trainyard-operator"
    deployed.wait(lambda: holds(deployed.api.get(deployment), "Available"), "the operator is available")
    container = {"name": "tensorflow", "image": "trainyard:latest", "imagePullPolicy": "Never", "args": ["--version"]}
    create(deployed, where, "small", {"tfReplicaSpecs": {"Worker": {"replicas": 2, "template": pod(container)}}})
    deployed.wait(lambda: holds(deployed.api.get(path(where, "small")), "Succeeded"), "the job ends well")
