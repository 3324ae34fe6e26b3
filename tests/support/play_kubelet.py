"""Plays the kubelet where there is none: writes into pods' status what a kubelet would.

    kubelet = PlayKubelet(cluster.api)
    kubelet.running("mnist-worker-0")
    kubelet.ended("mnist-worker-0", exit_code=137, reason="OOMKilled")

A pod that is on no node is deleted at once when somebody deletes it; nothing has to be played for that. One that has a
place (`place`) is deleted when its kubelet says so (`gone`).
"""

import datetime
import urllib.parse


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class PlayKubelet:
    def __init__(self, api, namespace="default", container="tensorflow"):
        self.api, self.namespace, self.name = api, namespace, container

    def write(self, pod, status):
        """`pod` is a name, or the object, and then no other pod of its name is meant."""
        meta = {"name": pod} if isinstance(pod, str) else pod["metadata"]
        path = f"/api/v1/namespaces/{self.namespace}/pods/{urllib.parse.quote(meta['name'])}/status"
        patch = {"status": status, **({"metadata": {"uid": meta["uid"]}} if "uid" in meta else {})}
        return self.api.patch(path, patch, kind="strategic")

    def container(self, state, restarts, ready, last_state=None):
        return [{"name": self.name, "image": "played", "imageID": "", "restartCount": restarts, "ready": ready,
                 "started": ready, "state": state, "lastState": last_state or {}}]

    def conditions(self, ready, reason=""):
        return [{"type": kind, "status": "True" if ready else "False", "reason": reason, "lastTransitionTime": now()}
                for kind in ("ContainersReady", "Ready")]

    def running(self, pod, restarts=0, ip="10.0.0.1"):
        """The container runs and is ready."""
        running = self.container({"running": {"startedAt": now()}}, restarts, ready=True)
        return self.write(pod, {"phase": "Running", "startTime": now(), "podIP": ip, "podIPs": [{"ip": ip}],
                                "conditions": self.conditions(True), "containerStatuses": running})

    def restarting(self, pod, restarts, exit_code=1, reason="Error"):
        """The container ended, and the kubelet will start it again (restartPolicy OnFailure or Always)."""
        ended = {"terminated": {"exitCode": exit_code, "reason": reason, "startedAt": now(), "finishedAt": now()}}
        waiting = self.container({"waiting": {"reason": "CrashLoopBackOff"}}, restarts, ready=False, last_state=ended)
        return self.write(pod, {"phase": "Running", "conditions": self.conditions(False, "ContainersNotReady"),
                                "containerStatuses": waiting})

    def ended(self, pod, exit_code=0, reason=None, restarts=0, message=""):
        """The container ended for good: the pod has succeeded, or failed. `message` is the end of its log."""
        reason = reason or ("Completed" if exit_code == 0 else "Error")
        terminated = {"exitCode": exit_code, "reason": reason, "startedAt": now(), "finishedAt": now(), "message": message}
        return self.write(pod, {
            "phase": "Failed" if exit_code else "Succeeded",
            "conditions": self.conditions(False, "PodFailed" if exit_code else "PodCompleted"),
            "containerStatuses": self.container({"terminated": terminated}, restarts, ready=False)})

    def place(self, pod, node="played"):
        """Binds the pod to a node, which need not exist."""
        path = f"/api/v1/namespaces/{self.namespace}/pods/{urllib.parse.quote(pod)}/binding"
        return self.api.post(path, {"metadata": {"name": pod}, "target": {"kind": "Node", "name": node}})

    def gone(self, pod, uid):
        """Nothing of a deleted pod runs any more, so that the API server may forget it."""
        path = f"/api/v1/namespaces/{self.namespace}/pods/{urllib.parse.quote(pod)}"
        return self.api.delete(path, {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}})

    def evicted(self, pod, message="The node was low on resource: memory."):
        """The pod failed without its container having said anything."""
        return self.write(pod, {"phase": "Failed", "reason": "Evicted", "message": message, "containerStatuses": []})
