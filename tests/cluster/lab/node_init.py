"""Makes ready the namespaces that it is started in, as pid 1, and becomes the supervisor.

    node_init.py DIRECTORY SUPERVISOR

What a node writes outside the cluster's directory must not reach the machine: /run, /var/lib and /var/log show what the
machine has, but what is new in them exists here only; and a kubelet that wants to set sysctls of the whole machine finds
them set. A program of its own: it imports nothing of the others.
"""

import ctypes
import os
import pathlib
import stat
import socket
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
MS_BIND, MS_REC, MS_SHARED = 0x1000, 0x4000, 0x100000

# What a kubelet sets if it finds anything else.
SYSCTLS = {"vm/overcommit_memory": 1, "vm/panic_on_oom": 0, "kernel/panic": 10, "kernel/panic_on_oops": 1,
           "kernel/keys/root_maxkeys": 1000000, "kernel/keys/root_maxbytes": 25000000}


def mount(source, target, kind=None, flags=0, data=None):
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind)]
    if LIBC.mount(*words, ctypes.c_ulong(flags), None if data is None else data.encode()):
        number = ctypes.get_errno()
        raise OSError(number, f"mount {target}: {os.strerror(number)}")


def show_through(path):
    """A folder in which new entries are ours alone, while those that were there go on being the machine's."""
    below = os.open(path, os.O_PATH | os.O_DIRECTORY)  # what is mounted over it does not hide it from this handle
    found = sorted(os.listdir(path))
    mount("tmpfs", path, "tmpfs", data="mode=755")
    for name in found:
        source, target = f"/proc/self/fd/{below}/{name}", os.path.join(path, name)
        mode = os.lstat(source).st_mode
        if stat.S_ISLNK(mode):
            os.symlink(os.readlink(source), target)
            continue
        if stat.S_ISDIR(mode):
            os.mkdir(target)
        else:
            os.close(os.open(target, os.O_CREAT, 0o600))
        mount(source, target, flags=MS_BIND | MS_REC)
    os.close(below)


def own(path):
    """An empty folder of ours."""
    os.makedirs(path, exist_ok=True)
    mount("tmpfs", path, "tmpfs", data="mode=755")


def pretend(folder):
    """Hides the machine's sysctls behind files with the values that are wanted."""
    folder.mkdir()
    for name, value in SYSCTLS.items():
        if os.path.exists(f"/proc/sys/{name}"):
            file = folder / name.replace("/", ".")
            file.write_text(f"{value}\n")
            mount(file, f"/proc/sys/{name}", flags=MS_BIND)


def main():
    folder, supervisor = pathlib.Path(sys.argv[1]), sys.argv[2]
    socket.sethostname("node1")
    for path in ("/run", "/var/lib", "/var/log"):
        show_through(path)
    for path in ("/run/containerd", "/run/netns", "/run/runc", "/var/lib/cni", "/var/lib/kubelet", "/var/log/containers"):
        own(path)
    pretend(folder / "sysctl")
    mount(None, "/", flags=MS_REC | MS_SHARED)  # pods may ask for mounts that propagate
    os.execv(sys.executable, [sys.executable, "-I", supervisor, str(folder)])


if __name__ == "__main__":
    main()
