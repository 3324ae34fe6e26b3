"""The published clients of ElasticDL's master, unmodified, against ours: with and without faults.

elasticdl_api 1.0.0 takes every error for the end of the data; elasticai_api 1.4.2 tries again after a quarter of a minute, which is shortened here by a
clock of its own (time.sleep), not by a change of the package.
"""

import collections
import json
import random
import subprocess

import pytest
from data_master import MASTER, Crew, DataMaster, client_python
from yard import wait_for

CLIENTS = ["edl-1.0", "edl-1.4", "edl-1.4.1"]

BEGIN = """
import os, sys, time
sleep = time.sleep
time.sleep = lambda seconds: sleep(min(seconds, 0.5))
from elasticai_api.common.data_shard_service import build_data_shard_service
def service(**changes):
    return build_data_shard_service(**{**dict(batch_size=64, num_epochs=100, dataset_size=150, num_minibatches_per_shard=1,
                                              dataset_name="iris"), **changes})
def train(data, pause=0):
    while True:
        shard = data.fetch_shard()
        if shard is None:
            return
        sleep(pause)
        print("trained", shard.start, shard.end, flush=True)
        data.report_batch_done(shard.end - shard.start)
        print("reported", shard.start, shard.end, flush=True)
"""


@pytest.fixture
def master(tmp_path):
    master = DataMaster(tmp_path)
    yield master
    master.close()


@pytest.fixture
def crew_of(master, tmp_path):
    crews = []

    def make(which, script):
        crews.append(Crew(master, client_python(which), BEGIN + script, tmp_path))
        return crews[-1]

    yield make
    for crew in crews:
        crew.close()


def times(crew, word):
    """How often each shard was trained, or reported."""
    return collections.Counter((int(start), int(end)) for start, end in crew.said(word))


@pytest.mark.parametrize("which", CLIENTS)
def test_their_own_wire_test(master, crew_of, which):
    # elasticai_api/tests/data_shard_service_test.py: eight shards, of which none is reported, and then nothing.
    crew = crew_of(which, """
data = service(batch_size=16, num_epochs=2, dataset_size=100, num_minibatches_per_shard=2, dataset_name="test")
for _ in range(8):
    shard = data.fetch_shard()
    print("shard", shard.start, shard.end)
print("epoch", data.get_current_epoch())
print("end", data.fetch_shard())
""")
    crew.start(0)
    crew.run()
    assert crew.exits == [("worker-0@0", 0)], crew.output("worker-0@0")
    epoch = [["0", "32"], ["32", "64"], ["64", "96"], ["96", "100"]]
    assert crew.said("shard") == epoch * 2
    assert crew.said("epoch") == [["2"]]
    assert crew.said("end") == [["None"]]


@pytest.mark.parametrize("which", CLIENTS)
def test_three_workers_share_a_hundred_epochs(master, crew_of, which):
    crew = crew_of(which, "train(service())")
    for index in range(3):
        crew.start(index)
    crew.run()
    assert crew.exits == [(name, 0) for name, _ in crew.exits]
    data = master.look()
    assert (data["complete"], data["recordsLeft"], data["misled"]) == (True, 0, [])
    assert times(crew, "reported") == {(0, 64): 100, (64, 128): 100, (128, 150): 100}
    assert sum(member["done"] for member in data["members"]) == 300


def test_the_shards_of_a_killed_worker_are_trained_by_another(master, crew_of):
    # Each takes two shards; worker 0 never reports. Worker 1 reports its own, and waits in a call until there is more.
    crew = crew_of("edl-1.0", """
data = service(num_epochs=1, dataset_size=256)
shards = [data.fetch_shard(), data.fetch_shard()]
print("holds", flush=True)
if os.environ["WORKER_ID"] == "0":
    sleep(600)
for shard in shards:
    data.report_batch_done(64)
    print("reported", shard.start, shard.end, flush=True)
train(data)
""")
    first = crew.start(0)
    crew.wait_said(first, "holds")
    second = crew.start(1)
    crew.wait_said(second, "reported")
    wait_for(lambda: master.look()["doing"] == 2, "all but the first one's shards are reported")
    crew.kill(first)
    crew.run()
    assert dict(crew.exits)[second] == 0
    assert times(crew, "reported") == {(start, start + 64): 1 for start in range(0, 256, 64)}
    assert master.look()["complete"]


@pytest.mark.parametrize("which", ["edl-1.0", "edl-1.4"])
def test_the_master_is_killed_again_and_again_under_load(master, crew_of, which):
    crew = crew_of(which, "train(service(num_epochs=40), pause=0.01)")
    for index in range(3):
        crew.start(index)
    chance = random.Random(7)
    for kill in range(4):
        mark = len(crew.said("reported")) + chance.randrange(5, 15)
        wait_for(lambda: not crew.step() or len(crew.said("reported")) >= mark, "some more shards are reported")
        master.kill()
    crew.run()
    data = master.look()
    assert (data["complete"], data["recordsLeft"]) == (True, 0)
    assert not [event for event in master.events if event["reason"] == "ShardsAssumed"]
    # Independent of what the ledger says: nothing was done less often than there are epochs.
    trained = times(crew, "trained")
    assert all(trained[shard] >= 40 for shard in [(0, 64), (64, 128), (128, 150)]), trained
    if which == "edl-1.4":  # which tries again, so that nobody had to be replaced
        assert crew.exits == [(name, 0) for name, _ in crew.exits]


def test_every_call_of_the_last_client_is_answered(master, crew_of):
    crew = crew_of("edl-1.4", """
from elasticai_api.common.master_client import GlobalMasterClient
from elasticai_api.common import synchronization
client = GlobalMasterClient.MASTER_CLIENT
service()
client.report_used_resource(100, 1.5)
client.report_global_step(3, 4)
print("steps", client.get_cluster_version("GLOBAL", "worker", 0).version, client.query_training_status())
client.update_cluster_version("GLOBAL", 1, "worker", 0)
print("nodes", len(client.query_ps_nodes()[0]), len(client.get_running_nodes()))
client.init_remote_lock("l", 1)
print("lock", client.acquire_remote_lock("l", 1))
client.release_remote_lock("l")
client.report_autotune_status(True, True)
client.update_critical_worker({0: 1})
client.ready_for_ps_relaunch()
client.report_prestop()
print("relaunch", client.query_relaunch_ps_pod().enabled)
print("synced", synchronization.worker_sync("start", timeout=5), synchronization.wait_worker_sync("go", notify=True))
content = client.get_shard_checkpoint("iris").content
print("restored", client.report_shard_checkpoint(content).success)
""")
    name = crew.start(0)
    wait_for(lambda: crew.running[name].poll() is not None, "its end")
    crew.end(name)
    assert crew.exits == [(name, 0)], crew.output(name)
    said = [crew.said(word)[0] for word in ("steps", "nodes", "lock", "relaunch", "synced", "restored")]
    assert said == [["0", "0"], ["0", "0"], ["False"], ["False"], ["True", "True"], ["True"]]
    assert [event["reason"] for event in master.events] == ["LockRefused"]


def test_the_master_refuses_what_it_cannot_do(tmp_path, master):
    def run(*words):
        return subprocess.run([MASTER, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)

    other = run("--ledger", tmp_path / "other", "--job", "mnist/u-1", "--port", str(master.port), "--control", "0")
    assert other.returncode == 2 and f"cannot listen on 127.0.0.1 port {master.port}" in other.stderr
    taken = run("--ledger", master.directory / "ledger", "--job", "mnist/u-1", "--control", "0")
    assert taken.returncode == 3 and "another master has the ledger" in taken.stderr
    for words, says in [(["--ledger", "x"], "not by hand"), (["--job", "x"], "NAME/UID"), (["--port", "x"], "a number from 0"),
                        (["--speed", "1"], "no flag is called --speed"), (["--port"], "lacks its value")]:
        refused = run(*words)
        assert refused.returncode == 2 and says in refused.stderr, refused.stderr
    assert json.dumps(master.look()["sets"]) == "[]"
