"""What is known of a cluster, and where: one directory for each, all below one home.

    cluster.json    this description              admin.conf      kubeconfig of an administrator
    pki/            keys and certificates         log/            one file for each component
    control         the supervisor's socket       audit.log       what was asked of the API server, with --audit
    etcd/ …         what the components keep
"""

import contextlib
import dataclasses
import fcntl
import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import stat
import time

from lab import Failure, addresses

MARKER = "TRAINYARD_CLUSTER"  # in the environment of every process of a cluster: its directory
PORT = 6443


@dataclasses.dataclass
class Cluster:
    name: str
    nodes: int
    number: int  # see addresses.py
    programs: str  # the directory of the built binaries
    fsync: bool = False
    audit: bool = False
    id: str = dataclasses.field(default_factory=lambda: secrets.token_hex(4))  # for what is named machine-wide

    @property
    def dir(self):
        return home() / self.name

    @property
    def address(self):
        """Where the control plane listens."""
        return addresses.node(self.number) if self.nodes else addresses.loopback(self.number)

    @property
    def server(self):
        return f"https://{self.address}:{PORT}"

    @property
    def link(self):
        return f"ty{self.id}"

    @property
    def cgroup(self):
        return f"tycluster-{self.id}"

    def program(self, name):
        return os.path.join(self.programs, name)

    def log(self, component):
        return self.dir / "log" / f"{component}.log"

    def save(self):
        (self.dir / "cluster.json").write_text(json.dumps(dataclasses.asdict(self), indent=1) + "\n")


def home():
    """Short on purpose: the paths of sockets below it have a limit of 107 characters."""
    if base := os.environ.get("XDG_STATE_HOME") or os.environ.get("XDG_RUNTIME_DIR"):
        return pathlib.Path(base).absolute() / "trainyard" / "clusters"
    return pathlib.Path(f"/tmp/trainyard-{os.getuid()}") / "clusters"


def prepare_home():
    folder = home()
    if len(str(folder)) > 60:
        raise Failure(f"{folder} is too long a path for the sockets below it; set XDG_STATE_HOME to a shorter one")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in (folder.parent, folder):  # in /tmp somebody else could have been first
        found = path.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise Failure(f"{path} is not a directory of ours")
    return folder


def check_name(name):
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?", name):
        raise Failure(f"{name!r} cannot be a cluster's name: lower-case letters, digits and dashes, at most 32")
    return name


@contextlib.contextmanager
def locked(name):
    """Held while a cluster comes up or goes down. Not inherited, so a killed `up` lets go of it."""
    with open(prepare_home() / f".{check_name(name)}.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def load(name):
    path = home() / check_name(name) / "cluster.json"
    try:
        return Cluster(**json.loads(path.read_text()))
    except FileNotFoundError:
        raise Failure(f"no cluster named {name}") from None
    except (ValueError, TypeError) as error:
        raise Failure(f"{path}: {error}") from None


def names():
    """Every cluster there is, whole or not."""
    folder = home()
    return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def processes(folder):
    """Handles (pidfd) of the processes that carry a cluster's marker; the caller closes them."""
    mark = f"{MARKER}={folder}".encode()
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError):  # it ended, or is somebody else's
            handle = os.pidfd_open(int(entry))
            # Read after opening: what the handle stands for is what has the marker.
            if mark in pathlib.Path(f"/proc/{entry}/environ").read_bytes().split(b"\0"):
                found[int(entry)] = handle
            else:
                os.close(handle)
    return found


def end_processes(folder, seconds=20):
    """Kills every process that carries the marker and returns when none is left."""
    deadline = time.monotonic() + seconds
    while handles := processes(folder):
        for handle in handles.values():
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            os.close(handle)
        if time.monotonic() > deadline:
            raise Failure(f"processes that do not end: {sorted(handles)}")
        time.sleep(0.02)


def remove(folder):
    shutil.rmtree(folder)
    with contextlib.suppress(OSError):  # others are still there
        folder.parent.rmdir()
