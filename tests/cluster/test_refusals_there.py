"""What a cluster, or the way to it, refuses: one clear line each, and nothing is left behind."""

import json
import socket

import pytest

from there import IMAGE, There
from yard import ROOT, Yard

HELLO = "print('hello')"


@pytest.fixture(scope="module")
def there(operated, tmp_path_factory):
    yard = There(tmp_path_factory.mktemp("refusals") / "home", operated, "refusals")
    yield yard
    yard.close()


def test_a_script_that_no_config_map_holds(there):
    big = there.script("#" * (1 << 20) + "\n", "big.py")
    assert "big.py has 1048577 bytes, more than the 1048576 that a ConfigMap takes" in there.refused("run", big)
    (there.home / "much").mkdir()
    (there.home / "much/main.py").write_text(HELLO)
    (there.home / "much/data").write_bytes(b"x" * (1 << 20))
    assert "much holds more than the 1 MiB that a ConfigMap takes" in there.refused("run", "much")


def test_names_that_are_too_long_or_taken(there):
    script = there.script(HELLO)
    assert "metadata.name" in there.refused("run", "--name", "x" * 64, script)
    there.run("run", "-w", 1, "-i", IMAGE, "--output", "none", "--name", "taken", script)
    assert "taken exists already in namespace refusals" in there.refused("run", "-w", 1, "--name", "taken", script)
    there.run("delete", "taken")


def test_a_directory_of_this_machine_is_no_output(there):
    assert "is not on the cluster" in there.refused("run", "--output", "/tmp/out", there.script(HELLO))


def test_a_template_that_needs_a_parameter(there):
    template = there.script(json.dumps({
        "apiVersion": "v1", "kind": "Template", "parameters": [{"name": "NAME", "required": True}],
        "objects": [{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "${NAME}"}}]}), "t.json")
    assert "--param NAME=VALUE" in there.refused("run", "-f", template)


def test_a_claim_that_does_not_bind_is_told(there):
    there.run("run", "-d", "-w", 1, "-i", IMAGE, "--name", "unbound", "--output", "new:1Gi:no-such-class", there.script(HELLO))
    why = there.cluster.wait(lambda: "unbound immediate PersistentVolumeClaims" in (words := there.run("why", "unbound")) and words,
                             "it is told")
    assert "--output CLAIM names one that has" in why
    there.run("delete", "--force", "unbound")
    assert "unbound deleted" in there.run("delete", "unbound", "--with-output")


def test_a_quota_and_pod_security_refuse_in_their_own_words(there):
    there.kubectl("create", "quota", "none", "--hard=pods=0")
    there.run("run", "-d", "-w", 1, "-i", IMAGE, "--output", "none", "--name", "full", there.script(HELLO))
    why = there.cluster.wait(lambda: "exceeded quota: none" in (words := there.run("why", "full")) and words, "it is told")
    assert "have the quota raised" in why
    there.run("delete", "--force", "full")
    there.kubectl("delete", "quota", "none")
    loose = there.script(json.dumps({"spec": {"containers": [{"name": "tensorflow", "image": IMAGE}]}}), "loose.json")
    there.run("run", "-d", "-w", 1, "--pod-file", loose, "--output", "none", "--name", "loose", there.script(HELLO))
    why = there.cluster.wait(lambda: "violates PodSecurity" in (words := there.run("why", "loose")) and words, "it is told")
    assert "securityContext" in why
    there.run("delete", "--force", "loose")


def test_a_namespace_that_is_not_there(there):
    there.run("run", "-n", "nowhere", there.script(HELLO), status=2)
    assert 'namespaces "nowhere" not found' in there.err


def test_a_context_that_does_not_answer_or_is_not_there(there, tmp_path):
    yard = Yard(tmp_path / "home")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        silent.close()
        config = yard.script(json.dumps({
            "current-context": "gone", "contexts": [{"name": "gone", "context": {"cluster": "gone", "user": "me"}}],
            "clusters": [{"name": "gone", "cluster": {"server": f"https://127.0.0.1:{port}"}}],
            "users": [{"name": "me", "user": {"token": "hunter2"}}]}), "config")
    yard.env |= {"KUBECONFIG": str(config), "TRAINYARD_ON": "kubernetes"}
    for words in (["run", yard.script(HELLO)], ["ps"], ["logs", "x"], ["doctor"]):
        yard.run(*words, status=1 if words == ["doctor"] else 69)
        assert f"https://127.0.0.1:{port}" in yard.err or words == ["doctor"]
        assert "hunter2" not in yard.err
    assert 'no context named "elsewhere"' in yard.refused("ps", "--on", "kubernetes:elsewhere")
    assert "must be local, kubernetes or kubernetes:CONTEXT" in yard.refused("ps", "--on", "mars")
    yard.close()


def test_nothing_is_left(there):
    there.cluster.wait(lambda: there.objects() == [], f"nothing is left, {there.objects()}")
