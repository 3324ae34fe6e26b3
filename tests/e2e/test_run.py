"""`trainyard run` with small programs: exit statuses, restarts, what outlives what."""

import signal

from yard import alive, wait_for

HELLO = "import os; print('hello from', os.environ['TRAINYARD_ROLE'], os.environ['TRAINYARD_INDEX'])"


def test_two_workers_run_and_the_job_succeeds(yard):
    out = yard.run("run", yard.script(HELLO))
    lines = [line.split(maxsplit=1) for line in out.splitlines()]
    assert ["worker/0", "hello from worker 0"] in lines
    assert ["worker/1", "hello from worker 1"] in lines
    assert "train-1 succeeded" in out
    assert yard.has("train-1", "Succeeded")


def test_an_exception_is_the_cause_and_its_status_the_exit_status(yard):
    script = yard.script("raise ValueError('no such data')")
    out = yard.run("run", "-w", 1, script, status=1)
    assert "ValueError: no such data" in out.split("train-1 failed")[1].splitlines()[0]


def test_a_killed_worker_restarts_the_whole_gang_once(yard):
    script = yard.script("""
import os, sys, time
if os.environ['TRAINYARD_ATTEMPT'] != '0': sys.exit(0)
open(f"ready-{os.environ['TRAINYARD_INDEX']}", 'w').close()
time.sleep(600)
""")
    run = yard.start("run", script)
    wait_for(lambda: (yard.home / "ready-0").exists() and (yard.home / "ready-1").exists(), "both workers up")
    (victim,) = yard.replica_pids("train-1", "worker-1")
    (peer,) = yard.replica_pids("train-1", "worker-0")
    yard.kill(victim)
    out, _ = run.communicate(timeout=150)
    assert run.returncode == 0, out
    status = yard.status("train-1")
    assert status["restarts"] == 1
    assert not alive(peer)
    why = yard.run("why", "train-1")
    assert "worker/1 was killed by SIGKILL" in why


def test_ctrl_c_stops_the_job_and_says_so(yard):
    run = yard.start("run", yard.script("import time; time.sleep(600)"))
    wait_for(lambda: yard.has("train-1", "Running"), "running")
    run.send_signal(signal.SIGINT)
    out, _ = run.communicate(timeout=150)
    assert run.returncode == 130
    assert "train-1 stopped" in out and "trainyard resume train-1" in out


def test_nothing_outlives_a_killed_supervisor_and_resume_finishes_the_job(yard):
    script = yard.script("""
import os, subprocess, sys, time
if os.environ['TRAINYARD_ATTEMPT'] != '0': sys.exit(0)
subprocess.Popen(['setsid', 'sleep', '600'])
open(f"ready-{os.environ['TRAINYARD_INDEX']}", 'w').close()
time.sleep(600)
""")
    run = yard.start("run", script)
    wait_for(lambda: (yard.home / "ready-0").exists() and (yard.home / "ready-1").exists(), "both workers up")
    assert len(yard.processes()) >= 7  # supervisor, two guards, two workers, two grandchildren
    run.kill()
    run.wait()
    wait_for(lambda: not yard.processes(), "no process left", seconds=1)
    assert "Interrupted" in yard.run("ps")
    yard.run("logs", "train-1")
    assert "resume train-1" in yard.run("why", "train-1")
    out = yard.run("resume", "train-1")
    assert "train-1 succeeded" in out
    assert yard.status("train-1")["restarts"] == 0
    assert yard.status("train-1")["disruptions"] == 1
