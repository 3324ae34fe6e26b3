"""`tf-spawner` as far as it needs no cluster: help, what it refuses, and TRAINYARD_ON=local."""

import os
import shutil
import socket
import subprocess

import pytest
from yard import BINARY, ROOT

NO_CLUSTER = {"KUBECONFIG": "/nonexistent/config"}
HERE = {"TRAINYARD_ON": "local"}
UNREACHABLE = """
{apiVersion: v1, kind: Config, current-context: away, clusters: [{name: away, cluster: {server: "https://127.0.0.1:PORT"}}],
 users: [{name: me, user: {}}], contexts: [{name: away, context: {cluster: away, user: me}}]}
"""


@pytest.fixture
def script(yard):
    return yard.script("import os; print(sorted(os.environ))")


def refused(yard, *words):
    return yard.refused("tf-spawner", *words, env=NO_CLUSTER)


def test_help_has_every_option_of_the_original(yard):
    help = yard.run("tf-spawner", "-h")
    for option in ("-d, --delete", "-w, --workers WORKERS", "-n, --namespace", "-p, --port PORT", "-c, --command COMMAND",
                   "--pod-file POD_FILE", "-t, --tag TAG", "-r, --randomize-tag", "-e, --env-file ENV_FILE", "-i, --image IMAGE"):
        assert option in help


def test_it_goes_by_its_own_name_too(yard):
    (yard.home / "tf-spawner").symlink_to(BINARY)
    done = subprocess.run([yard.home / "tf-spawner", "-h"], env=yard.env, capture_output=True, text=True, check=True)
    assert done.stdout == yard.run("tf-spawner", "-h")


def test_a_checkout_has_it(yard):
    """As the manual of TF-Spawner says: ./tf-spawner."""
    (yard.home / "build/release").mkdir(parents=True)
    (yard.home / "build/release/trainyard").symlink_to(BINARY)
    shutil.copy(ROOT / "tf-spawner", yard.home)
    done = subprocess.run(["./tf-spawner", "-h"], cwd=yard.home, env=yard.env, capture_output=True, text=True, check=True)
    assert done.stdout == yard.run("tf-spawner", "-h")


def test_no_kubeconfig(yard, script):
    for words in ([script], ["-d", "--yes"]):
        line = refused(yard, *words)
        assert line.startswith("no kubeconfig: ") and "TRAINYARD_ON=local" in line


def test_a_cluster_that_does_not_answer(yard, script):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        config = yard.script(UNREACHABLE.replace("PORT", str(closed.getsockname()[1])), "config")
        for words in ([script], ["-d", "--yes"]):
            yard.run("tf-spawner", *words, env={"KUBECONFIG": str(config)}, status=69)
            assert yard.err.count("\n") == 1 and "of context away" in yard.err


def test_no_script_at_all(yard):
    assert "which script?" in refused(yard)
    assert "which script?" in yard.refused("tf-spawner", env=HERE)


@pytest.mark.parametrize("words, told", [
    (["-w", "0"], "--workers: must be a whole number from 1 to 1000"),
    (["-w", "1001"], "--workers: must be a whole number from 1 to 1000"),
    (["-p", "0"], "--port: must be a whole number from 1 to 65535"),
    (["-t", "Upper"], "--tag: must be lower-case letters"),
    (["-t", "a b"], "'a b' is no tag"),
    (["-t", "x" * 60], "--tag: must have at most 55 characters"),
    (["-c", "missing.sh"], "--command: "),
    (["-e", "missing.env"], "--env-file: "),
    (["--pod-file", "missing.yaml"], "--pod-file: "),
    (["--pod-fiel", "a"], "did you mean --pod-file?"),
])
def test_options_that_cannot_be(yard, script, words, told):
    assert told in refused(yard, script, *words)


def test_an_env_file_with_a_broken_line_is_told_without_its_words(yard, script):
    line = refused(yard, "-e", yard.script("GOOD=1\nhunter2-is-my-password\n", "broken.env"), script)
    assert "line 2" in line and "hunter2" not in line


def test_a_pod_yaml_that_is_none(yard, script):
    """It is taken from the current directory, as the original does."""
    yard.script("kind: Deployment", "pod.yaml")
    assert refused(yard, script) == "pod.yaml: must be a Pod"


def test_a_script_that_no_config_map_holds(yard):
    line = refused(yard, yard.script("#" * (1 << 20) + "\n"))
    assert "1 MiB" in line and "(-i)" in line


@pytest.mark.parametrize("words, told", [
    (["-d"], "confirm with --yes"),
    (["-d", "-y", "-r"], "nothing to delete"),
    (["-d", "-y", "-t", "a", "b"], "not both a and b"),
    (["-d", "-y", "examples/mnist.py"], "'examples/mnist.py' is no tag"),
    (["-d", "-y", "-t", "a,b"], "'a,b' is no tag"),
])
def test_deletions_that_cannot_be(yard, words, told):
    assert told in refused(yard, *words)


def test_it_trains_on_this_machine(yard):
    script = yard.script("import os; print(os.environ['WORKER_NUMBER'], 'of', os.environ['TOT_WORKERS'], os.environ['A'])")
    env = yard.script("A=b=c\nTOT_WORKERS=99\n", "a.env")
    command = yard.script("# before it\nif true\nthen echo prepared\nfi\npython3 /script/training-script.py\n", "command.sh")
    out = yard.run("tf-spawner", "-w", 3, "-t", "mine", "-e", env, "-c", command, script, env=HERE)
    assert "generated with label training_attempt=mine\n" in out
    yard.run("wait", "mine")
    assert yard.log("mine", "worker-2").splitlines()[-2:] == ["prepared", "2 of 99 b=c"]
    assert "a job named mine exists" in yard.refused("tf-spawner", "-t", "mine", script, env=HERE)
    assert "mine deleted" in yard.run("tf-spawner", "-d", "mine", "--yes", env=HERE)
    assert "mine" in yard.refused("tf-spawner", "-d", "mine", "--yes", env=HERE)


def test_what_has_no_effect_on_this_machine_is_told(yard, script):
    yard.run("tf-spawner", "-w", 1, "-i", "an:image", script, env=HERE)
    assert yard.err == "trainyard: warning: --image has no effect on this machine\n"
    yard.run("wait", "tf-spawner")


def test_a_command_does_not_get_a_path_that_a_shell_would_read(yard):
    (yard.home / "a; b").mkdir()
    script = yard.script("pass", "a; b/train.py")
    command = yard.script("python3 /script/training-script.py\n", "command.sh")
    assert "move it" in yard.refused("tf-spawner", "-c", command, script, env=HERE)
    assert not os.path.exists(yard.home / "b")
