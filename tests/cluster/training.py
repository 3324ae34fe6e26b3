"""A TFJob that trains one of the examples on a cluster, and what a test does to it.

The scripts come from a ConfigMap, MNIST from a folder of the machine. Checkpoints, logs and output land in another one, so
that how far a training is can be read off its checkpoints without asking anybody.
"""

import copy
import json
import os
import pathlib
import re
import signal
import subprocess
import time

from cluster import ApiError, holds
from yard import ROOT

SCRIPTS = [ROOT / "examples", ROOT / "tests/scripts"]
PATIENCE = 600  # seconds, for a machine that has more to do


def upload_scripts(cluster, namespace="default"):
    files = [f"--from-file={folder}" for folder in SCRIPTS]
    cluster.kubectl("create", "configmap", "scripts", "-n", namespace, *files)


def mnist():
    return subprocess.run([ROOT / "script/mnist-data"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def template(version, command, folder, memory=None):
    """A pod in which `command` runs in /work, which is `folder`."""
    volumes = {"scripts": {"configMap": {"name": "scripts"}}, "data": {"hostPath": {"path": mnist()}},
               "work": {"hostPath": {"path": str(folder)}}}
    container = {"name": "tensorflow", "image": f"trainyard.test/tensorflow:{version}", "workingDir": "/work",
                 "command": [str(word) for word in command], "env": [{"name": "MNIST_DATA", "value": "/data"}],
                 "volumeMounts": [{"name": name, "mountPath": f"/{name}", "readOnly": name != "work"} for name in volumes],
                 "resources": {"limits": {"memory": memory}} if memory else {}}
    # A process with pid 1 does not heed SIGTERM unless it has a handler for it: its grace would be spent waiting.
    return {"spec": {"terminationGracePeriodSeconds": 1, "containers": [container],
                     "volumes": [{"name": name, **source} for name, source in volumes.items()]}}


class Training:
    def __init__(self, cluster, folder, version, *command, restarts="OnFailure", memory=None, pods=None, namespace="default", **replicas):
        """`command` is a script and its arguments, `replicas` the count of each type, `pods` further fields of the pod spec of a type."""
        self.cluster, self.folder, self.name, self.namespace = cluster, pathlib.Path(folder), pathlib.Path(folder).name, namespace
        self.folder.mkdir()
        of_each = {"restartPolicy": restarts, "template": template(version, ["python", *command], folder, memory)}
        specs = {name: copy.deepcopy({"replicas": count, **of_each}) for name, count in replicas.items()}
        for name, more in (pods or {}).items():
            specs[name]["template"]["spec"] |= more
        self.manifest = {
            "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": self.name},
            "spec": {"runPolicy": {"cleanPodPolicy": "Running"},
                     "tfReplicaSpecs": specs}}
        self.kubectl("apply", "-f", "-", input=json.dumps(self.manifest))

    # -- looking

    def kubectl(self, *words, **options):
        return self.cluster.kubectl("-n", self.namespace, *words, **options)

    def path(self, resource, name="", group="api/v1"):
        return f"/{group}/namespaces/{self.namespace}/{resource}" + (f"/{name}" if name else "")

    def job(self):
        return self.cluster.api.get(self.path("tfjobs", self.name, "apis/kubeflow.org/v1"))

    def status(self):
        return self.job().get("status", {})

    def of_job(self, resource):
        return self.cluster.api.get(f"{self.path(resource)}?labelSelector=training.kubeflow.org/job-name={self.name}")["items"]

    def pods(self):
        """Those that are there and not on their way out, by replica."""
        return {pod["metadata"]["name"].removeprefix(f"{self.name}-"): pod for pod in self.of_job("pods")
                if "deletionTimestamp" not in pod["metadata"]}

    def uids(self):
        return {replica: pod["metadata"]["uid"] for replica, pod in self.pods().items()}

    def log(self, replica):
        return self.cluster.api.get(self.path("pods", f"{self.name}-{replica}/log"))

    def checkpoint(self):
        """The number of the latest checkpoint, 0 if there is none."""
        for path in self.folder.glob("*/checkpoint"):
            if match := re.search(r'^model_checkpoint_path: ".*ckpt-(\d+)"', path.read_text(), re.MULTILINE):
                return int(match[1])
        return 0

    # -- waiting

    def wait(self, condition, what):
        """Until the condition holds, which it can only while the job has not ended."""
        def holds_in_time():
            if condition():
                return True
            assert "completionTime" not in self.status(), f"it ended before {what}:\n{self.report()}"
        self.poll(holds_in_time, what)

    def poll(self, condition, what):
        """Not so often that the training would feel it."""
        return self.cluster.wait(lambda: condition() or time.sleep(0.2), f"{self.name}: {what}", PATIENCE)

    def wait_for_checkpoint(self):
        """Until there is another one."""
        before = self.checkpoint()
        self.wait(lambda: self.checkpoint() > before, "a checkpoint")

    def wait_for_restart(self, before, *replicas):
        """Until these run again as other pods than `before`; all others must be the same pods still."""
        def running_again():
            pods = self.pods()
            return all(replica in pods and pods[replica]["metadata"]["uid"] != before[replica]
                       and pods[replica]["status"]["phase"] == "Running" for replica in replicas)
        self.wait(running_again, f"{', '.join(replicas)} started again")
        others = before.keys() - {*replicas}
        assert {replica: self.uids().get(replica) for replica in others} == {replica: before[replica] for replica in others}

    def finish(self, condition="Succeeded"):
        """The status at the end, which must be this, with nothing left that runs or is held."""
        status = self.poll(lambda: "completionTime" in (found := self.status()) and found, "its end")
        assert holds({"status": status}, condition), self.report()
        self.poll(self.is_cleaned_up, "what ran on is gone")
        return status

    def is_cleaned_up(self):
        """As cleanPodPolicy Running has it: what has ended by itself stays, with its service, and nobody holds it."""
        pods, services = self.of_job("pods"), self.of_job("services")
        return all(pod["status"]["phase"] in ("Succeeded", "Failed") and not pod["metadata"].get("finalizers") for pod in pods) \
            and {one["metadata"]["name"] for one in services} == {one["metadata"]["name"] for one in pods}

    def report(self):
        logs = [f"-- {pod['metadata']['name']}:\n{self.kubectl('logs', pod['metadata']['name'], status=None)[-2000:]}"
                for pod in self.of_job("pods")]
        return "\n".join([json.dumps(self.status(), indent=1), *logs])

    # -- doing

    def delete_pod(self, replica):
        self.kubectl("delete", "pod", f"{self.name}-{replica}", "--wait=false")

    def kill(self, replica):
        """Kills the replica's processes from outside."""
        [container] = self.pods()[replica]["status"]["containerStatuses"]
        pids = processes_of(container["containerID"].removeprefix("containerd://"))
        assert pids, container
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    def delete(self):
        """As a person would. Nothing may be left."""
        self.kubectl("delete", "tfjob", self.name)
        self.cluster.wait(lambda: not self.of_job("pods") and not self.of_job("services"), f"nothing left of {self.name}", 60)
        try:
            assert not self.job()
        except ApiError as error:
            assert error.status == 404


def processes_of(container):
    """The pids, as the machine knows them, of what runs in a container."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and container in (entry / "cgroup").read_text():
                found.append(int(entry.name))
        except OSError:  # it ended meanwhile
            continue
    return found
