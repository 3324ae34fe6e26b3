"""What `trainyard run` and its kin return: the table of exit statuses."""

import signal

import pytest
from yard import wait_for

IGNORES_SIGTERM = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"


def test_success_is_0(yard):
    yard.run("run", yard.script("pass"))


def test_a_replica_s_own_status_is_the_job_s(yard):
    out = yard.run("run", "-w", 1, yard.script("import sys; sys.exit(7)"), status=7)
    assert "exited with status 7" in out


def test_a_signal_under_never_is_128_and_its_number(yard):
    out = yard.run("run", "-w", 1, "--restart", "Never", yard.script("import os; os.kill(os.getpid(), 11)"), status=139)
    assert "SIGSEGV" in out


def test_a_spent_backoff_limit_is_64(yard):
    script = yard.script("import os; os.kill(os.getpid(), 9)")
    out = yard.run("run", "-w", 1, "--backoff-limit", 0, script, status=64)
    assert "backoffLimit" in out


def test_a_deadline_is_64(yard):
    run = yard.start("run", "--deadline", "1s", yard.staying())
    out = yard.end(run, status=64)
    assert "activeDeadlineSeconds" in out


@pytest.mark.parametrize("verb, word", [("stop", "Stopped"), ("suspend", "Suspended")])
def test_a_job_that_somebody_ends_elsewhere_is_65(yard, verb, word):
    run = yard.start("run", yard.staying())
    yard.up("worker-0", "worker-1")
    yard.run(verb, "train-1")
    yard.end(run, status=65)
    assert word in yard.run("ps")
    yard.run("wait", "train-1", status=65)


@pytest.mark.parametrize("verb", ["wait", "top"])
def test_a_verb_that_needs_a_supervisor_which_is_gone_is_69(yard, verb):
    run = yard.start("run", yard.staying())
    yard.up("worker-0", "worker-1")
    run.kill()
    yard.end(run, status=-signal.SIGKILL)
    yard.run(verb, "train-1", status=69)
    yard.run("delete", "train-1")


def test_ctrl_c_is_130_and_the_job_can_go_on(yard):
    run = yard.start("run", yard.staying())
    first = yard.up("worker-0", "worker-1")
    run.send_signal(signal.SIGINT)
    out = yard.end(run, status=130)
    assert "train-1 stopped" in out and "trainyard resume train-1" in out
    run = yard.start("resume", "train-1")
    yard.up("worker-0", "worker-1", but=first.values())
    yard.finish()
    yard.end(run)
    assert yard.has("train-1", "Succeeded") and not yard.has("train-1", "Failed")


def test_a_second_ctrl_c_kills_at_once_what_ignores_sigterm(yard):
    run = yard.start("run", yard.staying(IGNORES_SIGTERM))
    yard.up("worker-0", "worker-1")
    run.send_signal(signal.SIGINT)
    wait_for(lambda: yard.has("train-1", "Failed"), "stopping")
    run.send_signal(signal.SIGINT)
    yard.end(run, status=130, seconds=5)  # the grace is 30 s


def test_two_signals_in_a_row_kill_at_once_whatever_the_guard_was_doing(yard):
    # The guard may read the polite word and the other one in a single read.
    for _ in range(5):
        run = yard.start("run", yard.staying(IGNORES_SIGTERM))
        yard.up("worker-0", "worker-1")
        run.send_signal(signal.SIGINT)
        run.send_signal(signal.SIGTERM)
        out, _ = run.communicate(timeout=150)
        assert run.returncode in (130, 143)
        for file in yard.home.glob("up-*"):
            file.unlink()


@pytest.mark.parametrize("sig", [signal.SIGHUP, signal.SIGTERM])
def test_the_end_of_the_terminal_stops_the_job_cleanly(yard, sig):
    run = yard.start("run", yard.staying("import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))"))
    yard.up("worker-0", "worker-1")
    run.send_signal(sig)
    out = yard.end(run, status=128 + sig)
    assert f"— by {sig.name}" in out
    assert yard.has("train-1", "Failed")


def test_a_program_that_cannot_be_started_is_named(yard):
    manifest = yard.script("""
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: no-program}
spec:
  tfReplicaSpecs:
    Worker: {template: {spec: {containers: [{name: tensorflow, image: a, command: [no-such-program]}]}}}
""", "job.yaml")
    out = yard.run("run", "-f", manifest, status=127)
    assert "worker/0 could not be started: no-such-program: No such file or directory" in out
