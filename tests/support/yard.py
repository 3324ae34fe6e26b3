"""Drives the real program as a user would, in a state directory of its own.

A `Yard` belongs to one test: its jobs live below a temporary directory, every process it starts carries a marker in
its environment, and at the end none with that marker may be left, nor a cgroup, nor a socket of a supervisor.
"""

import contextlib
import glob
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


# A test names the seconds that an idle machine may need. It fails only after this many times as long: the machine may be
# new, slow, or busy with the other parts of a stage.
PATIENCE = 5


def wait_for(condition, what, seconds=60):
    """Polls until the condition holds and returns its value."""
    seconds *= PATIENCE
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.02)


def write_image(target, *words, program=BINARY):
    """Writes the container image of the program under test, and returns where."""
    subprocess.run([ROOT / "script/image", *words, target], env={**os.environ, "TRAINYARD_BINARY": str(program)}, check=True)
    return target


def proc_file(pid, name):
    """The content of /proc/PID/NAME; empty when the process has ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def alive(pid):
    """Whether a process exists and is no zombie."""
    stat = proc_file(pid, "stat")
    return bool(stat) and stat.rsplit(b")", 1)[1].split()[0] not in (b"Z", b"X")


def cgroups():
    """The cgroups that Trainyard has made for replicas of any job."""
    return {path for path in glob.glob("/sys/fs/cgroup/**/trainyard-*", recursive=True) if os.path.isdir(path)}


# A replica that says it is up (a file up-ROLE-N.ATTEMPT with its pid) and works until there is a file named finish.
STAYS = """
import os, time
name = '{TRAINYARD_ROLE}-{TRAINYARD_INDEX}.{TRAINYARD_ATTEMPT}'.format(**os.environ)
def up():
    with open(f'{os.getpid()}.part', 'w') as file: file.write(str(os.getpid()))
    os.rename(f'{os.getpid()}.part', f'up-{name}')
def stay():
    up()
    while not os.path.exists('finish'): time.sleep(0.01)
"""


class Yard:
    def __init__(self, home):
        assert BINARY.exists(), f"{BINARY} is not there: script/build"
        self.home = pathlib.Path(home)
        self.cgroups_before = cgroups()
        self.marker = f"TRAINYARD_TEST_MARKER={uuid.uuid4()}"
        name, value = self.marker.split("=")
        runtime, temporary = self.home / "run", self.home / "tmp"
        runtime.mkdir(parents=True)
        temporary.mkdir()  # what a killed TensorFlow leaves there goes with the test
        self.env = {**os.environ, name: value, "TRAINYARD_HOME": str(self.home / "state"),
                    "XDG_RUNTIME_DIR": str(runtime), "TMPDIR": str(temporary), "LC_ALL": "C.UTF-8",
                    "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"}
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
            out, err = process.communicate(timeout=PATIENCE * seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"trainyard {words} still runs after {PATIENCE * seconds} s\n{out}\n{err}") from None
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

    # -- replicas that stay until they may finish

    def staying(self, before="", name="train.py"):
        """A script whose replicas stay up until `finish`; `before` is run first."""
        return self.script(STAYS + before + "\nstay()\n", name)

    def finish(self):
        (self.home / "finish").touch()

    def up(self, *replicas, but=()):
        """Waits until these replicas live, none of them by a pid of `but`, and returns their pids by name."""
        def all_up():
            pids = {}
            for replica in replicas:
                for file in self.home.glob(f"up-{replica}.[0-9]*"):
                    if (pid := int(file.read_text())) not in but and alive(pid):
                        pids[replica] = pid
            return pids if len(pids) == len(replicas) else None
        return wait_for(all_up, f"{replicas} up", seconds=30)

    def end(self, process, status=0, seconds=30):
        """Waits for a started program and returns its output; the exit status must be as said."""
        try:
            out, err = process.communicate(timeout=PATIENCE * seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"still runs after {PATIENCE * seconds} s\n{out}\n{err}") from None
        assert process.returncode == status, f"exit {process.returncode}, not {status}\n{out}\n{err}"
        return out

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
            environ = set(proc_file(pid, "environ").split(b"\0"))
            if wanted <= environ and b"trainyard-guard" not in proc_file(pid, "cmdline"):
                found.append(pid)
        return found

    def guard_pids(self, job, replica):
        """Pids of the guard of one replica."""
        found = []
        for pid in self.processes():
            words = proc_file(pid, "cmdline").split(b"\0")
            if words[0].endswith(b"trainyard-guard") and f"/{job}/endings/{replica}.".encode() in words[2]:
                found.append(pid)
        return sorted(found)

    def kill(self, *pids, sig=signal.SIGKILL):
        """Signals processes of this test, all of them in one go."""
        ours = set(self.processes())
        assert all(pid in ours or not alive(pid) for pid in pids), "not processes of this test"
        for pid in ours.intersection(pids):
            try:
                os.kill(pid, sig)
            except ProcessLookupError:  # it has just ended, perhaps because of the one before it
                pass

    def close(self):
        """Nothing may be left; what is left is ended all the same."""
        deadline = time.monotonic() + 5 * PATIENCE
        while (self.processes() or self.leftovers()) and time.monotonic() < deadline:
            time.sleep(0.05)
        left = self.processes()
        commands = [proc_file(pid, "cmdline").replace(b"\0", b" ") for pid in left if alive(pid)]
        for pid in left:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
        leftovers = self.leftovers()
        for path in leftovers:
            with contextlib.suppress(OSError):
                os.unlink(path) if pathlib.Path(path).is_socket() else os.rmdir(path)
        assert not left, f"processes left behind: {commands}"
        assert not leftovers, f"left behind: {leftovers}"

    def leftovers(self):
        """Sockets of supervisors that are gone, and cgroups of this test's replicas."""
        sockets = [path for path in (self.home / "run").rglob("*") if path.is_socket()]
        # A cgroup is named after the supervisor that made it: of a dead one, or of one of ours.
        made = [path for path in cgroups() - self.cgroups_before if not alive(path.rsplit("-", 1)[1])]
        return sockets + made
