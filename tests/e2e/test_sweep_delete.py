"""`sweep stop` and `sweep delete`: a sweep goes with the jobs of its trials, and what they made stays unless told otherwise."""

import pytest

from yard import wait_for

# Two reports, and something made; a trial waits between them until there is a file named gate.
TRAIN = """
import argparse, os, sys, time
parser = argparse.ArgumentParser()
parser.add_argument('--lr', type=float, default=0)
parser.add_argument('--gate', action='store_true')
parser.add_argument('--makes', action='store_true')
a = parser.parse_args()
print('loss=1.0', flush=True)
if a.makes: open(os.environ['TRAINYARD_OUTPUT_DIR'] + '/made', 'w').close()
if a.makes: open(os.environ['TRAINYARD_CHECKPOINT_DIR'] + '/saved', 'w').close()
while a.gate and not os.path.exists('gate'): time.sleep(0.01)
print(f'loss={a.lr}')
"""
WORDS = ["sweep", "train.py", "--param", "lr=0.1,0.2", "-w", "1", "--parallel", "2", "--name", "two", "--prune", "none"]


@pytest.fixture(autouse=True)
def script(yard):
    yard.script(TRAIN)


def sweep_dir(yard, name="two"):
    return yard.home / "state/.sweeps/default" / name


def files(yard):
    """All that is left of jobs and sweeps."""
    state = yard.home / "state"
    return sorted(str(path.relative_to(state)) for top in ("default", ".sweeps") for path in (state / top).rglob("*")
                  if path.is_file())


def running(yard):
    """A sweep whose two trials wait at the gate."""
    process = yard.start(*WORDS, "--", "--gate")
    wait_for(lambda: all("loss" in yard.log(f"two-t{i}", "worker-0") for i in (0, 1)), "two trials at the gate")
    return process


def test_a_sweep_goes_with_its_jobs_and_leaves_its_name_free(yard):
    yard.run(*WORDS)
    assert yard.run("sweep", "delete", "two") == "two deleted\n"
    assert "no jobs" in yard.run("ps") and not sweep_dir(yard).exists() and not list((yard.home / "state/default").iterdir())
    assert yard.refused("sweep", "delete", "two") == "no sweep named two: see trainyard sweep ps"
    yard.run(*WORDS)


def test_what_the_trials_made_stays_unless_told_otherwise(yard):
    yard.run(*WORDS, "--", "--makes")
    trials = ["000-lr=0.1", "001-lr=0.2"]
    made = [f"  kept    {yard.home}/state/{path}" for i, trial in enumerate(trials)
            for path in (f"default/two-t{i}/checkpoints", f".sweeps/default/two/{trial}/output")]
    assert yard.run("sweep", "delete", "two").splitlines() == ["two deleted", *made]
    assert files(yard) == [".sweeps/default/two/000-lr=0.1/output/made", ".sweeps/default/two/001-lr=0.2/output/made",
                           ".sweeps/default/two/deleted.json",
                           "default/two-t0/checkpoints/saved", "default/two-t1/checkpoints/saved"]
    assert len(yard.run("sweep", "ps").splitlines()) == 1
    assert yard.refused(*WORDS) == (f"the output of a deleted sweep named two is in {sweep_dir(yard)}: choose another --name, or "
                                    "remove it: trainyard sweep delete --with-output two")
    assert "no sweep named two" in yard.refused("sweep", "delete", "two")
    assert yard.run("sweep", "delete", "two", "--with-output") == "two deleted\n"
    assert files(yard) == [] and not sweep_dir(yard).exists()


def test_output_elsewhere_is_never_deleted(yard):
    yard.run(*WORDS, "--output", "elsewhere", "--", "--makes")
    yard.run("sweep", "delete", "--with-output")  # the latest
    assert (yard.home / "elsewhere/000-lr=0.1/output/made").exists()
    assert files(yard) == []


def test_a_running_sweep_is_not_deleted_unless_stopped(yard):
    process = running(yard)
    assert yard.refused("sweep", "delete", "two") == "two is running: trainyard sweep stop two, or use --force"
    assert yard.run("sweep", "stop", "two") == "two stopped\n"
    _, err = process.communicate(timeout=150)
    assert process.returncode == 65
    assert err == "trainyard: two was stopped after 0 of 2 trials: trainyard sweep resume two\n"
    assert not yard.processes()
    assert yard.refused("sweep", "stop", "two") == "two is not running"
    # It was only stopped.
    (yard.home / "gate").touch()
    yard.run("sweep", "resume", "two")
    assert (sweep_dir(yard) / "trials.csv").read_text().count("complete") == 2
    yard.run("sweep", "delete", "two")
    assert files(yard) == []


def test_a_running_sweep_is_stopped_first_when_forced(yard):
    process = running(yard)
    assert yard.run("sweep", "delete", "two", "--force", "--json") == '{"sweep":"two","done":"deleted"}\n'
    process.communicate(timeout=150)
    assert process.returncode == 65
    assert not yard.processes() and files(yard) == []


def test_trials_that_outlived_their_sweep_are_not_deleted_unless_forced(yard):
    process = running(yard)
    process.kill()
    process.communicate()
    assert yard.refused("sweep", "delete", "two") == "two-t0 is running: trainyard sweep stop two, or use --force"
    yard.run("sweep", "delete", "two", "--force")
    assert not yard.processes() and files(yard) == []


def test_one_of_ask_and_tell_goes_as_well(yard):
    yard.run("sweep", "ask", "mine", "--param", "lr=1,2")
    assert yard.run("sweep", "delete", "mine") == "mine deleted\n"
    assert not sweep_dir(yard, "mine").exists()


def test_it_is_looked_for_where_it_was_begun(yard):
    yard.run(*WORDS)
    elsewhere = {"TRAINYARD_ON": "kubernetes", "KUBECONFIG": "/nowhere"}
    yard.run("sweep", "resume", "two", env=elsewhere)
    yard.run("sweep", "delete", "two", env=elsewhere)
    assert files(yard) == []


def test_delete_says_that_it_is_a_sweep(yard):
    yard.run(*WORDS)
    assert yard.refused("delete", "two") == "two is a sweep: trainyard sweep delete two"


@pytest.mark.parametrize("words, refusal", [
    (["train.py", "--param", "lr=1,2", "--force"], "--force is for sweep delete"),
    (["show", "--with-output"], "--with-output is for sweep delete"),
    (["delete", "--failed"], "--failed is for sweep tell"),
    (["delete", "../two"], "no sweep named ../two: see trainyard sweep ps"),
    (["delete", "../two", "--with-output"], "no sweep named ../two: see trainyard sweep ps"),
    (["delete", "a", "b"], "unexpected 'b'"),
    (["stop", "two"], "no sweep named two: see trainyard sweep ps"),
])
def test_bad_input_is_refused(yard, words, refusal):
    assert yard.refused("sweep", *words) == refusal
