"""What is known of a cluster, and where: one directory for each, all below one home.

    cluster.json    this description              admin.conf      kubeconfig of an administrator
    pki/            keys and certificates         log/            one file for each component
    control         the supervisor's socket       audit.log       what was asked of the API server, by whom
    etcd/ …         what the components keep      node2/          the same of the second node: control, log/, …
"""

import contextlib
import dataclasses
import fcntl
import json
import os
import pathlib
import re
import secrets
import signal
import stat
import time

from lab import Failure, addresses

MARKER = "TRAINYARD_CLUSTER"  # in the environment of every process of a cluster: its directory
PORT = 6443


@dataclasses.dataclass
class Cluster:
    name: str
    folder: str  # as a string, for JSON; `dir` is the path
    nodes: int
    number: int  # see addresses.py
    programs: str  # the directory of the built binaries
    fsync: bool = False
    audit: bool = False
    grace: int | None = None  # seconds until a silent node is marked; None for the default of Kubernetes
    id: str = dataclasses.field(default_factory=lambda: secrets.token_hex(4))  # for what is named machine-wide

    @property
    def dir(self):
        return pathlib.Path(self.folder)

    @property
    def address(self):
        """Where the control plane listens."""
        return addresses.node(self.number) if self.nodes else addresses.loopback(self.number)

    @property
    def server(self):
        return f"https://{self.address}:{PORT}"

    @property
    def all_nodes(self):
        return [Node(self, index + 1) for index in range(self.nodes)]

    def program(self, name):
        return os.path.join(self.programs, name)

    def log(self, component):
        return self.dir / "log" / f"{component}.log"

    def save(self):
        """In one step: down.py rests on it."""
        part = self.dir / "cluster.json.part"
        part.write_text(json.dumps(dataclasses.asdict(self), indent=1) + "\n")
        part.rename(self.dir / "cluster.json")


@dataclasses.dataclass
class Node:
    """A node of a cluster. The first has its directory and its supervisor in common with the control plane."""
    cluster: Cluster
    index: int  # from 1

    @property
    def name(self):
        return f"node{self.index}"

    @property
    def dir(self):
        return self.cluster.dir if self.index == 1 else self.cluster.dir / self.name

    @property
    def address(self):
        return addresses.node(self.cluster.number, self.index)

    @property
    def pods(self):
        return addresses.pods_of(self.cluster.number, self.index)

    @property
    def link(self):
        """The name of its link, at the end of its gateway."""
        return f"ty{self.cluster.id}" + ("" if self.index == 1 else f"-{self.index}")

    @property
    def cgroup(self):
        return f"tycluster-{self.cluster.id}-{self.index}"

    def log(self, component):
        return self.dir / "log" / f"{component}.log"


def home():
    if base := os.environ.get("XDG_STATE_HOME") or os.environ.get("XDG_RUNTIME_DIR"):
        return pathlib.Path(base).absolute() / "trainyard" / "clusters"
    return pathlib.Path(f"/tmp/trainyard-{os.getuid()}") / "clusters"


def check_home():
    folder = home()
    for path in (folder.parent, folder):  # in /tmp somebody else could have been first
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise Failure(f"{path} is not a directory of ours")


def check_name(name):
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?", name):
        raise Failure(f"{name!r} cannot be a cluster's name: lower-case letters, digits and dashes, at most 32")
    return name


def lock(name):
    """A handle of the cluster's directory, locked; None if the directory was removed meanwhile."""
    folder = home() / name
    try:
        check_home()
        folder.mkdir(mode=0o700, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return None
    fcntl.flock(handle, fcntl.LOCK_EX)
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(handle), folder.stat()):
            return handle
    os.close(handle)
    return None


@contextlib.contextmanager
def locked(name):
    """The cluster's directory, made if there is none. The lock is on the directory itself, so removing the one removes
    the other; whoever waited for it then begins anew. Nobody inherits it: a killed `up` lets go."""
    if len(str(home() / check_name(name))) > 79:  # sockets below it, node2/containerd.sock.ttrpc, have a limit of 107
        raise Failure(f"{home()}/{name} is too long; set XDG_STATE_HOME to a shorter path")
    while (handle := lock(name)) is None:
        pass
    try:
        yield home() / name
    finally:
        os.close(handle)


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


def marked(pid, folder):
    try:
        return f"{MARKER}={folder}".encode() in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:  # it ended, or is somebody else's
        return False


def processes(folder):
    """The pids of all that belongs to the cluster of this directory."""
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and marked(entry, folder)]


def kill(pid, folder):
    with contextlib.suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        try:
            if marked(pid, folder):  # looked at again: now the handle stands for it, and no later process of that pid
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)


def end_processes(folder, seconds=20):
    """Kills all that belongs to a cluster and returns when none is left."""
    deadline = time.monotonic() + seconds
    while pids := processes(folder):
        if time.monotonic() > deadline:
            raise Failure(f"processes that do not end: {pids}")
        for pid in pids:
            kill(pid, folder)
        time.sleep(0.02)


def remove(folder):
    folder.rmdir()
    with contextlib.suppress(OSError):  # others are still there
        folder.parent.rmdir()
        folder.parent.parent.rmdir()
