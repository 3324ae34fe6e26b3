"""Drives the real program as a user would, in a state directory of its own.

A `Yard` belongs to one test: its jobs live below a temporary directory, every process it starts carries a marker in
its environment, and at the end none with that marker may be left.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("TRAINYARD_BINARY", ROOT / "build/release/trainyard"))


def wait_for(condition, what, seconds=60):
    """Polls until the condition holds and returns its value."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.02)


def alive(pid):
    """Whether a process exists and is no zombie."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rsplit(")", 1)[1].split()[0] not in "ZX"


class Yard:
    def __init__(self, home):
        self.home = pathlib.Path(home)
        self.marker = f"TRAINYARD_TEST_MARKER={uuid.uuid4()}"
        name, value = self.marker.split("=")
        runtime = self.home / "run"
        runtime.mkdir(parents=True)
        self.env = {**os.environ, name: value, "TRAINYARD_HOME": str(self.home / "state"),
                    "XDG_RUNTIME_DIR": str(runtime), "LC_ALL": "C.UTF-8"}
        self.env.pop("TF_CONFIG", None)

    # -- running the program

    def start(self, *words, env=None, **options):
        """Starts the program and returns the process."""
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, "text": True,
                   "cwd": self.home, **options}
        return subprocess.Popen([str(BINARY), *map(str, words)], env={**self.env, **(env or {})}, **options)

    def run(self, *words, status=0, seconds=120, env=None, **options):
        """Runs the program to its end and returns its standard output; the exit status must be as said."""
        process = self.start(*words, env=env, **options)
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"trainyard {words} still runs after {seconds} s\n{out}\n{err}") from None
        self.err = err
        assert process.returncode == status, f"exit {process.returncode}, not {status}\n{out}\n{err}"
        return out

    def refused(self, *words, **options):
        """The one line with which a command line is refused."""
        before = self.listing()
        self.run(*words, status=2, **options)
        assert self.listing() == before, "a refused command changed the state directory"
        lines = self.err.strip().splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("trainyard: ")
        return lines[0].removeprefix("trainyard: ")

    # -- looking at jobs

    def listing(self):
        """Every job directory there is."""
        return sorted(str(p.relative_to(self.home)) for p in (self.home / "state").glob("*/*") if p.is_dir())

    def dir(self, job, namespace="default"):
        return self.home / "state" / namespace / job

    def status(self, job):
        try:
            return json.loads((self.dir(job) / "status.json").read_text())
        except FileNotFoundError:
            return {}

    def has(self, job, condition):
        """Whether the job has this condition with status True."""
        return any(c["type"] == condition and c["status"] == "True" for c in self.status(job).get("conditions", []))

    def log(self, job, replica):
        try:
            return (self.dir(job) / "logs" / f"{replica}.log").read_text()
        except FileNotFoundError:
            return ""

    def script(self, text, name="train.py"):
        path = self.home / name
        path.write_text(text)
        return path

    # -- processes

    def processes(self):
        """Pids of every process that carries this yard's marker, the test itself excepted."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                if self.marker.encode() in (entry / "environ").read_bytes().split(b"\0") and alive(int(entry.name)):
                    found.append(int(entry.name))
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
        return found

    def replica_pids(self, job, replica):
        """Pids of the processes of one replica, its guard excepted."""
        role, index = replica.split("-")
        wanted = {f"TRAINYARD_JOB={job}".encode(), f"TRAINYARD_ROLE={role}".encode(), f"TRAINYARD_INDEX={index}".encode()}
        found = []
        for pid in self.processes():
            try:
                environ = set(pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))
                command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if wanted <= environ and b"trainyard-guard" not in command:
                found.append(pid)
        return found

    def guard_pid(self, job, replica):
        for pid in self.processes():
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if words[0].endswith(b"trainyard-guard") and f"/{job}/endings/{replica}.".encode() in words[2]:
                return pid
        return None

    def kill(self, pid, sig=signal.SIGKILL):
        assert pid in self.processes(), "not a process of this test"
        os.kill(pid, sig)

    def close(self):
        """No process may be left; what is left is ended all the same."""
        deadline = time.monotonic() + 5
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.05)
        commands = [pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ") for pid in left if alive(pid)]
        for pid in left:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
        assert not left, f"processes left behind: {commands}"


if not BINARY.exists():
    sys.exit(f"{BINARY} is not there: script/build")
