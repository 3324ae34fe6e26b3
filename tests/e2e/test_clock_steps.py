"""Somebody sets the clock of the machine while jobs run: what is printed changes, and nothing else."""

import json

import pytest
from clock_step import STEPS, Clock
from shards import Shards, needs_client
from yard import wait_for


@pytest.fixture
def clock(yard):
    clock = Clock(yard.home / "clock")
    yard.env.update(clock.env)
    return clock


@pytest.mark.parametrize("step", STEPS)
def test_a_job_goes_on_and_its_lines_are_shown(yard, clock, step):
    yard.script("""
import os, time
print('before the step', flush=True)
while not os.path.exists('stepped'): time.sleep(0.01)
print('after the step', flush=True)
while not os.path.exists('finish'): time.sleep(0.01)
""")
    shown = yard.home / "shown"
    with open(shown, "w") as out:
        run = yard.start("run", "-w", 1, "--deadline", "10m", "train.py", stdout=out)
    wait_for(lambda: "before the step" in shown.read_text(), "a line is shown")
    clock.step(step)
    (yard.home / "stepped").touch()
    wait_for(lambda: "after the step" in shown.read_text(), "a line after the step is shown", seconds=10)
    assert yard.has("train-1", "Running")
    yard.finish()
    yard.end(run)
    status = yard.status("train-1")
    assert status["verdict"]["result"] == "succeeded"
    assert (status["restarts"], status["disruptions"]) == (0, 0)


@pytest.mark.parametrize("step", STEPS)
def test_a_pause_before_a_restart_lasts_as_long_as_it_should(yard, clock, step):
    # Fails three times: the pauses are 0, 1 and 2 seconds, by a clock that nobody sets.
    yard.script("""
import os, time
attempt = int(os.environ['TRAINYARD_ATTEMPT'])
with open('times', 'a') as file: print(time.monotonic(), file=file)
os._exit(0 if attempt == 3 else 137)
""")
    run = yard.start("run", "-w", 1, "--backoff-limit", 3, "train.py")
    times = yard.home / "times"
    wait_for(lambda: times.exists() and len(times.read_text().split()) == 2, "the second attempt")
    wait_for(lambda: yard.status("train-1").get("restarts") == 2, "the second failure is noticed")
    clock.step(step)
    yard.end(run)
    begun = [float(word) for word in times.read_text().split()]
    assert len(begun) == 4
    assert begun[2] - begun[1] >= 1 and begun[3] - begun[2] >= 2, begun


@needs_client
@pytest.mark.parametrize("step", STEPS)
def test_no_worker_is_taken_for_silent_and_no_shard_is_handed_out_twice(yard, clock, step):
    job = Shards(yard, pace=0.05)
    run = job.start("-w", 2, elastic="2:2")
    job.wait_for_holders("worker-0", "worker-1")
    wait_for(lambda: job.shards_trained() >= 4, "there is a measure of silence")
    job.hold("worker-1")
    clock.step(step)
    before = job.shards_trained()
    wait_for(lambda: job.shards_trained() >= before + 10, "the other worker goes on")
    job.release("worker-1")
    yard.end(run, seconds=60)
    job.check_complete()
    events = (yard.dir("train-1") / "events.jsonl").read_text()
    assert "MemberSilent" not in events
    status = yard.status("train-1")
    assert (status["restarts"], status["disruptions"]) == (0, 0)


def test_a_sweep_and_its_trials_go_on(yard, clock):
    yard.script("""
import os, sys, time
print('Epoch 1/1', flush=True)
lr = float(sys.argv[1].split('=')[1])
open(f'started-{lr}', 'w').close()
while not os.path.exists(f'finish-{lr}'): time.sleep(0.01)
print(f'10/10 - 0s - loss: {lr:.4f} - 0s/epoch - 9ms/step', flush=True)
""")
    values = ["0.1", "0.2", "0.3", "0.4"]
    run = yard.start("sweep", "train.py", "--param", "lr=" + ",".join(values), "-w", 1, "--name", "s", "--parallel", 1,
                     "--deadline", "10m", "--prune", "none")
    seen = []
    for step in STEPS:
        started = wait_for(lambda: sorted({file.name for file in yard.home.glob("started-*")} - set(seen)), "the next trial")[0]
        seen.append(started)
        clock.step(step)
        (yard.home / started.replace("started", "finish")).touch()
    out = yard.end(run)
    assert "best    trial" in out and "loss 0.1" in out
    for trial in range(len(values)):
        status = json.loads((yard.dir(f"s-t{trial}") / "status.json").read_text())
        assert status["verdict"]["result"] == "succeeded", status["verdict"]
        assert (status["restarts"], status["disruptions"]) == (0, 0)
