"""Elastic jobs: workers come and go, are killed, and every record is trained."""

import json

import pytest
from shards import PYTHONS, Shards, needs_client
from yard import alive, wait_for

pytestmark = needs_client


@pytest.mark.parametrize("client", ["10", "14"])
def test_three_workers_end_by_themselves_and_train_every_record_once(yard, client):
    job = Shards(yard, size=305, epochs=2, client=client)
    out = yard.end(job.start(elastic="3:3"), seconds=90)
    assert "succeeded" in out and "all records" in out
    job.check_complete()
    assert set(job.trained().values()) == {2}
    assert yard.run("audit") == "numbers: 305 records, complete\n  epoch 1: 305 once\n  epoch 2: 305 once\n"
    status = yard.status("train-1")
    assert (status["restarts"], status["disruptions"]) == (0, 0)
    assert "all records" in yard.run("why")
    assert json.loads(yard.run("get", "-o", "json"))["status"]["shards"]["recordsTotal"] == 610


def test_replicas_are_told_where_the_master_is_and_who_they_are(yard):
    script = yard.staying("print(*(os.environ.get(n) for n in ('MASTER_ADDR', 'DLROVER_MASTER_ADDR', 'WORKER_ID', "
                          "'WORKER_NUM', 'MY_POD_IP', 'RELAUNCHED_POD')), flush=True)")
    run = yard.start("run", "--elastic", "1:4", "-w", 2, "--name", "a", script)
    yard.up("worker-1")  # the job is over with worker 0, which must not be before worker 1 has spoken
    yard.finish()
    yard.end(run)
    (line,) = (line for line in yard.log("a", "worker-1").splitlines() if line.startswith("127.0.0.1:"))
    master, dlrover, *rest = line.split()
    assert master == dlrover
    assert rest == ["1", "2", "127.0.0.1", "false"]
    yard.run("run", "-w", 1, "--name", "b", script, env={"MASTER_ADDR": ""})
    assert "None" in yard.log("b", "worker-0"), "only elastic jobs have a master"
    assert "no data has been registered" in yard.run("audit", "a")
    assert "b is not elastic" in yard.refused("audit", "b")


def test_parameter_servers_know_workers_before_they_come(yard):
    script = yard.staying("print(os.environ['TF_CONFIG'], flush=True)")
    flags = ["--elastic", "1:3", "-w", 1, "--ps", 1, "--name", "a", script]
    run = yard.start("run", *flags)
    yard.up("chief-0", "ps-0", "worker-0")
    yard.run("scale", "worker=3")
    yard.up("worker-2")
    yard.finish()
    yard.end(run)

    def known_by(replica):
        (line,) = (line for line in yard.log("a", replica).splitlines() if line.startswith("{"))
        return json.loads(line)["cluster"]["worker"]
    assert len(set(known_by("ps-0"))) == 3 and known_by("ps-0") == known_by("worker-2")
    assert known_by("chief-0") == known_by("ps-0")[:1], "which a coordinator would wait for"
    rendered = json.loads(yard.run("render", "--json", *flags))["replicas"]
    (config,) = (one["env"]["TF_CONFIG"] for one in rendered if one["replica"] == "ps/0")
    assert len(json.loads(config)["cluster"]["worker"]) == 3 and len(rendered) == 3


def test_a_range_that_is_none_is_refused(yard):
    script = yard.script("")
    for wrong in ("4", "4:2", "0:2", "a:b"):
        assert "MIN:MAX" in yard.refused("run", "--elastic", wrong, script)
    assert "from 2 to 3 workers" in yard.refused("run", "--elastic", "2:3", "-w", 5, script)


def test_a_killed_worker_is_replaced_and_its_shard_is_trained_by_another(yard):
    job = Shards(yard)
    job.hold()
    run = job.start("-w", 3, "--backoff-limit", 0)
    pids = job.wait_for_holders("worker-0", "worker-1", "worker-2")
    yard.kill(pids["worker-1"])
    again = job.wait_for_holders("worker-1", but=pids.values())
    assert job.holders()["worker-0"] == pids["worker-0"], "nobody else is restarted"
    assert again["worker-1"] != pids["worker-1"]
    job.release()
    yard.end(run, seconds=60)
    job.check_complete()
    status = yard.status("train-1")
    assert (status["restarts"], status["disruptions"]) == (0, 1)


def test_a_killed_supervisor_is_resumed_from_the_ledger(yard):
    job = Shards(yard, size=400, pace=0.05)
    run = job.start("-w", 2)
    wait_for(lambda: job.shards_trained() >= 5, "some shards")
    run.kill()
    run.communicate()
    wait_for(lambda: not yard.processes(), "no process left, the master included", seconds=5)
    before = job.shards_trained()
    yard.end(yard.start("resume", "train-1"), seconds=90)
    job.check_complete(doubles=2)
    assert before < 40, "there was something left to do"


def test_a_killed_master_is_started_again_and_nobody_else(yard):
    job = Shards(yard)
    job.hold()
    run = job.start("-w", 2)
    pids = job.wait_for_holders("worker-0", "worker-1")
    master = job.master_pid()
    yard.kill(master)
    wait_for(lambda: job.master_pid() not in (None, master), "another master")
    assert job.holders() == pids
    job.release()
    yard.end(run, seconds=120)
    job.check_complete()
    assert "MasterLost" in yard.run("events") and "MasterRestarted" in yard.run("events")


def test_a_worker_that_takes_a_lost_master_for_the_end_of_the_data_is_replaced_when_there_is_some(yard):
    job = Shards(yard, size=20, client="10")
    job.hold()
    run = job.start("-w", 2, "--backoff-limit", 0)
    pids = job.wait_for_holders("worker-0", "worker-1")
    job.hold("worker-1")
    job.release()  # worker 0 reports, and asks for what only worker 1 has
    wait_for(lambda: job.status().get("shards", {}).get("recordsLeft") == 10, "the first shard is done")
    yard.kill(job.master_pid())
    wait_for(lambda: not alive(pids["worker-0"]), "worker 0 has taken that for the end")
    assert "no more data after 1 shards" in yard.log("train-1", "worker-0")
    wait_for(job.master_pid, "another master")
    assert run.poll() is None and alive(pids["worker-1"]), "one who misunderstood does not end the job"
    yard.kill(pids["worker-1"])  # its shard is there for others
    job.release("worker-1")
    yard.end(run, seconds=60)
    job.check_complete(doubles=1)
    status = yard.status("train-1")
    assert (status["restarts"], status["disruptions"]) == (0, 2)
    assert "without knowing it" in yard.run("why")


def test_workers_come_and_go_and_nobody_else_is_restarted(yard):
    job = Shards(yard, before="while held > 1 and os.path.exists(f'brake-{name}'): time.sleep(0.01)")
    brakes = [yard.home / f"brake-worker-{index}" for index in range(4)]  # each trains one shard and keeps the second
    for brake in brakes:
        brake.touch()
    run = job.start("-w", 1, elastic="1:4")
    first = job.wait_for_holders("worker-0")
    yard.run("scale", "worker=4")
    four = job.wait_for_holders("worker-0", "worker-1", "worker-2", "worker-3")
    assert four["worker-0"] == first["worker-0"]
    wait_for(lambda: yard.status("train-1").get("shards", {}).get("done") == 4, "a shard of each in the status")
    assert "records " in yard.run("ps")
    rows = json.loads(yard.run("top", "--json"))["replicas"]
    assert [row["shardsDone"] for row in rows] == [1, 1, 1, 1]
    yard.run("scale", "worker=2")
    brakes[2].unlink()
    brakes[3].unlink()
    wait_for(lambda: not alive(four["worker-2"]) and not alive(four["worker-3"]), "two are gone", seconds=60)
    for name in ("worker-2", "worker-3"):
        # After two shards, or more if it took another before the master had heard that it is to leave.
        assert "no more data after" in yard.log("train-1", name), "it had time to finish"
    assert job.holders() == {name: four[name] for name in ("worker-0", "worker-1")}
    assert "between 1 and 4" in yard.refused("scale", "worker=5")
    brakes[0].unlink()
    brakes[1].unlink()
    yard.end(run, seconds=120)
    job.check_complete()
    status = yard.status("train-1")
    assert (status["restarts"], status["disruptions"]) == (0, 0)


def test_a_worker_that_does_not_finish_is_asked_to_end_when_its_time_is_over(yard):
    job = Shards(yard)
    job.hold("worker-1")
    job.hold()  # or worker 0 may train all before worker 1 is up
    manifest = yard.script(f"""
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {{name: train-1, annotations: {{trainyard.dev/elastic: "1:2"}}}}
spec:
  tfReplicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: ExitCode
      template:
        spec:
          terminationGracePeriodSeconds: 1
          containers: [{{name: tensorflow, image: a, command: [{PYTHONS["14"]}, train.py]}}]
""", "job.yaml")
    run = yard.start("run", "-f", manifest)
    pids = job.wait_for_holders("worker-1")
    yard.run("scale", "worker=1")
    wait_for(lambda: not alive(pids["worker-1"]), "it is gone", seconds=20)
    assert "no more data" not in yard.log("train-1", "worker-1")
    job.release()
    yard.end(run, seconds=60)
    job.check_complete()


def test_an_early_stop_is_a_success_that_says_what_is_left(yard):
    job = Shards(yard, size=300, before="sys.exit(0) if held == 4 else None")
    out = yard.end(job.start("-w", 2), seconds=60)
    assert "early stop with 240 of 300 records left" in out
    assert yard.status("train-1")["shards"]["recordsLeft"] == 240


def test_a_script_that_fails_fails_the_job(yard):
    job = Shards(yard, before="raise ValueError('no such column')")
    out = yard.end(job.start("-w", 2), status=1, seconds=60)
    assert "ValueError: no such column" in out
