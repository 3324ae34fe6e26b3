"""Makes ready the namespaces that it is started in, as pid 1, and becomes the supervisor.

    node_init.py DIRECTORY SUPERVISOR NAME

What a node writes outside the cluster's directory must not reach the machine: /run, /var/lib and /var/log show what
the machine has, but what is new in them exists here only; and a kubelet that wants to set sysctls of the whole machine
finds them set.
"""

import os
import pathlib
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lab.mounts import MS_BIND, MS_REC, MS_SHARED, mount, own, show_through  # noqa: E402

# What a kubelet sets if it finds anything else.
SYSCTLS = {"vm/overcommit_memory": 1, "vm/panic_on_oom": 0, "kernel/panic": 10, "kernel/panic_on_oops": 1,
           "kernel/keys/root_maxkeys": 1000000, "kernel/keys/root_maxbytes": 25000000}


def pretend(folder):
    """Hides the machine's sysctls behind files with the values that are wanted."""
    folder.mkdir()
    for name, value in SYSCTLS.items():
        if os.path.exists(f"/proc/sys/{name}"):
            file = folder / name.replace("/", ".")
            file.write_text(f"{value}\n")
            mount(file, f"/proc/sys/{name}", flags=MS_BIND)


def main():
    folder, supervisor, name = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    socket.sethostname(name)
    for path in ("/run", "/var/lib", "/var/log"):
        show_through(path)
    for path in ("/run/containerd", "/run/netns", "/run/runc", "/var/lib/cni", "/var/lib/kubelet",
                 "/var/log/containers"):
        own(path)
    pretend(folder / "sysctl")
    mount(None, "/", flags=MS_REC | MS_SHARED)  # pods may ask for mounts that propagate
    os.execv(sys.executable, [sys.executable, "-IB", supervisor, str(folder)])


if __name__ == "__main__":
    main()
