"""Speaks with a supervisor: that of a cluster, which is also that of its first node, or that of another node."""

import json
import os
import signal
import socket
import time

from lab import Failure


def ask(cluster, **request):
    folder = os.open(cluster.dir, os.O_PATH | os.O_DIRECTORY)
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            connection.connect(f"/proc/self/fd/{folder}/control")  # short, however long the directory's path is
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile() as lines:
                reply = json.loads(lines.readline() or "{}")
    finally:
        os.close(folder)
    if "error" in reply:
        raise Failure(reply["error"])
    return reply


def alive(cluster):
    try:
        ask(cluster, list=True)
        return True
    except (OSError, ValueError):
        return False


def components(cluster):
    try:
        return ask(cluster, list=True)
    except OSError:
        raise Failure(f"{cluster.name} is not up") from None


def start(cluster, name, argv):
    ask(cluster, start=name, argv=[str(word) for word in argv])


def find(cluster, name):
    """Who has the component, and its name there: "node2/kubelet" is the kubelet of node2."""
    where, _, component = name.rpartition("/")
    places = {"": cluster, **{node.name: node for node in cluster.all_nodes}}
    if where in places:
        return places[where], component
    raise Failure(f"the cluster {cluster.name} has no {where}")


def kill(cluster, name):
    """Kills a component and returns when it is gone."""
    if name not in components(cluster):
        raise Failure(f"{cluster.name} has no {name}; it has {', '.join(sorted(components(cluster)))}")
    ask(cluster, signal=name, number=int(signal.SIGKILL))
    deadline = time.monotonic() + 10
    while components(cluster)[name]["status"] is None:
        if time.monotonic() > deadline:
            raise Failure(f"{name} does not end")
        time.sleep(0.01)


def restart(cluster, name):
    kill(cluster, name)
    ask(cluster, start=name)


def supervisor_pid(cluster):
    """Its pid as we see it, also when it is pid 1 of its own namespace."""
    folder = os.open(cluster.dir, os.O_PATH | os.O_DIRECTORY)
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(f"/proc/self/fd/{folder}/control")
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    finally:
        os.close(folder)
    return int.from_bytes(credentials[:4], "little")
