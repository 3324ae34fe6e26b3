"""Clusters with a node: pods run, and what the node does stays within its namespaces."""

import os
import pathlib
import signal
import socket
import subprocess

import pytest

from cluster import Cluster
from lab import cgroups, control, state
from training import processes_of
from yard import ROOT, wait_for

PODS = "/api/v1/namespaces/default/pods"
SMALL = "trainyard.test/small:1"
SYSCTLS = ("vm.overcommit_memory", "kernel.panic", "kernel.panic_on_oops", "kernel.keys.root_maxkeys",
           "kernel.keys.root_maxbytes", "net.ipv4.ip_forward", "net.netfilter.nf_conntrack_max")


def create(cluster, name, command, image=SMALL, labels=None, node=None, **more):
    container = {"name": "tensorflow", "image": image, "command": command, **more}
    cluster.api.post(PODS, {"metadata": {"name": name, "labels": labels or {}},
                            "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "nodeName": node,
                                     "containers": [container]}})


def status(cluster, name):
    return cluster.api.get(f"{PODS}/{name}")["status"]


def running(cluster, name):
    cluster.wait(lambda: status(cluster, name)["phase"] == "Running", f"{name} runs")


def ended(cluster, name):
    """How the container of a pod ended."""
    cluster.wait(lambda: status(cluster, name)["phase"] in ("Succeeded", "Failed"), f"{name} ends", 180)
    return status(cluster, name)["containerStatuses"][0]["state"]["terminated"]


@pytest.fixture(scope="module")
def server(node):
    """A pod that says hello on port 2222, with a headless service `web` and one with an address, `front`."""
    create(node, "server", ["sh", "-c", "while true; do echo hello | nc -l -p 2222; done"], labels={"app": "web"})
    for name, more in (("web", {"clusterIP": "None"}), ("front", {})):
        node.api.post("/api/v1/namespaces/default/services", {
            "metadata": {"name": name}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 2222}], **more}})
    running(node, "server")
    return node


def test_a_pod_runs_and_its_log_can_be_read(node):
    create(node, "talks", ["sh", "-c", "echo said"])
    assert ended(node, "talks")["exitCode"] == 0
    assert node.kubectl("logs", "talks") == "said\n"


def test_exec_runs_a_command_in_a_pod(server):
    said = server.kubectl("exec", "-i", "server", "--", "sh", "-c", "cat; hostname", input="piped\n")
    assert said == "piped\nserver\n"


def test_a_headless_service_resolves_to_its_pod(server):
    address = status(server, "server")["podIP"]
    script = "import socket, sys; print(*sorted({a[4][0] for a in socket.getaddrinfo(sys.argv[1], 2222)}))"

    def resolved():
        server.kubectl("delete", "pod", "asks", "--ignore-not-found")
        create(server, "asks", ["python", "-c", script, "web.default.svc"], image="trainyard.test/tensorflow:2.21")
        return ended(server, "asks")["exitCode"] == 0 and server.kubectl("logs", "asks") == f"{address}\n"
    server.wait(resolved, "the name resolves")


def test_a_service_is_reached_from_the_host(server):
    address = server.json("get", "service", "front")["spec"]["clusterIP"]

    def hello():
        with socket.create_connection((address, 2222), timeout=5) as connection:
            return connection.recv(100) == b"hello\n"
    server.wait(hello, "the service answers")


def test_a_pod_that_takes_more_than_its_memory_is_oom_killed(node):
    create(node, "greedy", ["python", "-c", "bytearray(10**9)"], image="trainyard.test/tensorflow:2.21",
           resources={"limits": {"memory": "64Mi"}})
    how = ended(node, "greedy")
    assert (how["reason"], how["exitCode"]) == ("OOMKilled", 137)


@pytest.mark.parametrize("version", ["2.15", "2.21"])
def test_a_pod_has_tensorflow(node, version):
    manifest = (ROOT / "tests/cluster/tensorflow-pod.yaml").read_text()
    name = f"tensorflow-{version.replace('.', '-')}"
    for old, new in (("{name: tensorflow}", f"{{name: {name}}}"), ("tensorflow:2.15", f"tensorflow:{version}")):
        manifest = manifest.replace(old, new)
    node.kubectl("apply", "-f", "-", input=manifest)
    how = ended(node, name)
    log = node.kubectl("logs", name)
    assert how["exitCode"] == 0, log
    assert f"TensorFlow {version}." in log


def test_the_machine_cannot_be_changed_from_a_tensorflow_pod(node):
    create(node, "writes", ["sh", "-c", "touch /usr/written"], image="trainyard.test/tensorflow:2.21")
    assert ended(node, "writes")["exitCode"] != 0
    assert not pathlib.Path("/usr/written").exists()


def machine():
    """What a cluster could change of the machine."""
    sysctls = {name: pathlib.Path("/proc/sys", *name.split(".")) for name in SYSCTLS}
    rules = subprocess.run(["iptables-save"], capture_output=True, text=True, check=True).stdout
    return {"sysctls": {name: path.read_text() for name, path in sysctls.items() if path.exists()},
            "rules": [line for line in rules.splitlines() if not line.startswith("#")],
            "folders": {path: sorted(os.listdir(path)) for path in ("/var/lib", "/var/log", "/run", "/etc")}}


def left_of(cluster):
    """What is still there of a cluster."""
    mounts = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
    groups = [path for path in cgroups.folders(cluster.state) if path.exists()]
    return {"processes": state.processes(cluster.dir), "mounts": [line for line in mounts if str(cluster.dir) in line],
            "cgroups": groups, "links": [name for name in os.listdir("/sys/class/net") if cluster.state.id in name],
            "directory": cluster.dir.exists()}


NOTHING = {"processes": [], "mounts": [], "cgroups": [], "links": [], "directory": False}


def test_a_second_one_beside_it_runs_pods_and_leaves_the_machine_as_it_was(node):
    before = machine()
    with Cluster.up(nodes=1) as second:
        assert second.server != node.server
        create(second, "stays", ["sleep", "1000"])
        running(second, "stays")
        seen = left_of(second)
        assert seen["processes"] and seen["cgroups"] and seen["links"], "the test looks in the wrong places"
        assert machine()["sysctls"] == before["sysctls"]
    assert left_of(second) == NOTHING
    assert machine() == before


@pytest.mark.node
def test_the_death_of_its_first_process_is_the_end_of_all_and_down_clears_the_rest():
    before = machine()
    with Cluster.up(nodes=1) as cluster:
        create(cluster, "stays", ["sleep", "1000"])
        running(cluster, "stays")
        os.kill(control.supervisor_pid(cluster.state), signal.SIGKILL)
        wait_for(lambda: not left_of(cluster)["processes"], "the end of all", 10)
    assert left_of(cluster) == NOTHING
    assert machine() == before


@pytest.mark.node
def test_pods_of_two_nodes_reach_each_other_until_one_is_powered_off():
    before = machine()
    with Cluster.up(nodes=2) as cluster:
        pods = ("node1", "node2")
        for name in pods:
            create(cluster, name, ["sh", "-c", "while true; do hostname | nc -l -p 2222; done"], labels={"app": name}, node=name)
            cluster.api.post("/api/v1/namespaces/default/services", {
                "metadata": {"name": name}, "spec": {"selector": {"app": name}, "ports": [{"port": 2222}]}})
        for name in pods:
            running(cluster, name)

        def said(by, to):
            return cluster.kubectl("exec", by, "--", "sh", "-c", f"nc -w 5 {to}.default.svc.cluster.local 2222 </dev/null", status=None)
        for by, to in ((by, to) for by in pods for to in pods):
            cluster.wait(lambda: said(by, to) == f"{to}\n", f"{by} reaches {to} by its service")
        cgroup = cluster.state.all_nodes[1].cgroup
        assert processes_of(cgroup)
        cluster.power_off("node2")
        assert status(cluster, "node2")["phase"] == "Running", "Kubernetes knows too soon"
        assert said("node1", "node2") == ""
        assert said("node1", "node1") == "node1\n"
        wait_for(lambda: not processes_of(cgroup), "its pods have ended", 10)
    assert left_of(cluster) == NOTHING
    assert machine() == before
