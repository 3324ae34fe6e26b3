"""A `Yard` whose jobs live on a cluster, in a namespace of its own that admits only what Pod Security "restricted" does."""

import contextlib
import json
import os
import secrets
import shutil
import subprocess

from cluster import ApiError
from yard import Yard

IMAGE = "trainyard.test/tensorflow:2.15"
JOB_LABEL = "training.kubeflow.org/job-name"


@contextlib.contextmanager
def shared_volume(cluster, folder):
    """A volume that any pod may write to, as `trainyard run` asks for one by default; its files are in the folder."""
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    name = f"volume-{secrets.token_hex(3)}"
    cluster.kubectl("apply", "-f", "-", input=json.dumps(
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
         "spec": {"capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
                  "hostPath": {"path": str(folder)}}}))
    yield folder
    cluster.kubectl("delete", "pv", name, "--wait=false")


class There(Yard):
    def __init__(self, home, cluster, namespace, security="restricted"):
        super().__init__(home)
        self.cluster, self.namespace = cluster, namespace
        labels = {"pod-security.kubernetes.io/enforce": security} if security else {}
        if namespace != "default":
            cluster.kubectl("create", "-f", "-", input=json.dumps(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}}))
        cluster.wait(lambda: cluster.api.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/default"), "a service account")
        self.use(cluster.kubeconfig)

    def use(self, kubeconfig):
        """From now on the program finds this cluster, with this test's namespace in its context."""
        path = self.home / "kubeconfig"
        shutil.copy(kubeconfig, path)
        subprocess.run([self.cluster.state.program("kubectl"), "config", "set-context", "--current",
                        f"--namespace={self.namespace}"], env={**os.environ, "KUBECONFIG": str(path)}, check=True,
                       stdout=subprocess.DEVNULL)
        self.env |= {"KUBECONFIG": str(path), "TRAINYARD_ON": "kubernetes"}

    # -- looking

    def kubectl(self, *words, **options):
        return self.cluster.kubectl("-n", self.namespace, *words, **options)

    def path(self, resource, name="", group="api/v1"):
        return f"/{group}/namespaces/{self.namespace}/{resource}" + (f"/{name}" if name else "")

    def job(self, name):
        try:
            return self.cluster.api.get(self.path("tfjobs", name, "apis/kubeflow.org/v1"))
        except ApiError as error:
            assert error.status == 404
            return {}

    def status(self, job):
        return self.job(job).get("status", {})

    def pods(self, job):
        """By replica, those on their way out left aside."""
        return {pod["metadata"]["name"].removeprefix(f"{job}-"): pod
                for pod in self.cluster.pods(self.namespace, f"{JOB_LABEL}={job}")
                if "deletionTimestamp" not in pod["metadata"]}

    def wait_for_pods(self, job, *replicas, phase="Running", but=()):
        """Until these are in that phase, as other pods than those of the UIDs `but`; their UIDs by name."""
        def all_there():
            pods = self.pods(job)
            found = {name: pods[name]["metadata"]["uid"] for name in replicas
                     if name in pods and pods[name]["status"]["phase"] == phase and pods[name]["metadata"]["uid"] not in but}
            return len(found) == len(replicas) and found
        return self.cluster.wait(all_there, f"{job}: {replicas} {phase}", 60)

    @contextlib.contextmanager
    def forwarded(self, what, port):
        """A port of this machine that leads there, by kubectl."""
        command = [self.cluster.state.program("kubectl"), "-n", self.namespace, "port-forward", what, f":{port}"]
        env = {**self.env, "KUBECONFIG": str(self.cluster.kubeconfig)}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
        try:
            yield int(process.stdout.readline().split("127.0.0.1:")[1].split()[0])
        finally:
            process.kill()
            process.wait()

    def touch(self, job, *replicas, file="/tmp/finish"):
        for replica in replicas:
            self.kubectl("exec", f"{job}-{replica}", "--", "touch", file)

    def objects(self):
        """All that lies in the namespace and was not put there by Kubernetes itself."""
        found = []
        for resource in ("configmaps", "secrets", "pods", "services", "persistentvolumeclaims"):
            found += [f"{resource}/{item['metadata']['name']}" for item in self.cluster.api.get(self.path(resource))["items"]]
        with contextlib.suppress(ApiError):  # where TFJob is not known
            found += [f"tfjobs/{item['metadata']['name']}"
                      for item in self.cluster.api.get(self.path("tfjobs", group="apis/kubeflow.org/v1"))["items"]]
        return sorted(set(found) - {"configmaps/kube-root-ca.crt"})

    def listing(self):
        return [*super().listing(), *self.objects()]

    def close(self):
        super().close()
        if self.namespace != "default":
            self.cluster.kubectl("delete", "namespace", self.namespace, "--wait=false", "--ignore-not-found")
