"""Storms of kills over elastic jobs with plain Python clients (those with TensorFlow: tests/tensorflow/test_elastic_count.py)."""

import concurrent.futures
import os

import pytest
import tally
from shards import needs_client
from storms import Storm
from yard import Yard

SOAK = bool(os.environ.get("SOAK"))
# Each soak goes on with seeds that were not used before.
SEEDS = range(first := tally.read().get("plain", 0), first + 180) if SOAK else range(18)
SIDE_BY_SIDE = 6  # They wait most of the time.


def storm_over(home, seed):
    yard = Yard(home)
    storm = Storm(yard, seed)
    failed = True
    try:
        storm.run()
        storm.judge()
        failed = False
    finally:
        if SOAK:
            tally.add("plain", storm.struck, storm.job.size, storm.never, failed)
        yard.close()


@pytest.fixture(scope="module")
def storms(request, tmp_path_factory):
    """The storms of all seeds that were asked for, under way."""
    seeds = [item.callspec.params["seed"] for item in request.session.items if "storms" in getattr(item, "fixturenames", ())]
    pool = concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE)
    yield {seed: pool.submit(storm_over, tmp_path_factory.mktemp(f"storm-{seed}-"), seed) for seed in seeds}
    pool.shutdown(cancel_futures=True)


@needs_client
@pytest.mark.parametrize("seed", SEEDS)
def test_a_storm_of_kills_loses_no_record(storms, seed):
    storms[seed].result()


def test_storms_are_added_up_over_the_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    tally.add("plain", ["worker", "supervisor", "worker"], 800, 0, failed=False)
    tally.add("tensorflow", ["master", "scale"], 6000, 3, failed=True)
    assert tally.lines() == ["2 storms, 1 of them with TensorFlow, 1 failed; 3 of 6800 records never reported",
                             "killed: 2 workers, 1 masters, 1 supervisors; scaled 1 times"]
