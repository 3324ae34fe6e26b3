"""TFJobs to try on an API server, and what it and our decoder say about them."""

import json
import subprocess

from cluster import ApiError
from yard import BINARY

# The securityContext of a container that Pod Security "restricted" admits.
RESTRICTED = {"runAsNonRoot": True, "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
              "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}}
TENSORFLOW = {"name": "tensorflow", "image": "a"}


def pod(*containers, **more):
    return {"spec": {"containers": list(containers), **more}}


POD = pod(TENSORFLOW)


def job(spec, name="a", version="v1", **metadata):
    return {"apiVersion": f"kubeflow.org/{version}", "kind": "TFJob", "metadata": {"name": name, **metadata}, "spec": spec}


def replicas(**types):
    return {"tfReplicaSpecs": {name: {"template": POD, **more} for name, more in types.items()}}


def path_of(job, query=""):
    version = job["apiVersion"].split("/")[1]
    return f"/apis/kubeflow.org/{version}/namespaces/default/tfjobs{query}"


def server_says(cluster, job):
    """Nothing if the API server would take the job, as kubectl offers it (strictly); else its message."""
    try:
        cluster.api.post(path_of(job, "?dryRun=All&fieldValidation=Strict"), job)
    except ApiError as error:
        assert error.status in (400, 422), error
        message = error.body["message"]
        return message.removeprefix(f'TFJob.kubeflow.org "{job["metadata"].get("name")}" is invalid: ')
    return ""


def decoder_says(jobs):
    """For each job what our decoder makes of it: `errors`, or the `job` as v1."""
    lines = "".join(json.dumps(job) + "\n" for job in jobs)
    done = subprocess.run([BINARY.parent / "tests/decode"], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]
