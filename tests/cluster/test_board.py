"""`board` on a cluster: TensorBoard in a pod beside the job, reached through a port of this machine."""

import signal

import pytest

from board import Board
from there import IMAGE, There, shared_volume
from yard import ROOT


@pytest.fixture
def there(operated, tmp_path):
    with shared_volume(operated, tmp_path / "volume"):
        yard = There(tmp_path / "home", operated, "board")
        yield yard
        yard.close()


def objects(there):
    return there.kubectl("get", "deployments,services,pods", "-l", "app.kubernetes.io/name=one-board", "-o", "name").split()


def test_the_curves_of_a_job_are_shown_until_ctrl_c_though_its_pod_is_lost(there):
    there.run("run", "-i", IMAGE, "-w", 1, "--name", "one", ROOT / "tests/scripts/writes_events.py")
    board = Board(there, "one")
    board.wait_for_runs("one")
    assert board.losses("one")[0] == (0, 1.0)
    there.kubectl("delete", "pods", "-l", "app.kubernetes.io/name=one-board")
    there.cluster.wait(lambda: board.runs() == {"one"}, "another pod has its place", 60)
    board.process.send_signal(signal.SIGINT)
    assert board.process.wait(150) == 0, board.process.stderr.read()
    there.cluster.wait(lambda: objects(there) == [], "nothing is left")

    # One that is kept goes with its job.
    board = Board(there, "one", "--keep")
    board.process.send_signal(signal.SIGINT)
    assert board.process.wait(150) == 0
    assert len(objects(there)) == 3
    there.run("delete", "one", "--with-output")
    there.cluster.wait(lambda: objects(there) == [], "nothing is left")
