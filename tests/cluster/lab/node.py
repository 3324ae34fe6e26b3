"""A node: a machine within the machine, in its own network, process, mount, host name and IPC namespaces.

A supervisor is pid 1 in there, so its end is the end of all. A pair of virtual links joins the first node and the host:
the host reaches API server, pods and services directly, pods reach the host, and there is no way out to anywhere else.

The control plane runs on the first node. The namespaces of another node are below those of the first, its supervisor is
a component there, and its link leads to the first node: all of it ends with the first.
"""

import os
import pathlib
import subprocess
import sys

from lab import Failure, addresses, cgroups, control, images, pki
from lab.components import write_json

HERE = pathlib.Path(__file__).resolve().parents[1]
INIT, SUPERVISOR = HERE / "lab/node_init.py", HERE / "lab/supervisor.py"
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


def network_of(node):
    """The beginning of a command in the node's network."""
    return ["nsenter", f"--target={control.supervisor_pid(node)}", "--net"]


def join(node):
    """The link between the node and its gateway, and the routes over it."""
    number, first = node.cluster.number, node.index == 1
    gateway = addresses.gateway(number, node.index)
    inside = [*network_of(node), "ip"]
    outside = ["ip"] if first else [*network_of(node.cluster.all_nodes[0]), "ip"]
    run(*outside, "link", "add", node.link, "type", "veth", "peer", "name", "eth0", "netns", control.supervisor_pid(node))
    run(*outside, "addr", "add", f"{gateway}/30", "dev", node.link)
    run(*outside, "link", "set", node.link, "up")
    run(*inside, "link", "set", "lo", "up")
    run(*inside, "addr", "add", f"{node.address}/30", "dev", "eth0")
    run(*inside, "link", "set", "eth0", "up")
    for network in (addresses.pods(number), addresses.services(number)) if first else (node.pods,):
        run(*outside, "route", "add", network, "via", node.address)
    # Of services, only so that there is a route at all: the packets never get there, kube-proxy rewrites them first.
    run(*inside, "route", "add", addresses.services(number) if first else addresses.network(number), "via", gateway)
    run(*network_of(node), "sysctl", "-qw", "net.ipv4.ip_forward=1")


def leave(cluster):
    """Removes the link on the host, if it is still there."""
    link = cluster.all_nodes[0].link
    if os.path.exists(f"/sys/class/net/{link}"):
        subprocess.run(["ip", "link", "delete", link], capture_output=True)


def init(node):
    """The command that becomes the node's supervisor, as pid 1 of its namespaces."""
    return [*UNSHARE, sys.executable, "-IB", INIT, node.dir, SUPERVISOR, node.name]


def power_off(cluster, name):
    """Ends all of a node other than the first at once. Its link is cut before, so that no last packet says so."""
    found = [node for node in cluster.all_nodes[1:] if node.name == name]
    if not found:
        raise Failure(f"the cluster {cluster.name} has no {name} that can be powered off; the control plane is on node1")
    run(*network_of(found[0]), "ip", "link", "set", "eth0", "down")
    control.kill(cluster, name)


def make_certificates(cluster):
    folder = cluster.dir / "pki"
    pki.sign(folder, "coredns", "coredns", ["system:masters"])
    pki.write_kubeconfig(folder, "coredns", cluster.server, cluster.dir / "coredns.conf")
    pki.sign(folder, "proxy", "system:kube-proxy")
    for node in cluster.all_nodes:
        kubelet = f"kubelet-{node.name}"
        pki.sign(folder, kubelet, f"system:node:{node.name}", ["system:nodes"], [f"DNS:{node.name}", f"IP:{node.address}"])
        pki.write_kubeconfig(folder, kubelet, cluster.server, node.dir / "kubelet.conf")
        pki.write_kubeconfig(folder, "proxy", cluster.server, node.dir / "proxy.conf")


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
    for node in cluster.all_nodes:
        run("ctr", f"--address={node.dir}/containerd.sock", "--namespace=k8s.io", "images", "import", path)


def import_images(cluster):
    for path in sorted((cluster.dir / "images").iterdir()):
        import_image(cluster, path)


def prepare(cluster):
    for node in cluster.all_nodes[1:]:
        (node.dir / "log").mkdir(parents=True)
    make_certificates(cluster)
    cgroups.make(cluster)
    write_images(cluster)

