"""Holds the components of one cluster: starts them, reaps them, and takes them along when it ends.

    supervisor.py DIRECTORY

It does what it is told through the socket DIRECTORY/control, one JSON object a connection, answered by another:

    {"start": NAME, "argv": […]}   starts a component, its output goes to log/NAME.log; without argv, as the last time
    {"signal": NAME, "number": 9}  sends a signal to it, if it runs
    {"list": true}                 {NAME: {"pid": …, "status": null, or the exit status, negative for a signal}}

Which component, when and how is decided elsewhere (up.py). The supervisor's death, however it comes, is the end of the
cluster: each component asked the kernel to be killed with its parent, and where the supervisor is pid 1 of a
namespace the kernel ends all the rest. It is a program of its own: it imports nothing of the others.
"""

import ctypes
import json
import os
import selectors
import signal
import socket
import sys

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


class Component:
    def __init__(self, argv):
        self.argv = argv
        self.pid = None
        self.status = None

    @property
    def runs(self):
        return self.pid is not None and self.status is None


def start(name, component):
    parent = os.getpid()
    out = os.open(f"log/{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    pid = os.fork()
    if pid:
        os.close(out)
        component.pid, component.status = pid, None
        return
    try:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before we could ask
            os._exit(1)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.setsid()
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.execvp(component.argv[0], component.argv)
    except BaseException as error:  # this is the child: nothing of the supervisor may go on in it
        os.write(2, f"cannot start {component.argv[0]}: {error}\n".encode())
    os._exit(127)


def reap(components):
    """All that have ended, also orphans, which come to pid 1."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        for component in components.values():
            if component.pid == pid:
                component.status = os.waitstatus_to_exitcode(status)


def answer(request, components):
    if name := request.get("start"):
        component = components.get(name)
        if component is not None and component.runs:
            raise ValueError(f"{name} runs already")
        if "argv" in request:
            component = components[name] = Component(request["argv"])
        if component is None:
            raise ValueError(f"{name} was never started")
        start(name, component)
        return {"pid": component.pid}
    if name := request.get("signal"):
        if name not in components:
            raise ValueError(f"there is no {name}")
        if components[name].runs:
            os.kill(components[name].pid, request["number"])
        return {}
    return {name: {"pid": c.pid, "status": c.status} for name, c in components.items()}


def serve(listener, components):
    connection, _ = listener.accept()
    with connection:
        connection.settimeout(5)
        try:
            with connection.makefile("rb") as lines:
                reply = answer(json.loads(lines.readline(1 << 20)), components)
        except (ValueError, TypeError, KeyError, AttributeError, OSError) as error:
            reply = {"error": str(error)}
        try:
            connection.sendall(json.dumps(reply).encode() + b"\n")
        except OSError:
            pass  # whoever asked is gone


def main():
    os.chdir(sys.argv[1])
    signal.signal(signal.SIGCHLD, lambda *_: None)  # only to wake the loop
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    os.umask(0o077)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("control")
    listener.listen(16)
    os.umask(0o022)
    components = {}
    loop = selectors.DefaultSelector()
    loop.register(listener, selectors.EVENT_READ)
    loop.register(woken, selectors.EVENT_READ)
    while True:
        for key, _ in loop.select():
            if key.fileobj is listener:
                serve(listener, components)
            else:
                os.read(woken, 4096)
        reap(components)


if __name__ == "__main__":
    main()
