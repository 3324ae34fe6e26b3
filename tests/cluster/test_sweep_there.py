"""`sweep` on a cluster: its trials are jobs there, and outlive it."""

import json
import signal

import pytest

from board import Board
from cluster import holds
from there import IMAGE, There, shared_volume
from yard import ROOT

# Says where it is in the training, writes that down, and waits at its second epoch until it may go on.
CURVE = """
import argparse, os, pathlib, time
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--gate", action="store_true")
a = parser.parse_args()
output, kept = (pathlib.Path(os.environ[f"TRAINYARD_{of}_DIR"]) for of in ("OUTPUT", "CHECKPOINT"))
(output / f"begun-{time.time()}").touch()
print("resumed" if (kept / "epoch").exists() else "anew", flush=True)
for epoch in (1, 2, 3):
    print(f"Epoch {epoch}/3\\n1/1 - 0s - loss: {a.lr / epoch:.4f}", flush=True)
    (kept / "epoch").write_text(str(epoch))
    while a.gate and epoch == 2 and not (output / "go").exists(): time.sleep(0.05)
"""
WORDS = ["-w", 1, "-i", IMAGE, "--prune", "none", "--output", "shared/ours"]


@pytest.fixture(scope="module")
def there(operated, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweeps")
    with shared_volume(operated, folder / "volume") as volume:
        yard = There(folder / "home", operated, "sweeps")
        yard.kubectl("apply", "-f", "-", input=json.dumps(
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "shared"}, "spec": {
                "accessModes": ["ReadWriteMany"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}}))
        yard.volume = volume / "ours"
        yard.script(CURVE)
        yield yard
        yard.close()


def table(there, name):
    return (there.home / f"state/.sweeps/default/{name}/trials.csv").read_text()


def said(there, job):
    return there.kubectl("logs", f"{job}-worker-0", status=None)


def at_the_gate(there, sweep, *jobs):
    there.cluster.wait(lambda: all("Epoch 2" in said(there, job) for job in jobs) or sweep.poll() is not None, f"{jobs} at the gate")
    assert sweep.poll() is None, sweep.communicate()


def alive(there):
    return [pod["metadata"]["name"] for pod in there.cluster.pods("sweeps") if pod["status"]["phase"] in ("Pending", "Running")]


def test_each_trial_has_a_folder_of_a_shared_claim_and_one_board_shows_them_all(there):
    there.script((ROOT / "tests/scripts/writes_events.py").read_text() + "print(f'loss: {rate / 5}')\n", "events.py")
    out = there.run("sweep", "events.py", *WORDS, "--param", "rate=1,2,3", "--parallel", 3, "--name", "three")
    assert "best    trial 0: loss 0.2  rate=1" in out
    runs = {f"three/00{i}-rate={i + 1}/tensorboard" for i in range(3)}
    assert {f"three/{path.parent.relative_to(there.volume / 'three')}" for path in there.volume.glob("three/*/*/*tfevents*")} == runs
    board = Board(there, "three")
    board.wait_for_runs(*runs)
    assert board.losses("three/001-rate=2/tensorboard")[0] == (0, 2.0)
    board.process.send_signal(signal.SIGINT)
    assert board.process.wait(30) == 0


def test_a_sweep_that_is_killed_is_gone_on_with_whatever_has_ended_meanwhile(there):
    words = ["sweep", "train.py", *WORDS, "--param", "lr=0.4,0.3,0.2", "--parallel", 2, "--name", "killed", "--", "--gate"]
    sweep = there.start(*words)
    at_the_gate(there, sweep, "killed-t0", "killed-t1")
    sweep.kill()
    sweep.wait()
    (there.volume / "killed/001-lr=0.3/output/go").touch()
    there.cluster.wait(lambda: holds(there.job("killed-t1"), "Succeeded"), "one ends while nobody looks")
    again = there.start("sweep", "resume", "killed")
    (there.volume / "killed/000-lr=0.4/output/go").touch()
    at_the_gate(there, again, "killed-t2")
    (there.volume / "killed/002-lr=0.2/output/go").touch()
    there.end(again, seconds=60)
    assert table(there, "killed") == ("trial,state,value,reports,lr,reason\n0,complete,0.1333,3,0.4,\n1,complete,0.1,3,0.3,\n"
                                      "2,complete,0.0667,3,0.2,\n")
    assert [len(list(folder.glob("output/begun-*"))) for folder in sorted((there.volume / "killed").iterdir())] == [1, 1, 1]


def test_ctrl_c_leaves_nothing_running_and_what_was_stopped_begins_anew(there):
    sweep = there.start("sweep", "train.py", *WORDS, "--param", "lr=0.4,0.3", "--parallel", 1, "--name", "broken", "--", "--gate")
    at_the_gate(there, sweep, "broken-t0")
    sweep.send_signal(signal.SIGINT)
    _, err = sweep.communicate(timeout=60)
    assert (sweep.returncode, err) == (
        130, "trainyard: broken was interrupted after 0 of 2 trials: trainyard sweep resume broken\n")
    assert alive(there) == []
    again = there.start("sweep", "resume", "broken")
    # Beside the folder of its first life, of whose checkpoint it knows nothing.
    for job, folder in (("broken-t0", "000-lr=0.4.2"), ("broken-t1", "001-lr=0.3")):
        at_the_gate(there, again, job)
        assert said(there, job).startswith("anew\n")
        (there.volume / f"broken/{folder}/output/go").touch()
    there.end(again, seconds=60)
    assert table(there, "broken").splitlines()[1:] == ["0,complete,0.1333,3,0.4,", "1,complete,0.1,3,0.3,"]


def test_a_job_that_has_the_name_of_a_trial_is_not_taken_for_it(there):
    there.run("run", "train.py", "-w", 1, "-i", IMAGE, "--output", "none", "--name", "taken-t0", "--", "--lr", 9)
    refusal = there.refused("sweep", "train.py", *WORDS, "--param", "lr=0.4,0.3", "--name", "taken")
    assert refusal.startswith("trial 0: taken-t0 exists already in namespace sweeps: "), refusal
    assert there.run("sweep", "ps").find("taken") == -1


@pytest.mark.skip(reason="not repaired yet: after the API server was away a trial's log may go unread, and the sweep ends with 'never reported'")
def test_a_cluster_that_is_away_when_a_trial_is_to_start_is_waited_for(there):
    sweep = there.start("sweep", "train.py", *WORDS, "--param", "lr=0.4,0.3", "--parallel", 1, "--name", "away", "--", "--gate")
    at_the_gate(there, sweep, "away-t0")
    (there.volume / "away/000-lr=0.4/output/go").touch()
    first = sweep.stdout.readline
    while "trial 0" not in (line := first()):
        assert line, sweep.stderr.read()
    there.cluster.kill("apiserver")
    there.cluster.restart("apiserver")
    at_the_gate(there, sweep, "away-t1")
    (there.volume / "away/001-lr=0.3/output/go").touch()
    assert "2 complete" in there.end(sweep, seconds=120)


def test_trials_that_have_a_master_each_need_no_operator(with_image, there):
    out = there.run("sweep", "train.py", *WORDS, "--param", "lr=0.4,0.3", "--parallel", 2, "--keeper", "master", "--name", "own")
    assert "best    trial 1: loss 0.1  lr=0.3" in out
    assert there.kubectl("get", "tfjob", "own-t0", "--ignore-not-found") == ""
