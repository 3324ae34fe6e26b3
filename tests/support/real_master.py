"""The real trainyard-master, played a host to: a test says who lives, and kills and starts it as it likes."""

import json
import os
import signal
import socket
import subprocess

from yard import BINARY

MASTER = BINARY.parent / "libexec/trainyard-master"


class RealMaster:
    def __init__(self, directory):
        self._directory = directory
        self._members, self._seq, self.port = {}, 0, 0
        directory.mkdir(exist_ok=True)
        self.start()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def start(self):
        self._host, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [MASTER, "--ledger", self._directory, "--job", "test/u-1", "--port", str(self.port), "--listen", "127.0.0.1", "--control",
             str(theirs.fileno())], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        theirs.close()
        self._lines = self._host.makefile("r")
        self.port = self.tell()["port"]

    def tell(self, **members):
        """Changes who is there (worker_0="live", or None for gone) and returns the master's answer."""
        self._members.update({name.replace("_", "-"): state for name, state in members.items()})
        self._seq += 1
        listed = [{"name": f"{name}@0", "number": int(name.split("-")[1]), "state": state}
                  for name, state in self._members.items() if state]
        self._host.sendall(json.dumps({"seq": self._seq, "members": listed}).encode() + b"\n")
        while (answer := json.loads(self._lines.readline()))["seq"] != self._seq:
            pass
        return answer

    def kill(self):
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._host.close()

    def close(self):
        self._host.shutdown(socket.SHUT_RDWR)
        self._host.close()
        assert self._process.wait(timeout=30) == 0
