"""The API server or its store is killed, or the line to it is down, while jobs run: they go on after it, and nothing storms."""

import time

import pytest

from cluster import ApiError
from trials import QUIET, SOAK, in_parallel
from yard import wait_for

REPLICAS = {"worker-0": 0, "worker-1": 0}
LIVES = 3
DOWN = 30 if SOAK else 8  # seconds without a line


@pytest.fixture(scope="module")
def undisturbed(stage):
    """How many writes the same life has without an outage."""
    with stage.life() as life:
        begin(life)
        fail(life)
        end(life)
        return life.proxy.write_count()


def begin(life):
    life.submit(Worker=2)
    life.up(REPLICAS)


def fail(life):
    life.exits("worker-1", 137)


def end(life):
    """Both run again after the failure, and the job is done."""
    life.up({replica: 1 for replica in REPLICAS})
    life.exits("worker-0", 0, attempt=1)
    life.shows("Succeeded")
    life.settle(QUIET)
    assert (life.status("restarts"), life.status("disruptions")) == (1, 0)
    assert life.witness.tally(life.namespace)["pods/a-worker-1"] == (2, 2)
    assert not life.violations()


def through(stage, undisturbed, outage):
    """Lives that run when it happens, and go on after it. One worker of each fails on the way."""
    lives = [stage.life() for _ in range(LIVES)]
    try:
        in_parallel(begin, lives)
        outage(lives)
        in_parallel(end, lives)
        for life in lives:
            stored = [write for write in life.proxy.writes if write.status is not None]
            assert len(stored) <= 1.2 * undisturbed + 2, life.told()
            assert life.operator.starts == 1
    finally:
        for life in lives:
            life.ends.close()


def is_missed(stage, lives, component):
    """Whether the outage is felt: by every operator, whose server is gone; or by the server, whose store is, and which operators that have
    nothing to ask of it need not feel."""
    if component == "apiserver":
        return all("waiting: " in life.operator.log.read_text() for life in lives)
    try:
        return stage.api.get("/readyz") != "ok"
    except (ApiError, OSError):
        return True


@pytest.mark.parametrize("component", ["apiserver", "etcd"])
def test_jobs_go_on_after_a_component_was_killed(stage, undisturbed, component):
    def outage(lives):
        stage.cluster.kill(component)
        wait_for(lambda: is_missed(stage, lives, component), f"{component} is missed")
        stage.cluster.restart(component)
        in_parallel(fail, lives)
    through(stage, undisturbed, outage)


def test_jobs_go_on_after_the_line_was_down(stage, undisturbed):
    def outage(lives):
        for life in lives:
            life.proxy.link(False)
        in_parallel(fail, lives)
        time.sleep(DOWN)
        for life in lives:
            life.proxy.link(True)
    through(stage, undisturbed, outage)
