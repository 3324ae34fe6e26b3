"""Several jobs at once, many replicas, many records."""

import json
import resource
import shutil
import time

from yard import wait_for

TELLS = """
import json, os, pathlib
config = os.environ.get('TF_CONFIG', '{}')
pathlib.Path('told-' + os.environ['TRAINYARD_JOB']).write_text(json.dumps(
    [config, os.environ['TRAINYARD_OUTPUT_DIR'], os.environ['TRAINYARD_CHECKPOINT_DIR'], os.environ['TRAINYARD_LOG_DIR']]))
"""


def test_jobs_started_at_the_same_moment_share_no_name_port_or_directory(yard):
    script = yard.staying(TELLS)
    runs = [yard.start("run", script) for _ in range(6)]
    told = wait_for(lambda: files if len(files := list(yard.home.glob("told-*"))) == 6 else None, "six jobs")
    yard.finish()
    for run in runs:
        yard.end(run)
    assert {file.name for file in told} == {f"told-train-{i}" for i in range(1, 7)}
    values = [json.loads(file.read_text()) for file in told]
    ports = [address for config, *_ in values for address in json.loads(config)["cluster"]["worker"]]
    assert len(ports) == len(set(ports)) == 12
    directories = [directory for _, *rest in values for directory in rest]
    assert len(directories) == len(set(directories)) == 18


def test_a_look_never_gets_in_the_way_of_a_start(yard):
    lookers = [yard.start("wait", "none", "--timeout", "1s") for _ in range(2)]
    script = yard.script("pass")
    for _ in range(10):
        runs = [yard.start("run", "-w", 1, script), yard.start("ps"), yard.start("ps", "--json")]
        for run in runs:
            yard.end(run)
    for looker in lookers:
        yard.end(looker, status=2)


def test_ports_stay_the_same_across_restarts_and_resumes(yard):
    script = yard.staying("print('config', os.environ['TF_CONFIG'], flush=True)")
    run = yard.start("run", script)
    before = yard.up("worker-0", "worker-1")
    yard.kill(before["worker-0"])
    again = yard.up("worker-0", "worker-1", but=before.values())
    run.kill()
    run.communicate()
    run = yard.start("resume")
    yard.up("worker-0", "worker-1", but=[*before.values(), *again.values()])
    yard.finish()
    yard.end(run)
    configs = [line for line in yard.log("train-1", "worker-1").splitlines() if line.startswith("config")]
    assert len(configs) == 3 and len(set(configs)) == 1


def test_64_replicas_start_and_finish(yard):
    began = time.monotonic()
    yard.run("run", "-w", 64, yard.script("print('here')"))
    print(f"64 replicas of a no-op script: {time.monotonic() - began:.2f} s")
    assert all("here" in yard.log("train-1", f"worker-{i}") for i in range(64))


def limit_descriptors(soft):
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def test_more_replicas_live_at_once_than_descriptors_are_allowed_at_first(yard):
    manifest = yard.script("""
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: crowd}
spec:
  successPolicy: AllWorkers
  tfReplicaSpecs:
    Worker:
      replicas: 300
      template:
        spec:
          containers:
            - name: tensorflow
              image: a
              command: [sh, -c, "ulimit -n >up-$TRAINYARD_INDEX; while [ ! -e finish ]; do sleep 0.5; done"]
""", "job.yaml")
    run = yard.start("run", "-f", manifest, preexec_fn=lambda: limit_descriptors(256))
    files = wait_for(lambda: up if len(up := list(yard.home.glob("up-*"))) == 300 else None, "300 replicas up")
    wait_for(lambda: all(file.read_text() for file in files), "all have told")
    assert {file.read_text() for file in files} == {"256\n"}  # the replicas see what the user has
    yard.finish()
    yard.end(run)
    assert yard.status("crowd")["replicaStatuses"]["Worker"]["succeeded"] == 300


def test_a_small_limit_of_descriptors_is_enough_for_a_small_job(yard):
    yard.run("run", yard.script("pass"), preexec_fn=lambda: limit_descriptors(64))


def test_ps_answers_with_a_thousand_finished_jobs(yard):
    yard.run("run", yard.script("pass"))
    finished = yard.dir("train-1")
    for i in range(2, 1001):
        shutil.copytree(finished, finished.parent / f"train-{i}", ignore=shutil.ignore_patterns("logs", "code"))
    took = []
    for _ in range(5):
        began = time.monotonic()
        out = yard.run("ps")
        took.append(time.monotonic() - began)
    print(f"ps with 1,000 finished jobs: {1000 * sorted(took)[2]:.0f} ms")
    lines = out.splitlines()
    assert len(lines) == 1001
    assert all("Succeeded" in line for line in lines[1:])
    assert len(json.loads(yard.run("ps", "--json"))) == 1000
