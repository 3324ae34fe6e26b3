"""Who is restarted after what, how often, and after which pause."""

import signal

import pytest
from yard import alive, wait_for

EVERYBODY = ("chief-0", "worker-0", "worker-1", "ps-0", "evaluator-0")


def start_all(yard, *flags):
    run = yard.start("run", "--ps", 1, "--evaluator", *flags, yard.staying())
    return run, yard.up(*EVERYBODY)


def finish(yard, run, restarts, disruptions=0):
    yard.finish()
    yard.end(run)
    status = yard.status("train-1")
    assert (status["restarts"], status["disruptions"]) == (restarts, disruptions)


def test_exit_137_restarts_under_exit_code(yard):
    yard.run("run", "-w", 1, yard.script("import os; os._exit(137 if os.environ['TRAINYARD_ATTEMPT'] == '0' else 0)"))
    assert yard.status("train-1")["restarts"] == 1


def test_exit_1_does_not_restart_under_exit_code(yard):
    yard.run("run", "-w", 1, yard.script("import os; os._exit(1 if os.environ['TRAINYARD_ATTEMPT'] == '0' else 0)"),
             status=1)
    assert yard.status("train-1")["restarts"] == 0


def test_exit_1_restarts_under_on_failure(yard):
    yard.run("run", "-w", 1, "--restart", "OnFailure",
             yard.script("import os; os._exit(1 if os.environ['TRAINYARD_ATTEMPT'] == '0' else 0)"))
    assert yard.status("train-1")["restarts"] == 1


def test_a_killed_worker_beside_parameter_servers_is_restarted_alone(yard):
    run, before = start_all(yard)
    yard.kill(before["worker-1"])
    after = yard.up(*EVERYBODY, but=[before["worker-1"]])
    assert {name for name in EVERYBODY if after[name] != before[name]} == {"worker-1"}
    finish(yard, run, restarts=1)


def test_a_killed_parameter_server_takes_the_chief_with_it_and_leaves_the_workers(yard):
    run, before = start_all(yard)
    yard.kill(before["ps-0"])
    after = yard.up(*EVERYBODY, but=[before["ps-0"], before["chief-0"]])
    assert {name for name in EVERYBODY if after[name] != before[name]} == {"ps-0", "chief-0"}
    finish(yard, run, restarts=1)


def test_a_killed_chief_beside_parameter_servers_is_restarted_alone(yard):
    run, before = start_all(yard)
    yard.kill(before["chief-0"])
    after = yard.up(*EVERYBODY, but=[before["chief-0"]])
    assert {name for name in EVERYBODY if after[name] != before[name]} == {"chief-0"}
    finish(yard, run, restarts=1)


def test_an_evaluator_is_restarted_alone_and_leaves_a_gang_alone(yard):
    run = yard.start("run", "--evaluator", yard.staying())
    before = yard.up("worker-0", "worker-1", "evaluator-0")
    yard.kill(before["evaluator-0"])
    after = yard.up(*before, but=[before["evaluator-0"]])
    assert {name for name in after if after[name] != before[name]} == {"evaluator-0"}
    finish(yard, run, restarts=1)


def test_a_gang_is_restarted_whole_and_its_evaluator_goes_on(yard):
    run = yard.start("run", "--chief", "--evaluator", yard.staying())
    before = yard.up("chief-0", "worker-0", "worker-1", "evaluator-0")
    yard.kill(before["worker-1"])
    gone = [before[name] for name in ("chief-0", "worker-0", "worker-1")]
    after = yard.up(*before, but=gone)
    assert after["evaluator-0"] == before["evaluator-0"]
    assert not any(alive(pid) for pid in gone)
    finish(yard, run, restarts=1)


def test_all_workers_killed_all_come_back(yard):
    run, before = start_all(yard)
    gone = [before["worker-0"], before["worker-1"]]
    yard.kill(*gone)
    after = yard.up(*EVERYBODY, but=gone)
    assert {name for name in EVERYBODY if after[name] != before[name]} == {"worker-0", "worker-1"}
    finish(yard, run, restarts=2)


def test_the_whole_gang_killed_at_once_is_one_restart(yard):
    run = yard.start("run", "-w", 3, yard.staying())
    before = yard.up("worker-0", "worker-1", "worker-2")
    yard.kill(*before.values())
    yard.up(*before, but=before.values())
    finish(yard, run, restarts=1)


def test_scope_replica_restarts_one_worker_of_a_collective_alone(yard):
    run = yard.start("run", "--restart-scope", "Replica", yard.staying())
    before = yard.up("worker-0", "worker-1")
    yard.kill(before["worker-1"])
    after = yard.up(*before, but=[before["worker-1"]])
    assert after["worker-0"] == before["worker-0"]
    finish(yard, run, restarts=1)


def test_scope_job_restarts_everybody_beside_parameter_servers(yard):
    run, before = start_all(yard, "--restart-scope", "Job")
    yard.kill(before["worker-1"])
    gone = [pid for name, pid in before.items() if name != "evaluator-0"]
    after = yard.up(*EVERYBODY, but=gone)
    assert after["evaluator-0"] == before["evaluator-0"]
    finish(yard, run, restarts=1)


def test_pauses_grow_and_the_limit_ends_the_job(yard):
    script = yard.script("import os, time; print('at', time.time(), flush=True); os.kill(os.getpid(), 9)")
    out = yard.run("run", "-w", 1, "--backoff-limit", 3, script, status=64)
    assert "after 3 restarts" in out
    times = [float(line.split()[1]) for line in yard.log("train-1", "worker-0").splitlines() if line.startswith("at ")]
    pauses = [after - before for before, after in zip(times, times[1:])]
    assert len(pauses) == 3  # at once, after 1 s, after 2 s
    assert pauses[1] >= 1 and pauses[2] >= 2


def test_counter_and_pause_survive_a_killed_supervisor(yard):
    script = yard.script("import os, time; print('at', time.time(), flush=True); os.kill(os.getpid(), 9)")
    run = yard.start("run", "-w", 1, "--backoff-limit", 2, script)
    wait_for(lambda: yard.status("train-1").get("restarts") == 2, "in the pause before the last try")
    began = yard.log("train-1", "worker-0").count("at ")
    run.kill()
    run.wait()
    assert began == 2
    out = yard.run("resume", "train-1", status=64)
    assert "after 2 restarts" in out
    status = yard.status("train-1")
    assert (status["restarts"], status["disruptions"]) == (2, 0)
    times = [float(line.split()[1]) for line in yard.log("train-1", "worker-0").splitlines() if line.startswith("at ")]
    assert len(times) == 3 and times[2] - times[1] >= 1


def test_a_resumed_failure_gets_its_restarts_anew(yard):
    script = yard.script("import os; os.kill(os.getpid(), 9)")
    yard.run("run", "-w", 1, "--backoff-limit", 1, script, status=64)
    yard.run("resume", status=64)
    assert yard.status("train-1")["restarts"] == 1


def test_an_edited_script_does_not_change_a_running_job(yard):
    script = yard.staying("print('first edition', flush=True)")
    run = yard.start("run", "-w", 1, script)
    before = yard.up("worker-0")
    script.write_text("raise SystemExit('second edition')")
    yard.kill(before["worker-0"])
    yard.up("worker-0", but=before.values())
    finish(yard, run, restarts=1)
    assert yard.log("train-1", "worker-0").count("first edition") == 2


def test_a_restart_after_an_edit_finds_the_same_modules(yard):
    (yard.home / "lib").mkdir()
    yard.script("", "lib/of_env_file.py")
    yard.script("", "beside.py")
    env = yard.script(f"PYTHONPATH={yard.home}/lib\n", "my.env")
    script = yard.staying("import beside, of_env_file")
    run = yard.start("run", "-w", 1, "-e", env, script)
    before = yard.up("worker-0")
    script.write_text("raise SystemExit('second edition')")
    yard.kill(before["worker-0"])
    yard.up("worker-0", but=before.values())
    finish(yard, run, restarts=1)


def test_the_exit_of_preemption_is_a_disruption_and_never_the_end(yard):
    script = yard.script("import os; os._exit(42 if int(os.environ['TRAINYARD_ATTEMPT']) < 2 else 0)")
    yard.run("run", "-w", 1, "--restart", "Never", "--backoff-limit", 0, script)
    assert yard.status("train-1")["disruptions"] == 2


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_why_names_the_signal_and_blames_nobody_else(yard, sig):
    run = yard.start("run", yard.staying())
    before = yard.up("worker-0", "worker-1")
    yard.kill(before["worker-1"], sig=sig)
    yard.up(*before, but=before.values())
    finish(yard, run, restarts=1)
    why = yard.run("why")
    assert f"worker/1 was killed by {sig.name}" in why
    assert "worker/0 was" not in why


def test_a_manifest_without_a_limit_is_restarted_three_times(yard):
    manifest = yard.script("""
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: endless}
spec:
  tfReplicaSpecs:
    Worker:
      restartPolicy: OnFailure
      template: {spec: {containers: [{name: tensorflow, image: i, command: ["false"]}]}}
""", "endless.yaml")
    out = yard.run("run", "-f", manifest, status=64)
    assert "after 3 restarts, as many as backoffLimit allows" in out


def test_a_working_directory_that_is_gone_ends_the_job_and_resume_says_so(yard):
    work = yard.home / "work"
    work.mkdir()
    script = yard.script("""
import os, time
if os.environ['TRAINYARD_ATTEMPT'] == '0':
    os.rmdir(os.getcwd())
    os.kill(os.getpid(), 9)
""")
    out = yard.run("run", "-w", 1, script, cwd=work, status=127, seconds=20)
    assert f"could not be started: its working directory {work}: No such file or directory" in out
    assert "create the directory again, then: trainyard resume train-1" in out
    assert yard.refused("resume", "train-1") == f"train-1 runs in {work}, which is gone: create it again, then resume"
    work.mkdir()
    yard.run("resume", "train-1", cwd=work)


def test_an_environment_that_is_too_long_ends_the_job(yard):
    env_file = yard.home / "long.env"
    env_file.write_text("LONG=" + "x" * (129 << 10) + "\n")
    out = yard.run("run", "-w", 1, "-e", env_file, yard.script("print('hello')"), status=126, seconds=20)
    assert "could not be started: its arguments and environment variables are too long" in out


def test_a_shell_in_a_directory_that_is_gone_can_resume(yard):
    yard.run("run", "-w", 1, yard.script("import os; os._exit(1 if os.environ['TRAINYARD_ATTEMPT'] == '0' else 0)"), status=1)
    gone = yard.home / "gone"
    gone.mkdir()
    yard.run("resume", "train-1", cwd=gone, preexec_fn=gone.rmdir)


def test_the_verdict_names_the_time_zone(yard):
    script = yard.script("raise SystemExit(3)")
    out = yard.run("run", "-w", 1, script, status=3, env={"TZ": "XYZ-3"})
    when = yard.status("train-1")["incidents"][0]["when"]
    hour = (int(when[11:13]) + 3) % 24
    assert f"  first   {hour:02}{when[13:23]} XYZ  worker/0  exited with status 3" in out
    assert f"{when[:19]}Z" in yard.run("why") and "Z  Normal" in yard.run("events")
