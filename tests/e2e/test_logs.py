"""Logs: merged by time, whole tracebacks, progress bars collapsed, filters."""

import json
import os
import pathlib
import re
import signal
import subprocess

from yard import BINARY, wait_for

TURNS = """
import os, time
me = int(os.environ['TRAINYARD_INDEX'])
for i in range(6):
    while not os.path.exists(f'turn-{i}'):
        if i % 2 == me: open(f'turn-{i}.part', 'w').close()
        time.sleep(0.01)
        if i % 2 == me: os.path.exists(f'go-{i}') and (print(f'turn {i}', flush=True), open(f'turn-{i}', 'w').close())
"""


def take_turns(yard):
    """Two workers print in turns, each only after the line before was seen."""
    run = yard.start("run", yard.script(TURNS))
    for i in range(6):
        (yard.home / f"go-{i}").touch()
        wait_for(lambda i=i: (yard.home / f"turn-{i}").exists(), f"turn {i}")
        # The supervisor has noted when this line came.
        wait_for(lambda i=i: seen(yard, f"worker-{i % 2}"), f"turn {i} noted")
    return yard.end(run)


def seen(yard, replica):
    """Whether all of a replica's log has a noted time."""
    logs = yard.dir("train-1") / "logs"
    try:
        return int((logs / f"{replica}.times").read_text().splitlines()[-1].split()[0]) == \
            (logs / f"{replica}.log").stat().st_size
    except (FileNotFoundError, IndexError):
        return False


def told(text):
    """(replica, words) of each log line, whatever the width of the prefix."""
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line.startswith("worker/")]


def test_lines_of_several_replicas_are_merged_by_time(yard):
    wanted = [(f"worker/{i % 2}", f"turn {i}") for i in range(6)]
    assert told(take_turns(yard)) == wanted
    assert told(yard.run("logs")) == wanted
    assert told(yard.run("logs", "--tail", 2)) == wanted[-2:]
    assert told(yard.run("logs", "-i", "worker/1")) == wanted[1::2]
    assert told(yard.run("logs", "-i", "worker-1")) == wanted[1::2]
    assert told(yard.run("logs", "-i", "worker")) == wanted
    assert told(yard.run("logs", "--grep", "turn 3")) == [wanted[3]]
    assert told(yard.run("logs", "--since", "1h")) == wanted
    assert yard.run("logs", "--tail", 0) == ""
    lines = [json.loads(line) for line in yard.run("logs", "--json").splitlines()]
    assert [(line["replica"], line["line"]) for line in lines] == wanted


def test_logs_follow_until_the_job_has_ended(yard):
    run = yard.start("run", "-w", 1, yard.staying("print('early', flush=True)") )
    yard.up("worker-0")
    follow = yard.start("logs", "-f")
    assert told(follow.stdout.readline()) == [("worker/0", "early")]
    yard.finish()
    yard.end(run)
    yard.end(follow)


def test_a_follower_that_is_left_alone_ends(yard):
    run = yard.start("run", "-w", 1, yard.staying("print('early', flush=True)"))
    yard.up("worker-0")
    follow = yard.start("logs", "-f")
    follow.stdout.readline()
    follow.send_signal(signal.SIGINT)
    follow.communicate(timeout=150)
    yard.finish()
    yard.end(run)


FAILS = """
import sys, time
def deeper(n):
    if n == 0: raise ValueError('the same words')
    deeper(n - 1)
for line in ('before', 'before too'): print(line, flush=True)
deeper(20)
"""


def blocks(text):
    """The log lines of each replica in turn: consecutive lines with one prefix."""
    out = []
    for line in text.splitlines():
        name, _, words = line.partition("  ")
        if not name.startswith("worker/"):
            continue
        if not out or out[-1][0] != name:
            out.append((name, []))
        out[-1][1].append(words)
    return out


def test_tracebacks_of_two_replicas_never_interleave(yard):
    """Each is in one piece, if not always whole: the first failure ends the job, and the other replica with it."""
    out = yard.run("run", yard.script(FAILS), status=1)
    for text in (out, yard.run("logs")):
        pieces = [name for name, lines in blocks(text) if any(re.match(r"\s*(Traceback|File|deeper|ValueError)", line) for line in lines)]
        assert pieces and len(pieces) == len(set(pieces)), text
        assert "ValueError: the same words" in text


def test_progress_bars_are_collapsed_and_raw_shows_them(yard):
    yard.run("run", "-w", 1, yard.script(r"""
import sys
for i in range(1, 11):
    sys.stdout.write(f'\r{i}/10 [{"=" * i:<10}] - loss: 0.5')
    sys.stdout.flush()
print()
for i in range(100):
    sys.stdout.write(f'\rdownload {i}%')
print('\rdownload done')
"""))
    logs = yard.run("logs")
    assert "download done" in logs and "download 5%" not in logs
    assert "\r" not in logs
    assert "download 5%" in yard.run("logs", "--raw")


def test_bytes_that_are_no_text_do_no_harm(yard):
    out = yard.run("run", "-w", 1, yard.script(r"""
import sys
sys.stdout.buffer.write(b'bad \xff\xfe \x00 end\n' + b'x' * 300000 + b'\nlast\n')
"""), text=False)
    assert b"last" in out
    for line in yard.run("logs", "--json").splitlines():
        json.loads(line)


def test_an_error_that_is_no_text_is_told_and_does_not_spoil_the_status(yard):
    script = yard.script(r"""
import sys
sys.stdout.buffer.write(b'ValueError: caf\xe9\n')
sys.exit(3)
""")
    yard.run("run", "-w", 1, script, status=3, errors="replace")
    assert yard.has("train-1", "Failed")
    assert "ValueError: caf\ufffd" in yard.run("why")
    assert "Failed" in yard.run("ps")


def test_a_flood_of_lines_is_kept_whole(yard):
    yard.run("run", yard.script("for i in range(20000): print('line', i)"))
    lines = yard.run("logs", "-i", "worker/1").splitlines()
    assert [line.split(maxsplit=1)[1] for line in lines] == [f"line {i}" for i in range(20000)]


def test_a_last_line_without_an_end_is_shown(yard):
    out = yard.run("run", "-w", 1, yard.script("import sys; sys.stdout.write('no newline')"))
    assert told(out) == told(yard.run("logs")) == [("worker/0", "no newline")]


def test_a_reader_that_leaves_early_ends_the_reader_not_the_job(yard):
    script = yard.script("""
import os, time
for i in range(50): print('line', i, flush=True)
while not os.path.exists('finish'): time.sleep(0.01)
print('to the end', flush=True)
""")
    run = yard.start("run", "-w", 1, script)
    run.stdout.readline()
    run.stdout.close()
    wait_for(lambda: "line 49" in yard.log("train-1", "worker-0"), "lines")
    yard.finish()
    assert run.wait(150) == 0
    assert yard.has("train-1", "Succeeded")
    assert "to the end" in yard.log("train-1", "worker-0")
    # `logs | head -1` ends at once.
    head = subprocess.run(f"{BINARY} logs -f | head -1", shell=True, env=yard.env, capture_output=True, text=True,
                          timeout=150, check=True)
    assert "line" in head.stdout


def test_a_closed_standard_output_does_no_harm(yard):
    done = subprocess.run(f"exec {BINARY} run {yard.script('pass')} >&-", shell=True, env=yard.env, timeout=150, check=False)
    assert done.returncode == 0


def test_a_reader_that_stops_reading_does_not_stop_the_supervisor(yard):
    run = yard.start("run", "-w", 1, yard.staying("for i in range(20000): print('a line of some length', i, flush=True)"))
    before = yard.up("worker-0")
    # Nobody reads our output, which is more than a pipe holds; a killed worker is restarted all the same.
    yard.kill(before["worker-0"])
    yard.up("worker-0", but=before.values())
    yard.finish()
    yard.end(run)


def test_standard_input_is_left_alone(yard):
    done = subprocess.run(f"printf 'for later\\n' | ({BINARY} run -w 1 {yard.script('import sys; print(repr(sys.stdin.read()))')};"
                          " cat)", shell=True, env=yard.env, capture_output=True, text=True, timeout=150, check=True)
    assert done.stdout.endswith("for later\n") and told(done.stdout) == [("worker/0", "''")]


def test_a_chatty_job_does_not_make_the_supervisor_spin(yard):
    run = yard.start("run", "-w", 2, yard.script("""
import time
for i in range(60):
    print("line", i)
    time.sleep(0.05)
"""))
    ticks = 0
    while run.poll() is None:
        try:
            ticks = sum(map(int, pathlib.Path(f"/proc/{run.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]))
        except (FileNotFoundError, ProcessLookupError):
            break
    run.communicate()
    # CPU time, not wall time: three seconds of a loop that never waits are some 300 ticks.
    assert ticks < 60


def test_the_last_lines_of_a_large_log_take_little_memory(yard):
    yard.run("run", "-w", 1, yard.script("print('begun')"))
    with open(yard.dir("train-1") / "logs/worker-0.log", "ab") as log:
        log.truncate(log.tell() + (300 << 20))  # a day's log, without taking the place of one
        log.seek(0, 2)
        log.write(b"\nlast but one\nlast\n")
    with open(yard.home / "shown", "w") as out:
        process = yard.start("logs", "--tail", 2, stdout=out)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    assert told((yard.home / "shown").read_text()) == [("worker/0", "last but one"), ("worker/0", "last")]
    assert used.ru_maxrss < 100 << 10, f"{used.ru_maxrss} KiB"
