"""Nodes that exist on paper only: kwok plays their kubelets, so thousands of pods cost no more than their objects."""

from lab import binaries, components, control
from lab.api import Api
from lab.binaries import HERE

FAKE = "trainyard.test/played"


def kwok(cluster, programs):
    return [programs / "kwok", f"--kubeconfig={cluster.dir}/admin.conf", f"--config={HERE}/kwok/stages.yaml",
            "--manage-all-nodes=false", f"--manage-nodes-with-annotation-selector={FAKE}=true",
            f"--node-ip={cluster.address}", f"--server-address={cluster.address}:10247",
            "--node-lease-duration-seconds=40", "--cidr=100.64.0.1/10"]  # addresses of pods that nobody can reach


def start(cluster, nodes):
    """Adds so many played nodes. Beside a real one they are tainted: a pod must tolerate what it is to be played."""
    programs = binaries.ensure(binaries.KWOK)
    running = control.components(cluster)
    if "scheduler" not in running:
        control.start(cluster, "scheduler", components.scheduler(cluster))
    if "kwok" not in running:
        control.start(cluster, "kwok", kwok(cluster, programs))
    api = Api(cluster.server, cluster.dir / "pki")
    there = len(api.get("/api/v1/nodes")["items"])
    taints = [{"key": FAKE, "value": "true", "effect": "NoSchedule"}] if cluster.nodes else []
    for number in range(there, there + nodes):
        name = f"played-{number}"
        api.post("/api/v1/nodes", {"metadata": {"name": name, "annotations": {FAKE: "true"},
                                                "labels": {FAKE: "true", "kubernetes.io/hostname": name}},
                                   "spec": {"taints": taints}})
