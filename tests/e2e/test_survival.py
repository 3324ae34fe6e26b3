"""Nothing outlives its supervisor or its guard, and the job goes on from what was kept."""

import signal

import pytest
from yard import alive, wait_for

# Every way in which a program tries to leave its family.
FAMILY = """
import subprocess, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen(['sleep', '600'])
subprocess.Popen(['setsid', 'sleep', '600'])
subprocess.Popen([sys.executable, '-c', 'import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)'],
                 start_new_session=True)
if os.fork() == 0:  # a daemon: two forks, a session of its own, no descriptor and no environment of ours
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 64)
        os.execvp('sleep', ['sleep', '600'])
    os._exit(0)
os.wait()
"""


def start(yard, *flags, workers=2):
    run = yard.start("run", "-w", workers, *flags, yard.staying(FAMILY))
    pids = yard.up(*(f"worker-{i}" for i in range(workers)))
    # Per worker: its guard, itself, four descendants.
    wait_for(lambda: len(yard.processes()) >= 1 + 6 * workers, "all descendants")
    return run, pids


def test_nothing_outlives_a_killed_supervisor(yard):
    run, before = start(yard)
    run.kill()
    run.wait()
    wait_for(lambda: not yard.processes(), "no process left", seconds=1)
    assert "Interrupted" in yard.run("ps")
    assert "resume train-1" in yard.run("why", "train-1")
    assert "TFJobRunning" in yard.run("get", "train-1")
    yard.run("logs", "train-1")
    yard.run("events", "train-1")
    run = yard.start("resume", "train-1")
    yard.up(*before, but=before.values())
    yard.finish()
    yard.end(run)
    status = yard.status("train-1")
    assert (status["restarts"], status["disruptions"]) == (0, 1)


def test_nothing_of_a_replica_outlives_its_killed_guard_and_the_job_goes_on(yard):
    run, before = start(yard)
    family = [pid for pid in yard.processes() if pid != run.pid]
    yard.kill(yard.guard_pids("train-1", "worker-1")[0])
    after = yard.up(*before, but=before.values())
    assert not [pid for pid in family if alive(pid)]
    assert set(after.values()).isdisjoint(before.values())
    yard.finish()
    yard.end(run)
    status = yard.status("train-1")
    assert (status["restarts"], status["disruptions"]) == (0, 1)
    assert "guard was killed" in yard.run("why")


def test_nothing_outlives_supervisor_and_guard_killed_together(yard):
    run, before = start(yard)
    yard.kill(run.pid, yard.guard_pids("train-1", "worker-1")[0])
    run.wait()
    wait_for(lambda: not yard.processes(), "no process left", seconds=1)
    run = yard.start("resume", "train-1")
    yard.up(*before, but=before.values())
    yard.finish()
    yard.end(run)


def test_nothing_outlives_the_supervisor_and_the_only_guard_killed_together(yard):
    run, before = start(yard, workers=1)
    yard.kill(run.pid, yard.guard_pids("train-1", "worker-0")[0])
    run.wait()
    wait_for(lambda: not yard.processes(), "no process left", seconds=1)
    yard.run("delete")


def test_what_a_program_leaves_behind_ends_with_it(yard):
    yard.run("run", yard.script("import os\n" + FAMILY))
    assert not yard.processes()


def test_a_stop_ends_all_processes_of_a_replica_with_grace(yard):
    run = yard.start("run", "-w", 1, yard.staying("""
import subprocess, sys
subprocess.Popen(['setsid', 'sleep', '600'])
import signal
def bye(*_):
    print('saved', flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, bye)
"""))
    yard.up("worker-0")
    yard.run("stop")
    yard.end(run, status=65)
    assert "saved" in yard.log("train-1", "worker-0")


def test_a_stopped_process_is_ended_too(yard):
    run = yard.start("run", "-w", 1, yard.staying())
    pids = yard.up("worker-0")
    yard.kill(pids["worker-0"], sig=signal.SIGSTOP)
    yard.run("stop")
    yard.end(run, status=65, seconds=10)


def test_the_grace_of_a_manifest_is_kept(yard):
    yard.staying("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)")
    manifest = yard.script("""
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: stubborn}
spec:
  tfReplicaSpecs:
    Worker:
      template:
        spec:
          terminationGracePeriodSeconds: 1
          containers: [{name: tensorflow, image: a, command: [python3, train.py]}]
""", "job.yaml")
    run = yard.start("run", "-f", manifest)
    yard.up("worker-0")
    yard.run("stop")
    yard.end(run, status=65, seconds=15)


def test_a_running_job_is_not_resumed_a_second_time(yard):
    run = yard.start("run", "-w", 1, yard.staying())
    yard.up("worker-0")
    assert "is running already" in yard.refused("resume", "train-1")
    yard.finish()
    yard.end(run)


def test_a_detached_job_outlives_its_terminal_and_ends_by_itself(yard):
    yard.run("run", "--detach", yard.staying(), start_new_session=True, seconds=5)
    yard.up("worker-0", "worker-1")
    assert "Running" in yard.run("ps")
    yard.finish()
    assert "train-1 succeeded" in yard.run("wait", "train-1")


def test_a_detached_supervisor_that_is_killed_can_be_resumed_detached(yard):
    yard.run("run", "--detach", yard.staying())
    before = yard.up("worker-0", "worker-1")
    others = set(yard.guard_pids("train-1", "worker-0") + yard.guard_pids("train-1", "worker-1")) | set(before.values())
    (supervisor,) = set(yard.processes()) - others
    yard.kill(supervisor)
    wait_for(lambda: not yard.processes(), "no process left", seconds=1)
    yard.run("resume", "-d")
    yard.up("worker-0", "worker-1", but=before.values())
    yard.finish()
    yard.run("wait")


@pytest.mark.parametrize("victim", ["supervisor", "guard"])
def test_a_kill_right_at_the_start_loses_nothing(yard, victim):
    for delay in range(5):  # different moments, none of them waited for: each must be fine
        run = yard.start("run", "--name", f"early-{delay}", yard.script("import time; time.sleep(0.2)", f"e{delay}.py"))
        if victim == "supervisor":
            wait_for(lambda: yard.dir(f"early-{delay}").exists(), "the job's directory")
            for _ in range(delay):
                yard.processes()  # a few milliseconds each
            run.kill()
            run.communicate()
            wait_for(lambda: not yard.processes(), "no process left", seconds=1)
            if (yard.dir(f"early-{delay}") / "job.yaml").exists():
                yard.run("resume", f"early-{delay}")
            else:
                yard.run("delete", f"early-{delay}")
        else:
            guards = wait_for(lambda: yard.guard_pids(f"early-{delay}", "worker-1"), "a guard")
            yard.kill(guards[0])
            yard.end(run)


@pytest.mark.parametrize("words", [("run", "-w", 1), ("sweep", "--param", "lr=0.1", "--metric", "loss", "--goal", "min", "-w", 1)],
                         ids=["run", "sweep"])
def test_a_signal_that_is_ignored_stays_ignored(yard, words):
    """As after `nohup`: the terminal is closed and the job goes on."""
    ignore = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)  # noqa: E731
    run = yard.start(*words, yard.staying("print('10/10 - 0s - loss: 0.5 - 0s/epoch - 9ms/step')"), preexec_fn=ignore)
    yard.up("worker-0")
    run.send_signal(signal.SIGHUP)
    yard.finish()
    yard.end(run)
