"""`trainyard run` in a terminal: the live block, Ctrl-C, Ctrl-S, and a terminal that goes away."""

import os
import pty
import select
import termios
import time

import pytest
from yard import BINARY, wait_for

CTRL_C, CTRL_S, CTRL_Q = b"\x03", b"\x13", b"\x11"


class Terminal:
    """A program in a terminal of its own, of which it is the session's leader, as under a window or ssh."""

    def __init__(self, yard, *words, env=None):
        self.text = b""
        pid, self.fd = pty.fork()
        if pid == 0:
            os.chdir(yard.home)
            os.execve(BINARY, [str(BINARY), *map(str, words)], {**yard.env, "TERM": "xterm-256color", **(env or {})})
        self.pid, self.status = pid, None
        termios.tcsetwinsize(self.fd, (24, 80))

    def read(self):
        """Takes what there is to read."""
        while self.fd is not None and select.select([self.fd], [], [], 0)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                break
            if not data:
                break
            self.text += data

    def shows(self, words):
        self.read()
        return words in self.text

    def type(self, keys):
        os.write(self.fd, keys)

    def hang_up(self):
        os.close(self.fd)
        self.fd = None

    def ended(self):
        if self.status is None:
            self.read()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status is not None


@pytest.fixture
def terminal(yard):
    opened = []

    def open_terminal(*words, **options):
        opened.append(Terminal(yard, *words, **options))
        return opened[-1]
    yield open_terminal
    for each in opened:
        if each.fd is not None:
            each.hang_up()
        wait_for(each.ended, "the program in the terminal has ended", seconds=10)


def test_the_live_block_is_drawn_and_taken_away(yard, terminal):
    run = terminal("run", yard.staying("print('a line', flush=True)"))
    yard.up("worker-0", "worker-1")
    wait_for(lambda: run.shows(b"running"), "the block")
    assert b"\x1b[" in run.text
    yard.finish()
    wait_for(run.ended, "the end")
    assert run.status == 0 and run.shows(b"train-1 succeeded")


def test_no_color_means_no_colours(yard, terminal):
    run = terminal("run", yard.script("raise ValueError('x')"), env={"NO_COLOR": "1"})
    wait_for(run.ended, "the end")
    for code in (b"\x1b[1m", b"\x1b[1;31m", b"\x1b[36m", b"\x1b[32m"):
        assert code not in run.text


def test_ctrl_c_reaches_the_supervisor_alone(yard, terminal):
    script = yard.staying("""
import signal, sys
signal.signal(signal.SIGINT, lambda *_: print('got SIGINT', flush=True))
signal.signal(signal.SIGTERM, lambda *_: (print('got SIGTERM', flush=True), sys.exit(0)))
""")
    run = terminal("run", script)
    yard.up("worker-0", "worker-1")
    run.type(CTRL_C)
    wait_for(run.ended, "the end", seconds=10)
    assert run.status == 130
    log = yard.log("train-1", "worker-0")
    assert "got SIGTERM" in log and "got SIGINT" not in log


def test_a_second_ctrl_c_kills(yard, terminal):
    run = terminal("run", yard.staying("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"))
    yard.up("worker-0", "worker-1")
    run.type(CTRL_C)
    wait_for(lambda: run.shows(b"again to kill"), "told of the second")
    run.type(CTRL_C)
    wait_for(run.ended, "the end", seconds=5)
    assert run.status == 130


def test_a_terminal_that_goes_away_stops_the_job_cleanly(yard, terminal):
    run = terminal("run", yard.staying())
    yard.up("worker-0", "worker-1")
    run.hang_up()
    wait_for(run.ended, "the end", seconds=10)
    assert yard.has("train-1", "Failed") and "by SIGHUP" in yard.run("why")
    assert not yard.processes()


def test_a_detached_job_outlives_its_terminal(yard, terminal):
    run = terminal("run", "--detach", yard.staying())
    wait_for(run.ended, "detached", seconds=10)
    assert run.status == 0
    run.hang_up()
    yard.up("worker-0", "worker-1")
    yard.finish()
    yard.run("wait")


def test_a_stopped_terminal_does_not_stop_the_supervisor(yard, terminal):
    run = terminal("run", yard.staying("for i in range(3000): print('a line of some length', i, flush=True)"))
    wait_for(lambda: run.shows(b"train-1"), "the first line")
    run.type(CTRL_S)
    before = yard.up("worker-0", "worker-1")
    yard.kill(before["worker-0"])
    yard.up(*before, but=before.values())
    run.type(CTRL_Q)
    yard.finish()
    wait_for(run.ended, "the end", seconds=20)
    assert run.status == 0


def test_a_window_of_any_width_is_drawn(yard, terminal):
    run = terminal("run", yard.staying())
    yard.up("worker-0", "worker-1")
    for columns in (200, 40, 10, 1, 80):
        termios.tcsetwinsize(run.fd, (24, columns))
        seen = len(run.text)
        deadline = time.monotonic() + 5
        while len(run.text) == seen and time.monotonic() < deadline:
            run.read()
    yard.finish()
    wait_for(run.ended, "the end")
    assert run.status == 0


def test_two_terminals_follow_one_job(yard, terminal):
    run = terminal("run", yard.staying("print('a line', flush=True)"))
    yard.up("worker-0", "worker-1")
    follow = terminal("logs", "-f")
    wait_for(lambda: follow.shows(b"a line"), "the line")
    follow.type(CTRL_C)
    wait_for(follow.ended, "the follower ended", seconds=5)
    assert not run.ended()
    yard.finish()
    wait_for(run.ended, "the end")
    assert run.status == 0


def test_a_sweep_has_a_board_that_stands_below_its_lines_and_goes(yard, terminal):
    yard.script("""
import os, sys, time
print('step 1 loss=' + sys.argv[1].split('=')[1])
while not os.path.exists('go'): time.sleep(0.01)
""")
    board = terminal("sweep", "train.py", "--param", "lr=0.5,0.25", "-w", "1", "--parallel", "2", "--name", "seen")
    wait_for(lambda: board.shows(b"0/2 done") and board.shows("trial 1   running  loss 0.25".encode()), "the board")
    (yard.home / "go").touch()
    wait_for(board.ended, "the sweep has ended")
    assert board.status == 0
    last = board.text.split(b"\x1b[J")[-1]
    assert b"running" not in last and "best    trial 1: loss 0.25".encode() in last
