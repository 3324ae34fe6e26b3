"""The account of records, with a master of the test's own and with none."""

import pathlib
import threading

import grpc
import pytest

from trainyard import NotOfThisJob, ShardError, shards, wire
from trainyard.checkpoint import ShardCheckpoint
from yard import wait_for


def train(service, batch, drop_remainder=False):
    """One pass as a pipeline of records and batches makes it; returns the batches trained."""
    records, batches = [], []
    while shard := service.fetch_shard():
        records += shard.records()
    for first in range(0, len(records), batch):
        part = records[first:first + batch]
        if drop_remainder and len(part) < batch:
            break
        batches.append(part)
        service.report_batch_done(len(part))
    return batches


def test_every_record_comes_once_an_epoch_and_is_reported(master, build):
    service = build(master, num_epochs=3)
    trained = []
    while service.more():
        trained += sum(train(service, 4), [])
    assert sorted(trained) == sorted([*range(20)] * 3)
    assert master.ledger.look().complete and sorted(master.reported()) == [*range(1, 10)]


def test_without_a_master_the_same_shards_come_in_the_same_order(master, build):
    for options in ({}, {"shuffle_shards": True, "seed": 5}, {"shuffle": True, "seed": 6, "num_epochs": 2}):
        options["dataset_name"] = str(options)
        plain, served = build(**options), build(master, **options)
        assert train(plain, 4) == train(served, 4)


def test_no_error_of_the_line_is_the_end_of_the_data(master, build):
    lines = [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN,
             grpc.StatusCode.CANCELLED, grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.ABORTED]
    master.faults["Register"] = lines[:2]
    master.faults["Take"] = [fault for line in lines for fault in (line, None)]
    master.faults["Report"] = [*lines]
    service = build(master)
    assert sum(train(service, 4), []) == [*range(20)]
    assert not service.more() and master.ledger.look().complete


def test_a_lost_answer_loses_no_shard_and_doubles_none(master, build):
    master.faults["Take"] = ["lost", None, "lost"]
    master.faults["Report"] = ["lost", None, "lost"]
    service = build(master)
    assert sum(train(service, 4), []) == [*range(20)]
    assert not service.more() and master.ledger.look().complete
    assert {*master.reported()} == {1, 2, 3}


def test_a_master_that_is_away_is_waited_for(master, build):
    service = build(master)
    shard = service.fetch_shard()
    master.stop()
    got = []
    threads = [threading.Thread(target=lambda: got.append(service.fetch_shard())),
               threading.Thread(target=lambda: [service.report_batch_done(4), service.report_batch_done(4)])]
    for thread in threads:
        thread.start()
    threads[0].join(1.0)
    assert got == [] and threads[1].is_alive()
    master.start()
    for thread in threads:
        thread.join(30)
    assert (shard.start, got[0].start) == (0, 8)
    assert master.reported() == [1]


def test_a_master_that_does_not_know_its_members_yet_is_asked_again(master, build):
    master.faults["Register"] = master.faults["Take"] = [grpc.StatusCode.PERMISSION_DENIED] * 2
    assert build(master).fetch_shard().start == 0


def test_a_refusal_is_an_error_that_says_so(master, build, monkeypatch):
    monkeypatch.setattr("trainyard.master._GRACE", 0.5)
    service = build(master)
    master.faults["Take"] = [grpc.StatusCode.PERMISSION_DENIED] * 100
    with pytest.raises(NotOfThisJob, match="as the test wants it"):
        service.fetch_shard()
    master.faults["Take"] = [grpc.StatusCode.NOT_FOUND]
    with pytest.raises(ShardError, match="Take: as the test wants it"):
        service.fetch_shard()


def test_wait_is_asked_again_and_only_end_ends(master, build):
    service = build(master)
    master.answers["Take"] = [wire.TakeReply(wire.WAIT), wire.TakeReply(wire.WAIT)]
    assert service.fetch_shard().start == 0
    assert master.count("Take") == 3


def test_drain_ends_a_pass_and_what_comes_back_later_is_still_trained(master, build):
    service = build(master, dataset_size=8)
    master.answers["Take"] = [wire.TakeReply(wire.DRAIN)]
    assert service.fetch_shard() is None
    assert service.more() and sum(train(service, 4), []) == [*range(8)]
    assert not service.more() and not service.leaving


def test_a_pass_to_the_end_waits_for_what_others_leave_behind(master, build):
    service = build(master, dataset_size=16)
    of_pass = service.begin_pass()
    seen = []
    thread = threading.Thread(target=lambda: seen.extend(
        service.deliver([(shard.id, [*range(8)])], of_pass) and shard.start for shard in service.shards(of_pass, to_the_end=True)))
    master.answers["Take"] = [wire.TakeReply(wire.DRAIN), wire.TakeReply(wire.WAIT)]
    thread.start()
    wait_for(lambda: len(seen) == 2, "both shards are delivered")
    assert thread.is_alive()
    service.report_batch_done()
    service.report_batch_done()
    thread.join(30)
    assert not thread.is_alive() and seen == [0, 8] and master.ledger.look().complete


def test_after_a_restore_by_somebody_else_nothing_old_is_trained(master, build, caplog):
    service = build(master, dataset_size=40, shards_per_call=3)
    empty = master.ledger.checkpoint()
    first = [service.fetch_shard() for _ in range(2)]  # The third is here, and in no pipeline yet.
    master.ledger.restore(empty)
    service.report_batch_done(8)
    service.flush()
    assert "was restored meanwhile" in caplog.text
    service.report_batch_done(8)  # The second was in the pipeline: trained in vain.
    again = []
    while shard := service.fetch_shard():
        again.append(shard.start)
        service.report_batch_done(8)
    assert [shard.start for shard in first] == [0, 8] and sorted(again) == [0, 8, 16, 24, 32]


def test_a_member_that_is_asked_to_leave_is_told(master, build):
    service = build(master)
    master.answers["Take"] = [wire.TakeReply(wire.END, leaving=True)]
    assert not service.more() and service.leaving


def test_several_shards_come_with_one_call_and_are_reported_with_one(master, build):
    service = build(master, dataset_size=80, shards_per_call=5)
    assert len(sum(train(service, 4), [])) == 80
    assert (master.count("Take"), master.count("Report")) == (3, 2)
    assert master.asked[1][1].most == 5


@pytest.mark.parametrize("batch", [1, 3, 4, 7, 8, 20, 33])
def test_a_shard_is_reported_with_the_batch_that_has_its_last_record(master, build, batch):
    service = build(master)
    records = []
    while shard := service.fetch_shard():
        records += [(record, shard.id) for record in shard.records()]
    for first in range(0, len(records), batch):
        service.report_batch_done(len(records[first:first + batch]))
        trained = {record for record, _ in records[:first + batch]}
        whole = [id for id in (1, 2, 3) if {record for record, of in records if of == id} <= trained]
        assert master.reported() == whole


def test_batches_of_the_nominal_size_count_no_more_than_there_is(master, build):
    service = build(master, dataset_size=10)
    while service.fetch_shard():
        pass
    for _ in range(3):  # 4, 4 and 2 records.
        assert len(master.reported()) < 2
        service.report_batch_done()
    assert master.reported() == [1, 2]


def test_what_a_pipeline_drops_comes_again_and_at_last_counts_with_a_warning(master, build, caplog):
    service = build(master, dataset_size=10)
    passes = []
    while service.more():
        passes.append(train(service, 4, drop_remainder=True))
    assert passes == [[[0, 1, 2, 3], [4, 5, 6, 7]], []]
    assert "2 records of 'test' count as trained, though the pipeline dropped them" in caplog.text
    assert master.reported() == [1, 2]


def test_a_pipeline_begun_again_gets_what_was_fetched_and_not_trained(master, build):
    service = build(master, dataset_size=16)
    service.begin_pass()
    assert service.fetch_shard().start == 0 and service.fetch_shard().start == 8
    service.report_batch_done(3)
    service.begin_pass()
    assert [service.fetch_shard().records(), service.fetch_shard().records()] == [[3, 4, 5, 6, 7], [*range(8, 16)]]
    service.report_batch_done(13)
    assert master.reported() == [1, 2]


def test_what_a_void_pipeline_delivers_is_not_taken(build):
    service = build()
    old, new = service.begin_pass(), service.begin_pass()
    assert next(service.shards(old), None) is None
    shard = next(service.shards(new))
    assert not service.deliver([(shard.id, [0])], old)
    assert service.deliver([(shard.id, [0])], new)


def test_records_are_known_by_place_whatever_their_order(master, build):
    service = build(master, dataset_size=16)
    of_pass = service.begin_pass()
    first, second = service.shards(of_pass)
    service.deliver([(first.id, [7, 0, 1]), (second.id, [0, 1, 2, 3, 4, 5, 6])], of_pass)
    service.deliver([(first.id, [2, 3, 4, 5, 6])], of_pass)
    service.deliver([(second.id, [7])], of_pass)
    seen = []
    for _ in range(3):
        service.report_batch_done()
        seen.append(list(master.reported()))
    assert seen == [[], [1], [1, 2]]


def test_a_shard_that_fails_goes_back_and_after_three_errors_is_set_aside(master, build, caplog):
    service = build(master, dataset_size=8)
    for _ in range(3):
        assert service.fetch_shard().start == 0
        service.report_batch_done(8, err_msg="no such file")
    assert service.fetch_shard() is None and not service.more()
    assert "set aside after 3 errors: no such file" in caplog.text


def test_the_state_of_the_set_is_saved_and_restored(master, build):
    service = build(master, dataset_size=32, num_epochs=2)
    first = service.fetch_shard()
    service.report_batch_done(8)
    service.fetch_shard()
    state = service.get_shard_checkpoint()
    later = [service.fetch_shard() for _ in range(2)]
    for _ in range(3):
        service.report_batch_done(8)
    assert [first.start, *[shard.start for shard in later]] == [0, 16, 24]
    service.restore_shard_from_checkpoint(state)
    trained = []
    while service.more():
        trained += sum(train(service, 8), [])
    assert sorted(trained + first.records()) == sorted([*range(32)] * 2)
    service.reset_dataset()
    assert service.more() and service.fetch_shard().epoch == 1


def test_a_round_is_committed_whole_or_not_at_all(master, build):
    service = build(master, shards_per_round=2, dataset_size=40)
    assert service.more() and service.committed("m") is None
    shards = [service.fetch_shard(), service.fetch_shard()]
    assert [shard.start for shard in shards] == [0, 8] and service.fetch_shard() is None
    for _ in range(4):
        service.report_batch_done()
    assert master.reported() == [] and master.ledger.look().doing == 2
    with pytest.raises(ShardError, match="save the model first"):
        service.more()
    master.faults["Commit"] = ["lost", grpc.StatusCode.UNAVAILABLE]
    service.commit("m", "one")
    assert service.committed("m") == "one" and master.ledger.look().doing == 0
    assert service.more() and service.fetch_shard().start == 16
    service.report_batch_done(3)
    with pytest.raises(ShardError, match="5 records of this round were not trained"):
        service.commit("m", "two")
    assert service.committed("m") == "one"


def test_what_was_given_to_another_meanwhile_cannot_be_committed(master, build):
    service = build(master, shards_per_round=1)
    assert service.more()
    service.fetch_shard()
    service.report_batch_done(8)
    master.ledger.take(1, [])
    master.ledger.report([1])  # By somebody else.
    with pytest.raises(ShardError, match="not held any more"):
        service.commit("m", "one")
    service.forget()
    assert service.committed("m") is None and service.more()


def test_commits_without_a_master_are_kept_in_a_file(build, tmp_path):
    trained = []
    for life in range(20):
        service = build(shards_per_round=1, num_epochs=2)
        service.keep_in(str(tmp_path / "shards.json"))
        trained = trained[:int(service.committed("m") or 0)]
        for _ in range(2):
            if service.more():
                trained += service.fetch_shard().records()
                service.report_batch_done(8)
                if life % 3 != 2:  # Dies before the commit, every third time.
                    service.commit("m", str(len(trained)))
                else:
                    break
    assert trained == [*range(20)] * 2 and not service.more()


def test_closing_ends_a_call_that_is_held(master, build):
    service = build(master)
    master.stop()
    got = []
    thread = threading.Thread(target=lambda: got.append(service.fetch_shard()))
    thread.start()
    thread.join(0.3)
    assert thread.is_alive()
    service.close()
    thread.join(10)
    assert got == [None]


def test_what_cannot_be_right_is_refused(master, build):
    for options in ({"dataset_size": 0}, {"batch_size": 0}, {"dataset_size": None}):
        with pytest.raises(ValueError):
            build(**options)
    with pytest.raises(ShardError, match="shards_per_round"):
        build(master).commit("m", "one")


def test_a_set_that_another_registers_is_waited_for(master, build):
    services = []
    thread = threading.Thread(target=lambda: services.append(build(master, dataset_size=None)))
    thread.start()
    wait_for(lambda: master.count("Look"), "it looks")
    build(master, num_epochs=2)
    thread.join(30)
    assert services[0].fetch_shard().end == 8


def test_the_address_and_the_number_come_from_the_environment(master, build, monkeypatch):
    monkeypatch.setenv("MASTER_ADDR", "node-0")  # torch.distributed's.
    monkeypatch.setenv("DLROVER_MASTER_ADDR", master.address)
    monkeypatch.setenv("WORKER_ID", "65537")
    build(master_addr=None)
    assert [request.number for _, request in master.asked] == [65537]


class Numbers:
    """A checkpoint of one number, with the calls of tf.train.Checkpoint."""

    def __init__(self):
        self.value = 0

    def write(self, path):
        pathlib.Path(f"{path}.index").write_text(str(self.value))

    def read(self, path):
        self.value = int(pathlib.Path(f"{path}.index").read_text())
        return self

    def assert_existing_objects_matched(self):
        return self


def test_a_first_round_that_is_lost_goes_back_to_the_initial_model(master, build, tmp_path):
    service = build(master, dataset_size=40, num_minibatches_per_shard=1, shards_per_round=2)
    model = Numbers()
    model.value = 7
    saved = ShardCheckpoint(service, model, tmp_path / "worker-0")
    assert not saved.restore()
    assert service.more()
    while service.fetch_shard():
        model.value += 1
        service.report_batch_done()
    master.faults["Commit"].append(grpc.StatusCode.FAILED_PRECONDITION)  # the round was given to another
    assert not saved.save()
    assert model.value == 7
    successor = Numbers()
    assert ShardCheckpoint(service, successor, tmp_path / "worker-0").restore()
    assert successor.value == 7


def test_heartbeats_go_on_during_a_round_and_end_when_the_script_is_stuck(master, build, monkeypatch):
    monkeypatch.setattr(shards, "_BEAT", 0.01)
    service = build(master, dataset_size=40, num_minibatches_per_shard=1, shards_per_round=2)
    assert service.more()
    held = [shard.id for shard in (service.fetch_shard(), service.fetch_shard())]
    wait_for(lambda: master.count("Report") >= 3, "heartbeats")
    assert all(list(request.holding) == held and not request.done for name, request in master.asked if name == "Report")
    monkeypatch.setattr(shards, "_STUCK", 0.0)
    silent = threading.Event()
    monkeypatch.setattr(service, "_say_alive", lambda say=service._say_alive: (say(), silent.set()))
    assert silent.wait(60)
    count = master.count("Report")
    silent.clear()
    assert silent.wait(60) and master.count("Report") == count


def test_a_checkpoint_directory_in_an_object_store_is_refused(build):
    service = build(dataset_size=40, shards_per_round=2)
    with pytest.raises(ValueError, match="s3://bucket/model.*object stores are not supported"):
        ShardCheckpoint(service, Numbers(), "s3://bucket/model")
