"""The disk with the state of jobs is full: before a job begins, and while it runs."""

import contextlib
import os
import signal
import subprocess

import pytest
from yard import wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a file system")
FULL = "No space left on device"


class Disk:
    """A small file system where the state of the yard's jobs lies."""

    def __init__(self, yard):
        self.folder = yard.home / "state"
        self.filler = self.folder / "default/filler"

    def mount(self, size):
        self.folder.mkdir()
        try:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", self.folder], check=True)
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("cannot mount a file system here")

    def fill(self, but=0):
        """All of it, but so many bytes."""
        self.filler.parent.mkdir(exist_ok=True)
        with open(self.filler, "wb", buffering=0) as filler, contextlib.suppress(OSError):
            while filler.write(b"x" * 4096):
                pass
        os.truncate(self.filler, os.path.getsize(self.filler) - but)

    def make_room(self):
        self.filler.unlink()


@pytest.fixture
def disk(yard):
    disk = Disk(yard)
    yield disk
    if os.path.ismount(disk.folder):
        wait_for(lambda: not yard.processes(), "nothing writes to it any more")
        subprocess.run(["umount", disk.folder], check=True)


@pytest.fixture
def running(yard, disk):
    """Starts a job of two that stay, fills the disk, and returns the job's process and pids; what it says goes to a file."""
    disk.mount("2m")
    with open(yard.home / "said", "w") as said:
        run = yard.start("run", "--name", "a", yard.staying(), stdout=said, stderr=said)
    pids = yard.up("worker-0", "worker-1")
    wait_for(lambda: yard.has("a", "Running"), "it is known to run")
    disk.fill()
    return run, pids


def said(yard):
    return (yard.home / "said").read_text()


def test_a_job_is_refused_where_it_could_not_begin(yard, disk):
    script = yard.script("pass")
    disk.mount("64k")
    for free in (0, 4096, 8192, 16384):
        disk.fill(but=free)
        assert FULL in yard.refused("run", script)
        assert [path.name for path in disk.folder.glob("*/*")] == ["filler"]
        disk.make_room()


def test_a_restart_waits_for_room(yard, disk, running):
    """It is in no status yet, so nothing of it has begun: whoever took over now would find what there is."""
    run, pids = running
    yard.kill(pids["worker-1"])
    wait_for(lambda: FULL in said(yard), "it is told")
    assert yard.status("a")["restarts"] == 0 and yard.has("a", "Running")
    assert yard.processes() and not list(yard.home.glob("up-*.1"))
    disk.make_room()
    yard.up("worker-0", "worker-1", but=pids.values())
    yard.finish()
    yard.end(run)
    assert said(yard).count(FULL) == 1
    assert yard.status("a")["restarts"] == 1 and yard.has("a", "Succeeded")


def test_a_job_that_ends_is_done_when_there_is_room(yard, disk, running):
    run, _ = running
    yard.finish()
    wait_for(lambda: FULL in said(yard), "it is told")
    assert run.poll() is None and not yard.has("a", "Succeeded")
    disk.make_room()
    yard.end(run)
    assert yard.has("a", "Succeeded") and "a succeeded" in said(yard)


def test_ctrl_c_ends_it_without_room_and_it_can_be_resumed(yard, disk, running):
    run, pids = running
    run.send_signal(signal.SIGINT)
    yard.end(run, status=130)
    assert FULL in said(yard)
    assert not yard.processes()
    disk.make_room()
    assert "Interrupted" in yard.run("ps")
    yard.finish()
    yard.run("resume", "a")
    assert yard.has("a", "Succeeded")


def test_a_killed_supervisor_loses_nothing(yard, disk, running):
    run, pids = running
    yard.kill(pids["worker-1"])
    wait_for(lambda: FULL in said(yard), "it is told")
    run.kill()
    run.communicate()
    wait_for(lambda: not yard.processes(), "all are gone")
    disk.make_room()
    yard.finish()
    yard.run("resume", "a")
    assert yard.has("a", "Succeeded")


def test_a_script_that_fills_the_disk_is_told_as_such(yard, disk):
    disk.mount("2m")
    script = yard.script("import os\n"
                         "with open(os.environ['TRAINYARD_OUTPUT_DIR'] + '/model', 'wb', buffering=0) as model:\n"
                         "    while True: model.write(b'x' * 4096)\n")
    with open(yard.home / "said", "w") as said_to:
        run = yard.start("run", "-w", 1, "--name", "a", script, stdout=said_to, stderr=said_to)
    wait_for(lambda: FULL in said(yard), "it is told")
    wait_for(lambda: run.poll() is not None or "status.json" in said(yard), "it waits for room")
    (yard.dir("a") / "output/model").unlink()
    yard.end(run, status=1)
    assert f"worker/0 exited with status 1: OSError: [Errno 28] {FULL}" in said(yard) and "free some disk space" in said(yard)
