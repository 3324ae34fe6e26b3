"""Brings a cluster up: the order in which its components start, and what each waits for."""

import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import time
import urllib.request

from lab import Failure, addresses, binaries, components, control, down, node, node_components, pki, state
from lab.api import Api, ApiError, holds

ROOT = pathlib.Path(__file__).resolve().parents[3]
CONTROL_PLANE = ("etcd", "apiserver", "controller-manager")
SECONDS = 120  # for any one step; a loaded machine needs a tenth of it


class Progress:
    def __init__(self):
        self.began = time.monotonic()

    def say(self, text):
        print(f"cluster: {time.monotonic() - self.began:5.1f} s  {text}", file=sys.stderr, flush=True)


def tail(path, lines=25):
    try:
        return "".join(path.read_text(errors="replace").splitlines(keepends=True)[-lines:])
    except OSError:
        return ""


def ended(cluster, names):
    """Those of these components that do not run any more, with their exit status."""
    seen = control.components(cluster)
    return {name: seen[name]["status"] for name in names if seen[name]["status"] is not None}


def wait(cluster, condition, what, *needs):
    """Waits for a condition. If it does not come, or a component that it needs ends meanwhile, says so with the end of
    that one's log; of the last, if none has ended."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            if condition():
                return
        except (OSError, ApiError):
            pass  # not there yet
        for name, status in ended(cluster, needs).items():
            raise Failure(f"{name} ended with status {status}:\n{tail(cluster.log(name))}")
        if time.monotonic() > deadline:
            raise Failure(f"not within {SECONDS} s: {what}; {needs[-1]} says:\n{tail(cluster.log(needs[-1]))}")
        time.sleep(0.05)


def answers(url):
    with urllib.request.urlopen(url, timeout=1) as reply:
        return reply.status == 200


def make_certificates(cluster):
    folder, here = cluster.dir / "pki", f"IP:{cluster.address}"
    pki.make_authority(folder)
    pki.sign(folder, "etcd", "etcd", names=[here])
    pki.sign(folder, "apiserver", "kube-apiserver", names=[
        here, f"IP:{addresses.kubernetes_service(cluster.number)}", "DNS:kubernetes", "DNS:kubernetes.default",
        "DNS:kubernetes.default.svc", "DNS:kubernetes.default.svc.cluster.local"])
    for file, user, groups in (("admin", "admin", ["system:masters"]),
                               ("controller-manager", "system:kube-controller-manager", ["system:masters"]),
                               ("scheduler", "system:kube-scheduler", [])):
        pki.sign(folder, file, user, groups)
        pki.write_kubeconfig(folder, file, cluster.server, cluster.dir / f"{file}.conf")


def start_supervisor(cluster, held):
    """It inherits `held`, the socket that leases the addresses, and is the only one to keep it."""
    alone = [sys.executable, "-IB", node.SUPERVISOR, cluster.dir]
    with open(cluster.log("supervisor"), "w") as log:
        process = subprocess.Popen(node.init(cluster.all_nodes[0]) if cluster.nodes else alone,
                                   env={**os.environ, state.MARKER: str(cluster.dir)}, cwd="/", start_new_session=True,
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[held.fileno()])
    deadline = time.monotonic() + 30
    while not control.alive(cluster):
        if process.poll() is not None or time.monotonic() > deadline:
            raise Failure(f"the supervisor does not start:\n{tail(cluster.log('supervisor'))}")
        time.sleep(0.01)


def wait_ready(cluster):
    api = Api(cluster.server, cluster.dir / "pki")
    wait(cluster, lambda: api.get("/readyz") == "ok", "the API server is ready", "etcd", "apiserver")


def restart(cluster, name):
    """Kills a component if it runs, and starts it again. Returns when the API server is ready, unless it cannot be."""
    control.restart(*control.find(cluster, name))
    if not ended(cluster, ["etcd", "apiserver"]):
        wait_ready(cluster)


def start_control_plane(cluster, progress):
    control.start(cluster, "etcd", components.etcd(cluster))
    control.start(cluster, "apiserver", components.apiserver(cluster))
    wait_ready(cluster)
    progress.say("API server ready")
    control.start(cluster, "controller-manager", components.controller_manager(cluster))
    api = Api(cluster.server, cluster.dir / "pki")
    wait(cluster, lambda: api.get("/api/v1/namespaces/default/serviceaccounts/default"), "the default service account",
         *CONTROL_PLANE)
    progress.say("service accounts are made")
    return api


def start_machines(cluster):
    """The machines of the nodes, with their links. That of the first runs already: it has the cluster's supervisor."""
    for each in cluster.all_nodes:
        if each.index > 1:
            control.start(cluster, each.name, node.init(each))
            wait(cluster, lambda: control.alive(each), f"{each.name} starts", each.name)
        node.join(each)
    for each in cluster.all_nodes:
        control.start(each, "containerd", node_components.containerd(each))
        wait(each, (each.dir / "containerd.sock").exists, "containerd listens", "containerd")


def start_nodes(cluster, api, imported, progress):
    control.start(cluster, "scheduler", components.scheduler(cluster))
    control.start(cluster, "coredns", node_components.coredns(cluster))
    for each in cluster.all_nodes:
        control.start(each, "kubelet", node_components.kubelet(each))
        control.start(each, "proxy", node_components.proxy(each))
    for path, value in node_components.dns_objects(cluster):
        api.post(path, value)
    for each in cluster.all_nodes:
        wait(each, lambda: holds(api.get(f"/api/v1/nodes/{each.name}"), "Ready"), f"{each.name} is ready",
             *(CONTROL_PLANE if each.index == 1 else ()), "containerd", "kubelet")
        progress.say(f"{each.name} ready")
    wait(cluster, lambda: answers(f"http://{cluster.address}:8181/ready"), "names are resolved", *CONTROL_PLANE,
         "coredns")
    imported.result()
    progress.say("images imported, names are resolved")


def make(cluster, held, progress):
    (cluster.dir / "log").mkdir()
    make_certificates(cluster)
    progress.say("certificates made")
    if not cluster.nodes:
        start_supervisor(cluster, held)
        start_control_plane(cluster, progress)
        return
    node.prepare(cluster)
    progress.say("images made")
    start_supervisor(cluster, held)
    start_machines(cluster)
    with concurrent.futures.ThreadPoolExecutor() as beside:
        imported = beside.submit(node.import_images, cluster)
        api = start_control_plane(cluster, progress)
        start_nodes(cluster, api, imported, progress)


def up(name, nodes, fsync, audit, grace=None):
    """The cluster, running. If that fails, nothing of it is left."""
    if shutil.which("openssl") is None:
        raise Failure("there is no openssl: script/setup cluster")
    if nodes:
        node.check_rights()
        subprocess.run([ROOT / "script/setup", "cluster"], check=True)
    programs = binaries.ensure(binaries.KUBERNETES)
    with state.locked(name) as folder:
        if state.processes(folder):
            raise Failure(f"the cluster {name} is up already: script/cluster down --name {name} ends it")
        down.empty(folder)  # what is left of one that was killed
        progress = Progress()
        try:
            number, held = addresses.lease(with_node=nodes > 0)
            with held:
                cluster = state.Cluster(name, str(folder), nodes, number, str(programs), fsync, audit, grace)
                cluster.save()
                make(cluster, held, progress)
        except BaseException:  # also an interrupt
            down.empty(folder)
            state.remove(folder)
            raise
    return cluster
