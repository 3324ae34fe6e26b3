"""`sweep` on a cluster: its trials are jobs there, and outlive it."""

import contextlib
import json
import signal

import pytest

from board import Board
from cluster import Cluster, holds
from there import IMAGE, There, shared_volume
from trainyard_operator import install_crd, operator
from trials import SOAK
from yard import ROOT, wait_for

# Says where it is in the training, writes that down, and waits at its second epoch until it may go on.
CURVE = """
import argparse, os, pathlib, time
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--gate", action="store_true")
a = parser.parse_args()
output, kept = (pathlib.Path(os.environ[f"TRAINYARD_{of}_DIR"]) for of in ("OUTPUT", "CHECKPOINT"))
(output / f"begun-{time.time()}").touch()
(output / ("resumed" if (kept / "epoch").exists() else "anew")).touch()
for epoch in (1, 2, 3):
    print(f"Epoch {epoch}/3\\n1/1 - 0s - loss: {a.lr / epoch:.4f}", flush=True)
    (kept / "epoch").write_text(str(epoch))
    if a.gate and epoch == 2:
        (output / "waits").touch()
        while not (output / "go").exists(): time.sleep(0.05)
"""
WORDS = ["-w", 1, "-i", IMAGE, "--prune", "none", "--output", "shared/ours"]


@contextlib.contextmanager
def yard_on(cluster, folder):
    """A namespace with a claim named shared; `volume` is the folder of it that our trials get."""
    with shared_volume(cluster, folder / "volume") as volume:
        yard = There(folder / "home", cluster, "sweeps")
        yard.kubectl("apply", "-f", "-", input=json.dumps(
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "shared"}, "spec": {
                "accessModes": ["ReadWriteMany"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}}))
        yard.volume = volume / "ours"
        yard.script(CURVE)
        yield yard
        yard.close()


@pytest.fixture(scope="module")
def there(operated, tmp_path_factory):
    with yard_on(operated, tmp_path_factory.mktemp("sweeps")) as yard:
        yield yard


@pytest.fixture(scope="module")
def three(there):
    """A sweep of three trials that has ended, and what it said."""
    there.script((ROOT / "tests/scripts/writes_events.py").read_text() + "print(f'loss: {rate / 5}')\n", "events.py")
    return there.run("sweep", "events.py", *WORDS, "--param", "rate=1,2,3", "--parallel", 3, "--name", "three")


RUNS = {f"three/00{i}-rate={i + 1}/tensorboard" for i in range(3)}


def table(there, name):
    return (there.home / f"state/.sweeps/default/{name}/trials.csv").read_text()


def at_the_gate(there, sweep, *folders):
    """Until the trials of these folders wait there; the sweep must not have ended."""
    wait_for(lambda: all((there.volume / folder / "output/waits").exists() for folder in folders) or sweep.poll() is not None,
             f"{folders} at the gate", 60)
    assert sweep.poll() is None, sweep.communicate()


def let_go(there, folder):
    (there.volume / folder / "output/go").touch()


def alive(there):
    return [pod["metadata"]["name"] for pod in there.cluster.pods("sweeps") if pod["status"]["phase"] in ("Pending", "Running")]


def test_each_trial_has_a_folder_of_a_shared_claim(there, three):
    assert "best    trial 0: loss 0.2  rate=1" in three
    assert {f"three/{path.parent.relative_to(there.volume / 'three')}" for path in there.volume.glob("three/*/*/*tfevents*")} == RUNS


@pytest.mark.skipif(not SOAK, reason="a board takes long to start, and test_board.py has one: script/soak")
def test_one_board_shows_all_trials(there, three):
    board = Board(there, "three")
    board.wait_for_runs(*RUNS)
    assert board.losses("three/001-rate=2/tensorboard")[0] == (0, 2.0)
    board.process.send_signal(signal.SIGINT)
    assert board.process.wait(150) == 0


def test_a_sweep_that_is_killed_is_gone_on_with_whatever_has_ended_meanwhile(there):
    words = ["sweep", "train.py", *WORDS, "--param", "lr=0.4,0.3,0.2", "--parallel", 2, "--name", "killed", "--", "--gate"]
    sweep = there.start(*words)
    at_the_gate(there, sweep, "killed/000-lr=0.4", "killed/001-lr=0.3")
    sweep.kill()
    sweep.wait()
    let_go(there, "killed/001-lr=0.3")
    there.cluster.wait(lambda: holds(there.job("killed-t1"), "Succeeded"), "one ends while nobody looks")
    again = there.start("sweep", "resume", "killed")
    let_go(there, "killed/000-lr=0.4")
    at_the_gate(there, again, "killed/002-lr=0.2")
    let_go(there, "killed/002-lr=0.2")
    there.end(again, seconds=60)
    assert table(there, "killed") == ("trial,state,value,reports,lr,reason\n0,complete,0.1333,3,0.4,\n1,complete,0.1,3,0.3,\n"
                                      "2,complete,0.0667,3,0.2,\n")
    assert [len(list(folder.glob("output/begun-*"))) for folder in sorted((there.volume / "killed").iterdir())] == [1, 1, 1]


def test_ctrl_c_leaves_nothing_running_and_what_was_stopped_begins_anew(there):
    sweep = there.start("sweep", "train.py", *WORDS, "--param", "lr=0.4,0.3", "--parallel", 1, "--name", "broken", "--", "--gate")
    at_the_gate(there, sweep, "broken/000-lr=0.4")
    sweep.send_signal(signal.SIGINT)
    _, err = sweep.communicate(timeout=150)
    assert (sweep.returncode, err) == (
        130, "trainyard: broken was interrupted after 0 of 2 trials: trainyard sweep resume broken\n")
    assert alive(there) == []
    again = there.start("sweep", "resume", "broken")
    # Beside the folder of its first life, of whose checkpoint it knows nothing.
    for folder in ("broken/000-lr=0.4.2", "broken/001-lr=0.3"):
        at_the_gate(there, again, folder)
        assert (there.volume / folder / "output/anew").exists()
        let_go(there, folder)
    there.end(again, seconds=60)
    assert table(there, "broken").splitlines()[1:] == ["0,complete,0.1333,3,0.4,", "1,complete,0.1,3,0.3,"]


def test_a_job_that_has_the_name_of_a_trial_is_not_taken_for_it(there):
    there.run("run", "train.py", "-w", 1, "-i", IMAGE, "--output", "none", "--name", "taken-t0", "--", "--lr", 9)
    refusal = there.refused("sweep", "train.py", *WORDS, "--param", "lr=0.4,0.3", "--name", "taken")
    assert refusal.startswith("trial 0: taken-t0 exists already in namespace sweeps: "), refusal
    assert there.run("sweep", "ps").find("taken") == -1


@pytest.mark.skipif(not SOAK, reason="test_master.py has jobs like these: script/soak")
def test_trials_that_have_a_master_each_need_no_operator(with_image, there):
    out = there.run("sweep", "train.py", *WORDS, "--param", "lr=0.4,0.3", "--parallel", 2, "--keeper", "master", "--name", "own")
    assert "best    trial 1: loss 0.1  lr=0.3" in out
    assert there.kubectl("get", "tfjob", "own-t0", "--ignore-not-found") == ""


@pytest.fixture
def alone(tmp_path):
    """On a cluster of its own, whose API server nobody else needs."""
    with Cluster.up(nodes=1) as cluster:
        install_crd(cluster)
        with operator(cluster), yard_on(cluster, tmp_path) as yard:
            yield yard


@pytest.mark.node
def test_a_cluster_that_is_away_when_a_trial_is_to_start_is_waited_for(alone):
    """So it is by those who follow another job meanwhile: neither misses a line."""
    run = alone.start("run", "train.py", "-w", 1, "-i", IMAGE, "--output", "shared/ours/other", "--name", "other", "--",
                      "--lr", 9, "--gate")
    sweep = alone.start("sweep", "train.py", *WORDS, "--param", "lr=0.4,0.3", "--parallel", 1, "--name", "away", "--", "--gate")
    at_the_gate(alone, sweep, "away/000-lr=0.4", "other")
    followed = alone.home / "followed"
    with followed.open("w") as out:
        logs = alone.start("logs", "-f", "other", stdout=out)
    wait_for(lambda: "Epoch 2" in followed.read_text(), "its log is followed")
    let_go(alone, "away/000-lr=0.4")
    while "trial 0" not in (line := sweep.stdout.readline()):
        assert line, sweep.stderr.read()
    alone.cluster.kill("apiserver")
    alone.cluster.restart("apiserver")
    at_the_gate(alone, sweep, "away/001-lr=0.3")
    for folder in ("away/001-lr=0.3", "other"):
        let_go(alone, folder)
    assert "2 complete" in alone.end(sweep, seconds=120)
    alone.end(logs, seconds=60)
    for out in (alone.end(run, seconds=60), followed.read_text()):
        assert [out.count(f"Epoch {epoch}/3") for epoch in (1, 2, 3)] == [1, 1, 1], out
