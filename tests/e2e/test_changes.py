"""Live changes to a job: scale, suspend, stop, resume, delete, wait, time to live."""

import json

import pytest
from yard import wait_for


def counters(yard, job="train-1"):
    status = yard.status(job)
    return status["restarts"], status["disruptions"]


def workers(yard, replica="worker-0"):
    """How many workers the replica was told of, attempt by attempt."""
    lines = yard.log("train-1", replica).splitlines()
    return [len(json.loads(line[7:])["cluster"]["worker"]) for line in lines if line.startswith("config ")]


TELLS = "print('config', os.environ['TF_CONFIG'], flush=True)"


def test_scaling_a_gang_is_one_planned_restart(yard):
    run = yard.start("run", yard.staying(TELLS))
    before = yard.up("worker-0", "worker-1")
    assert "scaled to 3 worker" in yard.run("scale", "worker=3")
    more = yard.up("worker-0", "worker-1", "worker-2", but=before.values())
    yard.run("scale", "train-1", "worker=2")
    yard.up("worker-0", "worker-1", but=[*before.values(), *more.values()])
    wait_for(lambda: not yard.replica_pids("train-1", "worker-2"), "the third gone")
    yard.finish()
    yard.end(run)
    assert counters(yard) == (0, 0)
    assert workers(yard) == [2, 3, 2]


def test_scaling_the_workers_of_a_parameter_server_job_leaves_those_there_alone(yard):
    run = yard.start("run", "--ps", 1, yard.staying())
    before = yard.up("worker-0", "worker-1", "ps-0", "chief-0")
    yard.run("scale", "worker=3")
    after = yard.up("worker-0", "worker-1", "worker-2", "ps-0", "chief-0", but=[before["chief-0"]])
    assert [after[name] for name in ("worker-0", "worker-1", "ps-0")] == [
        before[name] for name in ("worker-0", "worker-1", "ps-0")]
    yard.finish()
    yard.end(run)
    assert counters(yard) == (0, 0)


def test_scaling_by_nothing_restarts_nothing(yard):
    run = yard.start("run", yard.staying())
    before = yard.up("worker-0", "worker-1")
    yard.run("scale", "worker=2")
    yard.finish()
    yard.end(run)
    assert yard.log("train-1", "worker-0").count(" started ") == 1
    assert before


def test_a_scale_that_leaves_nobody_or_names_nobody_is_refused(yard):
    run = yard.start("run", yard.staying())
    before = yard.up("worker-0", "worker-1")
    assert "no replica would be left" in yard.refused("scale", "worker=0")
    assert "has no ps, only worker" in yard.refused("scale", "ps=2")
    assert yard.up("worker-0", "worker-1") == before
    yard.finish()
    yard.end(run)


def test_a_suspended_job_is_scaled_and_resumed_in_its_new_shape(yard):
    run = yard.start("run", yard.staying(TELLS))
    before = yard.up("worker-0", "worker-1")
    yard.run("suspend")
    yard.end(run, status=65)
    assert not yard.processes()
    assert "Suspended" in yard.run("ps")
    yard.run("scale", "worker=3")
    run = yard.start("resume")
    yard.up("worker-0", "worker-1", "worker-2", but=before.values())
    yard.finish()
    yard.end(run)
    assert counters(yard) == (0, 0)
    assert workers(yard)[-1] == 3


def test_a_stopped_job_resumes(yard):
    run = yard.start("run", yard.staying())
    before = yard.up("worker-0", "worker-1")
    assert "stopped" in yard.run("stop")
    assert not yard.processes()
    yard.end(run, status=65)
    assert "Stopped" in yard.run("ps") and "stopped after" in yard.run("why")
    run = yard.start("resume")
    yard.up(*before, but=before.values())
    yard.finish()
    yard.end(run)
    assert yard.has("train-1", "Succeeded")
    assert counters(yard) == (0, 0)


def test_an_interrupted_job_is_stopped_and_suspended_without_a_supervisor(yard):
    for verb, word in (("suspend", "Suspended"), ("stop", "Stopped")):
        run = yard.start("run", "--name", verb, yard.staying())
        pids = yard.up("worker-0", "worker-1")
        run.kill()
        run.communicate()
        wait_for(lambda: not yard.processes(), "no process left", seconds=1)
        yard.run(verb, verb)
        assert word in yard.run("ps")
        yard.run("delete", verb)
        for file in yard.home.glob("up-*"):
            file.unlink()
        assert pids


WRITES = """
import os
for name in ('OUTPUT', 'CHECKPOINT', 'LOG'):
    open(os.environ[f'TRAINYARD_{name}_DIR'] + '/kept', 'w').close()
"""


def test_delete_keeps_the_output_and_with_output_removes_it(yard):
    yard.run("run", "-w", 1, "--name", "mine", yard.script(WRITES))
    out = yard.run("delete", "mine")
    assert "mine/output" in out and "mine/checkpoints" in out and "mine/tensorboard" in out
    assert sorted(p.name for p in yard.dir("mine").iterdir()) == ["checkpoints", "output", "tensorboard"]
    assert "no jobs" in yard.run("ps")
    line = yard.refused("run", "--name", "mine", yard.script(WRITES))
    assert "the output of a deleted job" in line and "delete --with-output mine" in line
    yard.run("delete", "--with-output", "mine")
    assert not yard.dir("mine").exists()
    yard.run("run", "-w", 1, "--name", "mine", yard.script(WRITES))


def test_delete_refuses_a_running_job_unless_forced(yard):
    run = yard.start("run", yard.staying())
    yard.up("worker-0", "worker-1")
    assert "is running" in yard.refused("delete")
    yard.run("delete", "--force")
    yard.end(run, status=65)
    assert not yard.dir("train-1").exists()


def test_output_elsewhere_is_never_deleted(yard):
    yard.run("run", "-w", 1, "--output", "elsewhere", yard.script(WRITES))
    yard.run("delete", "--with-output")
    assert (yard.home / "elsewhere/kept").exists()
    assert not yard.dir("train-1").exists()


def test_wait_returns_what_run_would(yard):
    yard.run("run", "--detach", "-w", 1, yard.script("import sys; sys.exit(5)"))
    yard.run("wait", status=5)
    answer = json.loads(yard.run("wait", "--json", status=5))
    assert answer["status"]["verdict"]["result"] == "failed"


def test_wait_gives_up_after_its_timeout(yard):
    yard.run("run", "--detach", yard.staying())
    yard.up("worker-0")
    yard.run("wait", "--timeout", "100ms", status=1)
    yard.finish()
    yard.run("wait", "--timeout", "30s")


def test_the_record_of_a_job_past_its_time_to_live_goes_and_its_output_stays(yard):
    yard.script(WRITES)
    manifest = yard.script("""
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: short-lived}
spec:
  runPolicy: {ttlSecondsAfterFinished: 0}
  tfReplicaSpecs:
    Worker: {template: {spec: {containers: [{name: tensorflow, image: a, command: [python3, train.py]}]}}}
""", "job.yaml")
    yard.run("run", "-f", manifest)
    wait_for(lambda: "no jobs" in yard.run("ps"), "the record gone")
    assert (yard.dir("short-lived") / "output/kept").exists()
    assert not (yard.dir("short-lived") / "status.json").exists()


@pytest.mark.parametrize("verb", ["stop", "suspend"])
def test_two_at_once_are_both_answered(yard, verb):
    run = yard.start("run", yard.staying())
    yard.up("worker-0", "worker-1")
    both = [yard.start(verb), yard.start(verb)]
    results = sorted(process.wait(150) for process in both)
    for process in both:
        process.communicate()
    assert results in ([0, 0], [0, 2])
    yard.end(run, status=65)
