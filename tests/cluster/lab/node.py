"""The node: a machine within the machine, in its own network, process, mount, host name and IPC namespaces.

The supervisor is pid 1 in there, so its end is the end of all. A pair of virtual links joins the two: the host reaches
API server, pods and services directly, pods reach the host, and there is no way out to anywhere else.
"""

import os
import pathlib
import subprocess

from lab import Failure, addresses, cgroups, images, pki
from lab.components import write_json
from lab.node_components import NAME

HERE = pathlib.Path(__file__).resolve().parents[1]
INIT = HERE / "lab/node_init.py"
UNSHARE = ["unshare", "--net", "--pid", "--mount", "--uts", "--ipc", "--fork", "--kill-child", "--propagation=private",
           "--mount-proc"]


def check_rights():
    """Says in time what would fail later."""
    tried = subprocess.run([*UNSHARE, "true"], capture_output=True, text=True)
    if os.getuid() != 0 or tried.returncode != 0:
        why = "you are not root" if os.getuid() != 0 else tried.stderr.strip()
        raise Failure(f"a node needs root and namespaces of its own, and {why}.\n"
                      "Without a node, script/cluster up --nodes 0, it would come up.")


def run(*words):
    subprocess.run([str(word) for word in words], check=True, capture_output=True, timeout=60)


def join(cluster, pid):
    """The links between the host and the namespaces of this pid, and the routes over them."""
    number, inside = cluster.number, ["nsenter", f"--target={pid}", "--net", "ip"]
    run("ip", "link", "add", cluster.link, "type", "veth", "peer", "name", "eth0", "netns", pid)
    run("ip", "addr", "add", f"{addresses.host(number)}/30", "dev", cluster.link)
    run("ip", "link", "set", cluster.link, "up")
    run(*inside, "link", "set", "lo", "up")
    run(*inside, "addr", "add", f"{addresses.node(number)}/30", "dev", "eth0")
    run(*inside, "link", "set", "eth0", "up")
    for network in (addresses.pods(number), addresses.services(number)):
        run("ip", "route", "add", network, "via", addresses.node(number))
    # Only so that there is a route at all: the packets never get there, kube-proxy rewrites them first.
    run(*inside, "route", "add", addresses.services(number), "via", addresses.host(number))
    run("nsenter", f"--target={pid}", "--net", "sysctl", "-qw", "net.ipv4.ip_forward=1")


def leave(cluster):
    """What `join` made on the host, if it is still there."""
    if os.path.exists(f"/sys/class/net/{cluster.link}"):
        subprocess.run(["ip", "link", "delete", cluster.link], capture_output=True)


def make_certificates(cluster):
    folder = cluster.dir / "pki"
    for file, user, groups, names in (
            ("kubelet", f"system:node:{NAME}", ["system:nodes"], [f"DNS:{NAME}", f"IP:{cluster.address}"]),
            ("proxy", "system:kube-proxy", [], []), ("coredns", "coredns", ["system:masters"], [])):
        pki.sign(folder, file, user, groups, names)
        pki.write_kubeconfig(folder, file, cluster.server, cluster.dir / f"{file}.conf")


def python_of(version):
    command = [HERE.parents[1] / "script/python-env", version]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def write_images(cluster):
    """The archives, in the order in which they are wanted, and the table for oci-runtime."""
    folder, mounts = cluster.dir / "images", {}
    folder.mkdir()
    images.write_pause(folder / "0-pause.tar", cluster.program("pause"))
    images.write_small(folder / "1-small.tar")
    for version in ("2.15", "2.21"):
        python = python_of(version)
        images.write_tensorflow(folder / f"2-tensorflow-{version}.tar", images.TENSORFLOW + version, python)
        mounts[images.TENSORFLOW + version] = images.shared_folders(python)
    write_json(cluster.dir / "image-mounts.json", mounts)


def import_image(cluster, path):
    run("ctr", f"--address={cluster.dir}/containerd.sock", "--namespace=k8s.io", "images", "import", path)


def import_images(cluster):
    for path in sorted((cluster.dir / "images").iterdir()):
        import_image(cluster, path)


def prepare(cluster):
    make_certificates(cluster)
    cgroups.make(cluster)
    write_images(cluster)

