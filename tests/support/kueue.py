"""Kueue, outside the cluster that it works for, with its own definitions, rights and webhooks (`config/default` of its module).

    with kueue(cluster) as queues:
        queues.add_cluster_queue("team", cpu=1)
        queues.add_local_queue("default", "gpus", "team")
        …

Kueue makes its certificates itself. Where a pod would have them mounted, this module writes them into a folder.
"""

import base64
import contextlib
import json
import urllib.request

import yaml

from cluster import ApiError
from lab import binaries, control
from play_kubelet import now

NAME, SYSTEM = "kueue", "kueue-system"
GROUP = "apis/kueue.x-k8s.io/v1beta2"
WEBHOOKS_PORT, HEALTH_PORT = 9443, 8081
LEFT_OUT = ("Deployment", "Service", "APIService")  # Kueue runs outside the cluster, and without its visibility server


def is_built():
    return binaries.place(binaries.KUEUE).exists()


def send_webhooks_to(port, value):
    """Sets the port of every service that the API server calls a webhook of. They all name one service."""
    if isinstance(value, dict):
        if "service" in value.get("clientConfig", {}):
            value["clientConfig"]["service"]["port"] = port
        for inner in value.values():
            send_webhooks_to(port, inner)
    elif isinstance(value, list):
        for inner in value:
            send_webhooks_to(port, inner)


def install(cluster, folder):
    objects = [one for one in yaml.safe_load_all(cluster.kubectl("kustomize", folder / "config/default")) if one["kind"] not in LEFT_OUT]
    send_webhooks_to(WEBHOOKS_PORT, objects)
    # The API server takes a service of this type to its address by itself: nothing else does where there is no kube-proxy.
    objects.append({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "kueue-webhook-service", "namespace": SYSTEM},
                    "spec": {"type": "ExternalName", "externalName": cluster.state.address}})
    # Webhooks come last: nobody answers them yet.
    objects.sort(key=lambda one: one["kind"].endswith("WebhookConfiguration"))
    cluster.kubectl("apply", "--server-side", "-f", "-", input="\n---\n".join(json.dumps(one) for one in objects))


def configuration(cluster, certificates):
    return {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration",
            "health": {"healthProbeBindAddress": f"{cluster.state.address}:{HEALTH_PORT}"}, "metrics": {"bindAddress": "0"},
            "webhook": {"host": cluster.state.address, "port": WEBHOOKS_PORT, "certDir": str(certificates)},
            "leaderElection": {"leaderElect": False}, "featureGates": {"VisibilityOnDemand": False},
            "integrations": {"frameworks": ["kubeflow.org/tfjob"]}}


class Kueue:
    def __init__(self, cluster):
        self.cluster, self.api, self.log = cluster, cluster.api, cluster.state.log(NAME)

    def lives(self):
        status = control.components(self.cluster.state)[NAME]["status"]
        assert status is None, f"Kueue ended with {status}:\n{self.log.read_text()[-3000:]}"
        return True

    def certificates(self):
        """The files of Kueue's certificate, once it has made one."""
        data = self.api.get(f"/api/v1/namespaces/{SYSTEM}/secrets/kueue-webhook-server-cert").get("data") or {}
        return self.lives() and {name: base64.b64decode(text) for name, text in data.items()}

    def is_ready(self):
        """Kueue works, and the API server reaches its webhooks."""
        with urllib.request.urlopen(f"http://{self.cluster.state.address}:{HEALTH_PORT}/readyz", timeout=5) as reply:
            if not self.lives() or reply.read() != b"ok":
                return False
        self.create("ResourceFlavor", "probe", query="?dryRun=All")
        return True

    # -- its objects

    def path(self, resource, name="", namespace=""):
        return f"/{GROUP}/" + (f"namespaces/{namespace}/" if namespace else "") + resource + (f"/{name}" if name else "")

    def create(self, kind, name, namespace="", query="", **more):
        resource = kind.lower() + ("es" if kind.endswith("s") else "s")
        self.api.post(self.path(resource, namespace=namespace) + query, {
            "apiVersion": GROUP.removeprefix("apis/"), "kind": kind, "metadata": {"name": name}, **more})

    def add_cluster_queue(self, name, cpu, flavor="default", **spec):
        """Room for so many CPUs; a job of a higher priority takes the place of one of a lower."""
        quota = {"name": flavor, "resources": [{"name": "cpu", "nominalQuota": cpu}]}
        self.create("ClusterQueue", name, spec={
            "namespaceSelector": {}, "preemption": {"withinClusterQueue": "LowerPriority"},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [quota]}], **spec})

    def add_local_queue(self, namespace, name, cluster_queue):
        self.create("LocalQueue", name, namespace, spec={"clusterQueue": cluster_queue})

    def stop(self, resource, name, policy, namespace=""):
        """Hold: admits nothing more. HoldAndDrain: also ends what runs. None: goes on."""
        self.api.patch(self.path(resource, name, namespace), {"spec": {"stopPolicy": policy}})

    @staticmethod
    def condition(kind, status):
        return {"type": kind, "status": status, "reason": "Test", "message": "", "lastTransitionTime": now()}

    def set_status(self, resource, name, namespace="", **status):
        self.api.patch(self.path(resource, name, namespace) + "/status", {"status": status})

    def workload(self, namespace, job):
        """Kueue's record of a job; nothing: there is none (yet)."""
        for one in self.api.get(self.path("workloads", namespace=namespace))["items"]:
            if any(owner["name"] == job for owner in one["metadata"].get("ownerReferences", [])):
                return one

    def set_active(self, namespace, job, active):
        name = self.workload(namespace, job)["metadata"]["name"]
        self.api.patch(self.path("workloads", name, namespace), {"spec": {"active": active}})


@contextlib.contextmanager
def kueue(cluster):
    """Works for the cluster until the end of the block; its objects stay."""
    folder, certificates = binaries.ensure(binaries.KUEUE), cluster.dir / "kueue-certificates"
    certificates.mkdir()
    install(cluster, folder)
    (cluster.dir / "kueue.yaml").write_text(json.dumps(configuration(cluster, certificates)))
    kubeconfig = cluster.as_user(f"system:serviceaccount:{SYSTEM}:kueue-controller-manager")
    control.start(cluster.state, NAME, [folder / "kueue", f"--kubeconfig={kubeconfig}", f"--config={cluster.dir}/kueue.yaml"])
    queues = Kueue(cluster)
    try:
        for name, text in cluster.wait(queues.certificates, "Kueue's certificate").items():
            (certificates / f"{name}.part").write_bytes(text)
            (certificates / f"{name}.part").rename(certificates / name)
        cluster.wait(queues.is_ready, "Kueue is ready", 60)
        yield queues
    except BaseException:
        print(f"-- the end of {queues.log}:\n{queues.log.read_text()[-6000:]}")  # pytest shows it with the failure
        raise
    finally:
        control.kill(cluster.state, NAME)
