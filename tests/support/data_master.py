"""Starts libexec/trainyard-master as a job's host does, and plays the host: who lives, who is replaced.

A member is a process with a published client of ElasticDL's master, unmodified, in a Python of its own.
"""

import json
import os
import pathlib
import signal
import socket
import subprocess

from yard import BINARY, ROOT, wait_for

MASTER = BINARY.parent / "libexec/trainyard-master"


def client_python(which):
    """The Python that has a published client: edl-1.0, edl-1.4 or edl-1.4.1."""
    return subprocess.run([ROOT / "script/python-env", which], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


class DataMaster:
    def __init__(self, directory, job="mnist/u-1", program=MASTER):
        self.directory, self.job, self.program = pathlib.Path(directory), job, program
        self.port, self.seq, self.members = 0, 0, {}
        self.data, self.events = None, []
        self.start()

    def start(self):
        self.host, theirs = socket.socketpair()
        self.host.settimeout(60)
        self.lines = self.host.makefile("r", encoding="utf-8")
        with theirs:
            self.process = subprocess.Popen(
                [self.program, "--ledger", self.directory / "ledger", "--job", self.job, "--port", str(self.port),
                 "--control", str(theirs.fileno())], pass_fds=[theirs.fileno()])
        self.say()

    def say(self):
        """Tells the whole truth about the members, and reads until it was heard."""
        self.seq += 1
        message = {"seq": self.seq, "members": [{"name": name, "number": number, "state": state}
                                                for name, (number, state) in self.members.items()]}
        self.host.sendall(json.dumps(message).encode() + b"\n")
        while self.read()["seq"] != self.seq:
            pass

    def read(self):
        line = self.lines.readline()
        assert line, f"the master is gone: {self.process.wait()}"
        message = json.loads(line)
        self.port, self.data = message["port"], message["data"]
        self.events += message["data"]["events"]
        return message

    def set(self, name, number, state="live"):
        self.members[name] = (number, state)
        self.say()

    def look(self):
        self.say()
        return self.data

    def kill(self):
        """As a machine's bad luck would; and again on the same port with the same ledger."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.hang_up()
        self.start()

    def hang_up(self):
        self.lines.close()
        self.host.close()

    def close(self):
        self.hang_up()
        assert self.process.wait(timeout=60) == 0


class Crew:
    """Members that run a script with a published client. What ends misled, or fails, is replaced, as the core does it."""

    def __init__(self, master, python, script, directory, env=None):
        self.master, self.python, self.directory, self.env = master, python, pathlib.Path(directory), env or {}
        self.script = self.directory / "script.py"
        self.script.write_text(script)
        self.running, self.attempts, self.exits = {}, {}, []

    def start(self, index):
        attempt = self.attempts.get(index, -1) + 1
        self.attempts[index] = attempt
        name, number = f"worker-{index}@{attempt}", attempt << 16 | index
        self.master.set(name, number)
        address = f"127.0.0.1:{self.master.port}"
        with open(self.directory / f"{name}.out", "w") as out:
            self.running[name] = subprocess.Popen(
                [self.python, "-u", self.script], stdout=out, stderr=subprocess.STDOUT,
                env={**os.environ, "MASTER_ADDR": address, "DLROVER_MASTER_ADDR": address, "WORKER_ID": str(number),
                     "WORKER_TYPE": "worker", "WORKER_NUM": "3", "GRPC_VERBOSITY": "NONE", **self.env})
        return name

    def output(self, name):
        return (self.directory / f"{name}.out").read_text()

    def said(self, word):
        """The words after this one, of all lines of all members that begin with it."""
        lines = [line.split() for path in sorted(self.directory.glob("worker-*.out")) for line in path.read_text().splitlines()]
        return [line[1:] for line in lines if line and line[0] == word]

    def wait_said(self, name, word):
        wait_for(lambda: word in self.output(name).split(), f"{name} says {word}: {self.output(name)}")

    def end(self, name):
        """A member has ended: says so to the master; the state."""
        code = self.running.pop(name).wait()
        self.exits.append((name, code))
        state = "succeeded" if code == 0 else "failed"
        self.master.set(name, self.master.members[name][0], state)
        return state

    def kill(self, name):
        self.running[name].kill()
        self.end(name)

    def step(self):
        """Looks for members that have ended, and replaces those that have to be. False: all are done."""
        for name in [name for name, process in self.running.items() if process.poll() is not None]:
            state, data = self.end(name), self.master.data
            if state == "failed" or (name in data["misled"] and data["todo"] > 0):
                self.start(int(name.removeprefix("worker-").split("@")[0]))
        if not self.running and self.master.look()["todo"] > 0:  # came back after its last holder's end
            self.start(0)
        return bool(self.running)

    def run(self, seconds=60):
        wait_for(lambda: not self.step(), "the end of all members", seconds)

    def close(self):
        for process in self.running.values():
            process.kill()
            process.wait()
