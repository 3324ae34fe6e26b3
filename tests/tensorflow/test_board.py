"""`board`: TensorBoard of the job's own Python over the jobs of this machine."""

import glob
import signal
import socket

from board import Board
from conftest import PYTHONS
from yard import ROOT, wait_for

WRITES = ROOT / "tests/scripts/writes_events.py"


def links():
    return set(glob.glob("/tmp/trainyard-board-*"))


def test_every_job_is_a_run_those_to_come_as_well_and_nothing_stays(yard):
    before = links()
    train = lambda name: yard.run("run", "--python", PYTHONS["2.21"], "-w", 1, "--name", name, WRITES)  # noqa: E731
    train("one")
    board = Board(yard)
    assert board.count == 1
    board.wait_for_runs("one")
    assert board.losses("one")[0] == (0, 1.0)
    train("two")
    board.wait_for_runs("one", "two")
    board.process.send_signal(signal.SIGINT)
    assert board.process.wait(150) == 0

    # Killed, it takes TensorBoard and its links with it; the port it had may be taken.
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        taken.listen()
        assert f"port {port}" in yard.run("board", "--port", port, status=69) + yard.err
    board = Board(yard, "two", "--port", port)
    assert board.url == f"http://127.0.0.1:{port}/"
    board.process.kill()
    board.process.wait()
    wait_for(lambda: not yard.processes() and links() == before, "nothing is left")


def test_a_sweep_has_a_run_for_each_trial(yard):
    yard.run("sweep", WRITES, "--python", PYTHONS["2.21"], "-w", 1, "--param", "rate=1,2", "--metric", "loss", "--prune", "none",
             "--name", "both")
    board = Board(yard, "both")
    board.wait_for_runs("both/000-rate=1/tensorboard", "both/001-rate=2/tensorboard")
    assert board.losses("both/001-rate=2/tensorboard")[0] == (0, 2.0)
    board.process.send_signal(signal.SIGINT)
    assert board.process.wait(150) == 0


def test_it_counts_the_runs_that_tensorboard_shows(yard):
    """Keras writes two for a job: train and validation."""
    script = yard.script("import os, runpy\nlogs = os.environ['TRAINYARD_LOG_DIR']\nfor part in ('train', 'validation'):\n"
                         f"    os.environ['TRAINYARD_LOG_DIR'] = f'{{logs}}/{{part}}'\n    runpy.run_path('{WRITES}')\n")
    yard.run("run", "--python", PYTHONS["2.21"], "-w", 1, "--name", "keras", script)
    board = Board(yard)
    assert board.count == 2
    board.wait_for_runs("keras/train", "keras/validation")
    board.process.send_signal(signal.SIGINT)
    assert board.process.wait(150) == 0


def test_what_cannot_be_shown_is_refused(yard):
    assert "no job in namespace default has written anything for TensorBoard" in yard.refused("board")
    assert yard.refused("board", "nobody") == "no job named nobody in namespace default"
    assert yard.refused("board", "--keep") == "--keep is for clusters: with --on kubernetes"
    yard.run("run", "-w", 1, "--name", "one", yard.script("import os; open(os.environ['TRAINYARD_LOG_DIR'] + '/x', 'w')"))
    assert "no TensorBoard in this Python: " in yard.refused("board", "--python", "/usr/bin/python3")
