"""What `trainyard serve` and `predict` refuse: one line that says what is wrong, exit status 2, nothing started."""

import socket
import stat

import pytest


def saved_model(folder):
    """Something that looks like a SavedModel from outside."""
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "saved_model.pb").write_bytes(b"\x08\x01")
    return folder


def python_with(yard, version="", libraries=("libtensorflow_cc.so.2", "libtensorflow_framework.so.2")):
    """A program that answers as a Python with this TensorFlow would."""
    package = yard.home / "site-packages/tensorflow"
    package.mkdir(parents=True)
    for name in libraries:
        (package / name).touch()
    path = yard.home / "python"
    path.write_text(f"#!/bin/sh\necho directory={package}\necho version={version}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_there_is_no_model(yard):
    empty = yard.home / "empty"
    empty.mkdir()
    assert yard.refused("serve", empty) == f"no SavedModel in {empty}: neither saved_model.pb nor N/saved_model.pb is there"
    assert yard.refused("serve", yard.home / "none") == f"{yard.home}/none is no directory"
    assert "no job" in yard.refused("serve", "mnist-7")


def test_a_job_that_has_exported_nothing(yard):
    yard.run("run", yard.script("print('nothing')"), "-w", 1, "--name", "quiet")
    assert yard.refused("serve", "quiet").startswith("quiet has exported no SavedModel to ")


def test_there_is_no_tensorflow_or_it_is_too_old_or_has_no_library(yard):
    model = saved_model(yard.home / "model")
    assert "has no TensorFlow: pip install tensorflow-cpu" in yard.refused("serve", model, "--python", "/usr/bin/python3")
    assert yard.refused("serve", model, "--python", "/no/python") == "--python /no/python: not a program that can be run"
    python = python_with(yard, "2.11.1")
    assert yard.refused("serve", model, "--python", python) == f"TensorFlow 2.11.1 of {python} is too old: serving needs 2.12 or newer"
    python.write_text(python.read_text().replace("2.11.1", "2.15.1"))
    (yard.home / "site-packages/tensorflow/libtensorflow_cc.so.2").unlink()
    assert "has no libtensorflow_cc.so.2" in yard.refused("serve", model, "--python", python)
    env = {"TRAINYARD_TENSORFLOW": "/nowhere"}
    assert yard.refused("serve", model, env=env) == "TRAINYARD_TENSORFLOW=/nowhere: there is no libtensorflow_cc.so.2"
    assert "has no libtensorflow_cc.so.2" in yard.refused("serve", model, "--python", python, env=env)  # what is typed wins


def test_the_port_is_in_use(yard):
    python = python_with(yard, "2.15.1")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for flags in (("--port", port, "--rest-port", 0), ("--rest-port", port, "--port", 0)):
            assert f"port {port}" in yard.refused("serve", saved_model(yard.home / str(flags[0])), "--python", python, *flags)


@pytest.mark.parametrize("words, said", [
    (("--host", "0.0.0.0"), "--host 0.0.0.0: anybody who reaches it could ask; give --token-file, or --open if that is what you want"),
    (("--certificate", "x"), "--certificate and --key go together"),
    (("--batch", "0"), "--batch: must be a whole number"),
    (("--port", "99999"), "--port: must be a whole number"),
    (("--max-request", "1"), "--max-request 1: a size from 1Ki to 1Gi"),
    (("--poll", "soon"), "--poll: "),
    (("--config", "none.config"), "--config names the models"),
    (("--image", "x"), "--image is for clusters: with --on kubernetes"),
    (("--bach", "1"), "unknown flag --bach: did you mean --batch?"),
])
def test_flags_that_are_wrong(yard, words, said):
    refused = yard.refused("serve", saved_model(yard.home / "model"), *words)
    assert refused.startswith(said), refused


def test_a_model_or_config_that_cannot_be_served_is_told_and_ends_it(yard):
    python = python_with(yard, "2.15.1")
    flags = ("--python", python, "--port", 0, "--rest-port", 0)
    yard.run("serve", saved_model(yard.home / "model"), *flags, status=2)
    assert yard.err == "trainyard: model version 1 does not load: the SavedModel has no graph with the tag 'serve'\n"
    assert yard.run("serve", yard.home / "model", "--name", "a/b", *flags, status=2) == ""
    assert "no name for a model" in yard.err
    config = yard.home / "models.config"
    config.write_text("model_config_list {\n  confg { }\n}\n")
    yard.run("serve", "--config", config, *flags, status=2)
    assert yard.err.startswith(f"trainyard: {config}: line 2, column ")


def test_predict_names_what_is_missing_or_wrong(yard):
    picture = yard.home / "4.png"
    picture.write_bytes(b"no picture")
    assert yard.refused("predict", "--image", picture) == "--model is missing"
    assert yard.refused("predict", "--model", "m", "--image", "none.png") == "--image none.png: there is no such file"
    assert yard.refused("predict", "--model", "m", "--image", picture) == f"{picture}: neither a PNG nor an IDX file of pictures"


def test_predict_says_when_nobody_answers(yard):
    picture = yard.home / "4.idx"
    picture.write_bytes(b"\0\0\x08\x03" + b"\0\0\0\x01" * 3 + b"x")
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        yard.run("predict", "--model", "m", "--image", picture, "--host", "127.0.0.1", "--port", nobody.getsockname()[1], status=69)
    assert yard.err.startswith("trainyard: no answer from 127.0.0.1:")
