"""The package against the real master."""

import itertools
import random
import threading

import pytest

from real_master import RealMaster
from trainyard import LeasesLost, NotOfThisJob
from yard import wait_for


@pytest.fixture
def real(tmp_path):
    master = RealMaster(tmp_path / "ledger")
    master.tell(worker_0="live")
    yield master
    master.close()


def everything(service):
    seen = []
    while service.more():
        while shard := service.fetch_shard():
            seen.append((shard.epoch, tuple(shard.records())))
            service.report_batch_done(len(shard.records()))
    return seen


@pytest.mark.parametrize("options", [{}, {"shuffle_shards": True}, {"shuffle": True}, {"shuffle": True, "shuffle_shards": True},
                                     {"barrier": True, "shards_per_call": 3}], ids=str)
def test_a_script_that_runs_plain_sees_the_same_order(real, build, options):
    options = {"dataset_size": 1003, "num_epochs": 3, "seed": 12345678901234567890, **options}
    plain, served = everything(build(**options)), everything(build(real, **options))
    assert plain == served and len(plain) == 3 * 126


def test_the_state_of_the_set_goes_with_a_model_and_comes_back_with_it(real, build):
    service = build(real, dataset_size=40, num_epochs=2)
    first = [service.fetch_shard() for _ in range(3)]
    service.report_batch_done(16)
    state = service.get_shard_checkpoint()
    service.report_batch_done(8)
    service.restore_shard_from_checkpoint(state)
    rest = everything(service)
    trained = [record for shard in first[:2] for record in shard.records()] + [record for _, records in rest for record in records]
    assert sorted(trained) == sorted([*range(40)] * 2)


def test_what_a_restore_made_void_is_trained_by_nobody(real, build):
    real.tell(worker_1="live")
    chief, other = (build(real, dataset_size=64, shards_per_call=4, worker_id=number) for number in (0, 1))
    state = chief.get_shard_checkpoint()
    first = other.fetch_shard()  # Of four that it has now.
    chief.restore_shard_from_checkpoint(state)
    other.report_batch_done(8)
    other.flush()
    trained = [record for service in (chief, other) for _, records in everything(service) for record in records]
    assert first.start == 0 and sorted(trained) == [*range(64)]
    assert chief.look().complete and chief.look().epochs == 1


def test_commits_survive_the_master_and_are_refused_to_those_who_lost_their_shards(real, build):
    service = build(real, shards_per_round=1)
    assert service.committed("worker-0") is None and service.more()
    shard = service.fetch_shard()
    service.report_batch_done(8)
    service.commit("worker-0", "model-1")
    real.kill()
    real.start()
    assert service.committed("worker-0") == "model-1"
    assert service.more() and service.fetch_shard().start == 8 and shard.start == 0
    service.report_batch_done(8)
    real.tell(worker_0=None, worker_1="live")  # Given up for dead; its shard goes to another.
    real.tell(worker_0="live")
    with pytest.raises(LeasesLost):
        service.commit("worker-0", "model-2")
    assert service.committed("worker-0") == "model-1"
    other = build(real, shards_per_round=1, worker_id=1)
    assert other.more() and other.fetch_shard().start == 8


def test_a_process_that_is_not_of_the_job_is_refused(real, build, monkeypatch):
    monkeypatch.setattr("trainyard.master._GRACE", 0.3)
    with pytest.raises(NotOfThisJob):
        build(real, worker_id=7)


@pytest.mark.parametrize("seed", range(3))
def test_models_of_workers_that_die_under_a_master_that_dies_have_each_record_once(real, build, seed):
    """Each worker counts records in a model that it keeps in `disk` and commits by name; all of them, and the master, are killed at random."""
    size, epochs, workers = 203, 4, 3
    dice, disk, names = random.Random(seed), {}, itertools.count()
    numbers, lock, lives = itertools.count(1), threading.Lock(), [0]

    def live(key):
        """One process; False when it died."""
        with lock:
            number = next(numbers)
            lives[0] += 1
            real.tell(**{f"worker_{number}": "live"})
        service = build(real, shards_per_round=2, dataset_size=size, num_epochs=epochs, worker_id=number, shuffle=True)
        model = dict(disk.get(service.committed(key), {}))
        try:
            while service.more():
                while shard := service.fetch_shard():
                    for record in shard.records():
                        model[record] = model.get(record, 0) + 1
                    service.report_batch_done(len(shard.records()))
                    if dice.random() < 0.05:
                        return False
                name = f"model-{next(names)}"
                disk[name] = dict(model)
                if dice.random() < 0.1:
                    return False
                service.commit(key, name)
                if dice.random() < 0.1:
                    return False
            return True
        finally:
            with lock:
                real.tell(**{f"worker_{number}": None})

    def worker(key):
        while not live(key):
            pass

    threads = [threading.Thread(target=worker, args=(f"worker-{i}",), daemon=True) for i in range(workers)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        threading.Event().wait(dice.uniform(0.05, 0.3))
        with lock:
            real.kill()
            real.start()
    wait_for(lambda: not any(thread.is_alive() for thread in threads), "all end", seconds=90)
    real.tell(worker_0="live")
    reader = build(real, shards_per_round=2, dataset_size=size, num_epochs=epochs, shuffle=True)
    models = [disk[name] for i in range(workers) if (name := reader.committed(f"worker-{i}"))]
    total = [sum(model.get(record, 0) for model in models) for record in range(size)]
    assert total == [epochs] * size
    assert reader.look().complete and lives[0] > workers
