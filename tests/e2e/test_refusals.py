"""Bad input: one clear line, exit status 2, nothing changed."""

import os
import shutil
import socket
import subprocess
import sys

import pytest
from yard import BINARY

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def script(yard):
    return yard.script("pass")


def test_a_missing_script(yard):
    assert "nothing.py" in yard.refused("run", "nothing.py")


def test_a_directory_without_a_script_to_begin_with(yard):
    (yard.home / "code").mkdir()
    assert "code: none of its 0 scripts is named main.py or train.py" in yard.refused("run", "code")
    for name in ("one.py", "two.py"):
        (yard.home / "code" / name).touch()
    assert "none of its 2 scripts" in yard.refused("run", "code")


def test_no_script_at_all(yard):
    assert "which script?" in yard.refused("run")


def test_no_python(yard, script):
    assert "no python3 on PATH" in yard.refused("run", script, env={"PATH": "/nonexistent", "VIRTUAL_ENV": ""})


@pytest.mark.parametrize("python", ["no-such-python", "/etc/passwd", "/tmp"])
def test_a_python_that_is_none(yard, script, python):
    assert f"--python {python}" in yard.refused("run", "--python", python, script)


def test_a_python_without_tensorflow(yard):
    script = yard.script("import tensorflow as tf")
    line = yard.refused("run", "--python", sys.executable, script)
    assert "has no TensorFlow" in line and "--python" in line


@pytest.mark.parametrize("workers", ["0", "-1", "100000000", "abc", "1.5", "", "99999999999999999999"])
def test_a_number_of_workers_that_is_none(yard, script, workers):
    line = yard.refused("run", "-w", workers, script)
    assert "--workers: must be a whole number from 1 to 1000" in line


def test_a_port_in_use(yard, script):
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"port {port} is in use" in yard.refused("run", "-p", port, script)
        assert f"port {port} is in use" in yard.refused("run", "--detach", "-p", port, script)


@pytest.mark.parametrize("port", ["70000", "0", "-1", "http"])
def test_a_port_that_is_none(yard, script, port):
    assert "--port: must be a whole number from 1 to 65535" in yard.refused("run", "-p", port, script)


def test_a_range_of_ports_beyond_the_last(yard, script):
    assert "65535" in yard.refused("run", "-p", 65535, script)


def test_an_env_file_that_cannot_be_read(yard, script):
    assert "is a directory" in yard.refused("run", "-e", yard.home, script)
    assert "missing.env" in yard.refused("run", "-e", "missing.env", script)


def test_an_env_file_with_a_broken_line_is_told_without_its_words(yard, script):
    env = yard.script("GOOD=1\nhunter2-is-my-password\n", "broken.env")
    line = yard.refused("run", "-e", env, script)
    assert "line 2" in line and "hunter2" not in line


def test_a_name_that_is_taken(yard, script):
    yard.run("run", "--name", "mine", script)
    assert "a job named mine exists" in yard.refused("run", "--name", "mine", script)


@pytest.mark.parametrize("name", ["Mine", "a_b", "../up", "-a", "a-", "1a", "x" * 64, "", "a b", "."])
def test_a_name_that_is_none(yard, script, name):
    assert "metadata.name" in yard.refused("run", "--name", name, script)


@pytest.mark.parametrize("space", ["..", "A", "a/b", "-x"])
def test_a_namespace_that_is_none(yard, script, space):
    assert "metadata.namespace" in yard.refused("run", f"--namespace={space}", script)


@root_only
def test_a_state_directory_of_another_user(yard, script):
    theirs = yard.home / "theirs"
    theirs.mkdir()
    os.chown(theirs, 65534, 65534)
    line = yard.refused("run", script, env={"TRAINYARD_HOME": str(theirs)})
    assert "belongs to another user" in line
    assert not list(theirs.iterdir())


def test_a_state_directory_that_is_a_file(yard, script):
    assert "state directory" in yard.refused("run", script, env={"TRAINYARD_HOME": str(script)})


def test_an_unknown_flag_names_the_nearest(yard, script):
    assert yard.refused("run", "--worker", 2, script) == "unknown flag --worker: did you mean --workers?"
    assert yard.refused("run", "--worker=2", script) == "unknown flag --worker: did you mean --workers?"
    assert "unknown flag -z" in yard.refused("ps", "-z")


def test_an_unknown_command_names_the_nearest(yard):
    assert yard.refused("rnu") == "unknown command rnu: did you mean run?"
    assert "unknown command frobnicate" in yard.refused("frobnicate")


@pytest.mark.parametrize("verb", ["get", "events", "logs", "top", "why", "suspend", "resume", "stop", "delete", "wait"])
def test_an_unknown_job_names_the_nearest(yard, script, verb):
    yard.run("run", script)
    assert "did you mean train-1?" in yard.refused(verb, "trian-1")


@pytest.mark.parametrize("verb", ["get", "events", "logs", "top", "why", "suspend", "resume", "stop", "delete", "wait"])
def test_no_job_yet(yard, verb):
    assert "there is no job yet" in yard.refused(verb)


@pytest.mark.parametrize("words", [
    ("run", "--deadline", "soon"), ("run", "--deadline", "0"), ("run", "--deadline", "-5s"),
    ("run", "--restart", "Sometimes"), ("run", "--restart-scope", "Planet"), ("run", "--backoff-limit", "-1"),
    ("run", "--worker-memory", "much"), ("run", "--worker-memory", "0"), ("run", "--worker-cpu", "none"),
    ("run", "--ps", "x"), ("run", "-c", "missing.sh"), ("run", "--workers"), ("run", "--detach=yes"),
])
def test_a_value_that_is_none_names_its_flag(yard, script, words):
    verb, flag, *rest = words
    line = yard.refused(verb, script, flag, *rest)
    assert flag.split("=")[0] in line or {"-c": "--command"}.get(flag, "?") in line


def test_words_too_many(yard, script):
    assert "go after --" in yard.refused("run", script, "lr=3")


@pytest.mark.parametrize("words", [("scale", "worker=x"), ("scale", "wroker=2"), ("scale", "worker"), ("scale", "worker=-1"),
                                   ("scale",), ("wait", "--timeout", "x"), ("logs", "--since", "x"), ("logs", "--tail", "x"),
                                   ("logs", "-i", "worker/9"), ("get", "-o", "xml")])
def test_verbs_refuse_values_that_are_none(yard, script, words):
    yard.run("run", script)
    yard.refused(*words)


def test_a_job_that_has_ended_takes_no_changes(yard, script):
    yard.run("run", script)
    for words in (["stop"], ["suspend"], ["scale", "worker=3"]):
        assert "has ended already" in yard.refused(*words)
    assert "nothing to resume" in yard.refused("resume")


def test_no_guard_beside_the_program(yard, script):
    lonely = yard.home / "trainyard"
    shutil.copy(BINARY, lonely)
    done = subprocess.run([lonely, "run", script], env=yard.env, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "installation is broken" in done.stderr
    assert not yard.listing()


def test_a_checkpoint_directory_in_an_object_store_is_refused(yard):
    script = yard.script("print('never')")
    store = "s3://bucket/model"
    words = "TRAINYARD_CHECKPOINT_DIR=s3://bucket/model: object stores are not supported"
    (yard.home / "vars").write_text(f"TRAINYARD_CHECKPOINT_DIR={store}\n")
    assert words in yard.refused("run", "--env-file", yard.home / "vars", script)
    assert words in yard.refused("run", script, env={"TRAINYARD_CHECKPOINT_DIR": store})
    manifest = yard.script(f"""
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {{name: stored}}
spec:
  tfReplicaSpecs:
    Worker:
      replicas: 1
      template:
        spec:
          containers:
          - name: tensorflow
            image: none
            command: [python3, {script}]
            env: [{{name: TRAINYARD_CHECKPOINT_DIR, value: "{store}"}}]
""", "job.yaml")
    assert words in yard.refused("run", "-f", manifest)
