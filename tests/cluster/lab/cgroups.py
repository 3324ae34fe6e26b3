"""The cgroups below which the pods of a cluster's nodes live, on machines with cgroup v1, v2, or both.

With v1 each node has one in each hierarchy. With v2 the children of the root need the controllers switched on first; what
had to be switched on is remembered in the cluster's directory and switched off in the end, which the kernel refuses
while another cluster uses it.
"""

import os
import pathlib
import time

from lab import Failure

CONTROLLERS = ("cpuset", "cpu", "io", "memory", "pids")  # those that a kubelet wants


def mounts(kind):
    """Where hierarchies are mounted: kind "cgroup" is v1, "cgroup2" is v2."""
    lines = [line.split() for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
    return [pathlib.Path(words[1]) for words in lines if words[2] == kind]


def only_v2():
    return not mounts("cgroup")


def switch_on(root, switched):
    have = (root / "cgroup.controllers").read_text().split()
    on = (root / "cgroup.subtree_control").read_text().split()
    if missing := {"cpu", "memory", "pids"} - set(have):
        raise Failure(f"{root} has no controller for {', '.join(sorted(missing))}")
    for controller in CONTROLLERS:
        if controller in have and controller not in on:
            (root / "cgroup.subtree_control").write_text(f"+{controller}")
            with open(switched, "a") as file:
                file.write(controller + "\n")


def make(cluster):
    if only_v2():
        switch_on(mounts("cgroup2")[0], cluster.dir / "cgroup-controllers")
    for folder in folders(cluster):
        root = folder.parent
        folder.mkdir()
        for file in ("cpuset.cpus", "cpuset.mems"):  # v1 leaves them empty, and then nothing can enter
            if (root / file).exists() and (folder / file).exists():
                (folder / file).write_text((root / file).read_text())


def folders(cluster):
    return [root / node.cgroup for root in mounts("cgroup") + mounts("cgroup2") for node in cluster.all_nodes]


def below(folder):
    return [pathlib.Path(path) for path, _, _ in os.walk(folder, topdown=False)]


def remove(cluster, seconds=10):
    """Removes the cgroups; those of processes that are just ending need a moment."""
    deadline = time.monotonic() + seconds
    while left := [path for folder in folders(cluster) for path in below(folder)]:
        for path in left:
            try:
                path.rmdir()
            except FileNotFoundError:
                pass
            except OSError as error:
                if time.monotonic() > deadline:
                    raise Failure(f"cannot remove the cgroup {path}: {error}") from None
        time.sleep(0.02)
    switched = cluster.dir / "cgroup-controllers"
    for controller in switched.read_text().split() if switched.exists() else []:
        try:
            (mounts("cgroup2")[0] / "cgroup.subtree_control").write_text(f"-{controller}")
        except OSError:
            pass  # somebody else uses it by now
