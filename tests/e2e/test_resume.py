"""`resume` runs a job exactly as it was: code, environment, working directory, Python."""

import json
import stat

import pytest

SCRIPT = """
import os, sys
import helper
from package import part
data = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'data.txt')).read()
print('ran', EDITION, helper.WORD, part.WORD, data, os.environ['WORD'], os.getcwd(), sys.executable, flush=True)
sys.exit(0 if os.path.exists(os.environ['FINISH']) else 3)
"""
SECRET = "hunter2-of-the-environment"


def write(yard, word):
    """The code of this edition."""
    for name in ("package", "work"):
        (yard.home / name).mkdir(exist_ok=True)
    yard.script(f"WORD = '{word}'", "helper.py")
    yard.script(f"WORD = '{word}'", "package/part.py")
    return yard.script(SCRIPT.replace("EDITION", repr(word)))


def environment(yard, word):
    return {"WORD": word, "FINISH": str(yard.home / "finish"), "PASSWORD": SECRET}


def last_run(yard):
    return [line for line in yard.log("train-1", "worker-0").splitlines() if line.startswith("ran ")][-1].split()[1:]


@pytest.fixture
def edited(yard):
    """A job that failed, and whose code and environment have changed since; what it ran as."""
    yard.script("data", "data.txt")
    script = write(yard, "old")
    yard.run("run", "-w", 1, script, status=3, cwd=yard.home / "work", env=environment(yard, "old"))
    ran = last_run(yard)
    assert ran[:6] == ["old", "old", "old", "data", "old", str(yard.home / "work")]
    write(yard, "new")
    yard.finish()
    return ran


def resume(yard, *flags):
    return yard.run("resume", *flags, env=environment(yard, "new")).splitlines()[0]


def test_resume_runs_the_job_as_it_was_and_says_so(yard, edited):
    assert resume(yard).endswith("code and environment as started")
    assert "helper.py, package/part.py, train.py have changed since train-1 was started" in yard.err
    assert last_run(yard) == edited


def test_resume_takes_the_current_code_where_it_is_told_to(yard, edited):
    assert resume(yard, "--code").endswith("current code, environment as started")
    assert yard.err == ""
    assert last_run(yard)[:6] == ["new", "new", "new", "data", "old", str(yard.home / "work")]


def test_resume_takes_the_current_environment_where_it_is_told_to(yard, edited):
    assert resume(yard, "--env").endswith("code as started, current environment")
    assert last_run(yard)[:6] == ["old", "old", "old", "data", "new", str(yard.home / "work")]


def test_resume_takes_both(yard, edited):
    assert resume(yard, "--code", "--env").endswith("current code and environment")
    assert last_run(yard)[:6] == ["new", "new", "new", "data", "new", str(yard.home / "work")]


def test_the_environment_is_the_owners_alone_and_never_printed(yard, edited):
    file = yard.dir("train-1") / "environment"
    assert SECRET in file.read_text() and stat.S_IMODE(file.stat().st_mode) == 0o600
    resume(yard, "--env")
    assert SECRET in file.read_text() and stat.S_IMODE(file.stat().st_mode) == 0o600
    commands = (["get"], ["get", "-o", "json"], ["why"], ["why", "--json"], ["events"], ["ps"], ["ps", "--json"], ["logs"],
                ["render", "train.py"])
    for words in commands:
        assert SECRET not in yard.run(*words, env={"PASSWORD": SECRET}) + yard.err, words
    yard.run("delete", "train-1")
    assert not yard.dir("train-1").exists()


def test_a_job_of_an_older_version_resumes_with_a_note(yard, edited):
    job = yard.dir("train-1")
    (job / "environment").unlink()
    for name in ("helper.py", "package/part.py"):
        (job / "code" / name).unlink()
    (job / "code/package").rmdir()
    run = json.loads((job / "run.json").read_text())
    del run["wholeCode"]
    (job / "run.json").write_text(json.dumps(run))
    assert resume(yard).endswith("code as started, current environment")
    assert "older version, which did not keep its environment" in yard.err
    assert "not all modules beside train.py were kept" in yard.err
    assert last_run(yard)[:6] == ["old", "new", "new", "data", "new", str(yard.home / "work")]


def test_the_current_code_of_a_manifest_is_no_choice(yard):
    manifest = yard.script("""
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: plain}
spec:
  tfReplicaSpecs:
    Worker: {template: {spec: {containers: [{name: tensorflow, image: i, command: ["false"]}]}}}
""", "job.yaml")
    yard.run("run", "-f", manifest, status=1)
    assert "was started from a manifest" in yard.refused("resume", "--code", "plain")
    assert yard.run("resume", "plain", status=1).splitlines()[0].endswith("environment as started")
