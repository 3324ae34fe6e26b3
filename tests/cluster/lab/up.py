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
from lab.api import Api, ApiError

ROOT = pathlib.Path(__file__).resolve().parents[3]
SUPERVISOR = pathlib.Path(__file__).with_name("supervisor.py")
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


def wait(cluster, condition, what, suspect):
    """Waits for a condition. If it does not come, or a component ends meanwhile, says so with the end of its log."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            if condition():
                return
        except (OSError, ApiError):
            pass  # not there yet
        for name, component in control.components(cluster).items():
            if component["status"] is not None:
                raise Failure(f"{name} ended with status {component['status']}:\n{tail(cluster.log(name))}")
        if time.monotonic() > deadline:
            raise Failure(f"not within {SECONDS} s: {what}; {suspect} says:\n{tail(cluster.log(suspect))}")
        time.sleep(0.05)


def is_ready(node):
    return any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", []))


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


def start_supervisor(cluster, held, programs, wrapper=()):
    """It inherits `held`, the socket that leases the addresses, and is the only one to keep it."""
    with open(cluster.log("supervisor"), "w") as log:
        process = subprocess.Popen([*wrapper, sys.executable, "-IB", programs[0], cluster.dir, *programs[1:]],
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                                   pass_fds=[held.fileno()], cwd="/", env={**os.environ, state.MARKER: str(cluster.dir)})
    deadline = time.monotonic() + 10
    while not control.alive(cluster):
        if process.poll() is not None or time.monotonic() > deadline:
            raise Failure(f"the supervisor does not start:\n{tail(cluster.log('supervisor'))}")
        time.sleep(0.01)


def wait_ready(cluster):
    api = Api(cluster.server, cluster.dir / "pki")
    wait(cluster, lambda: api.get("/readyz") == "ok", "the API server is ready", "apiserver")


def start_control_plane(cluster, progress):
    control.start(cluster, "etcd", components.etcd(cluster))
    control.start(cluster, "apiserver", components.apiserver(cluster))
    wait_ready(cluster)
    progress.say("API server ready")
    control.start(cluster, "controller-manager", components.controller_manager(cluster))
    api = Api(cluster.server, cluster.dir / "pki")
    wait(cluster, lambda: api.get("/api/v1/namespaces/default/serviceaccounts/default"), "the default service account",
         "controller-manager")
    progress.say("service accounts are made")
    return api


def start_node(cluster, api, imported, progress):
    control.start(cluster, "scheduler", components.scheduler(cluster))
    for name in ("kubelet", "proxy", "coredns"):
        control.start(cluster, name, getattr(node_components, name)(cluster))
    for path, value in node_components.dns_objects(cluster):
        api.post(path, value)
    wait(cluster, lambda: is_ready(api.get(f"/api/v1/nodes/{node_components.NAME}")), "the node is ready", "kubelet")
    progress.say("node ready")
    wait(cluster, lambda: answers(f"http://{cluster.address}:8181/ready"), "names are resolved", "coredns")
    imported.result()
    progress.say("images imported, names are resolved")


def make(cluster, held, progress):
    (cluster.dir / "log").mkdir()
    make_certificates(cluster)
    progress.say("certificates made")
    if not cluster.nodes:
        start_supervisor(cluster, held, [SUPERVISOR])
        start_control_plane(cluster, progress)
        return
    node.prepare(cluster)
    progress.say("images made")
    start_supervisor(cluster, held, [node.INIT, SUPERVISOR], node.UNSHARE)
    node.join(cluster, control.supervisor_pid(cluster))
    control.start(cluster, "containerd", node_components.containerd(cluster))
    wait(cluster, (cluster.dir / "containerd.sock").exists, "containerd listens", "containerd")
    with concurrent.futures.ThreadPoolExecutor() as beside:
        imported = beside.submit(node.import_images, cluster)
        api = start_control_plane(cluster, progress)
        start_node(cluster, api, imported, progress)


def up(name, nodes, fsync, audit):
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
                cluster = state.Cluster(name, str(folder), nodes, number, str(programs), fsync, audit)
                cluster.save()
                make(cluster, held, progress)
        except BaseException:  # also an interrupt
            down.empty(folder)
            state.remove(folder)
            raise
    return cluster
