"""Lives of jobs under a real operator and a real API server, with the node played: what tests of faults are made of.

A `Stage` is one API server with a `Witness` that sees everything on it and plays the only node. A `Life` is a namespace with
an operator of its own behind a FaultProxy; several run at once. What became of it is an `Outcome`, which compares equal
with that of another life of the same script, whatever happened on the way, if nothing went wrong.
"""

import collections
import concurrent.futures
import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import threading
import time

from cluster import ApiError
from fault_proxy import FaultProxy
from play_kubelet import PlayKubelet
from trainyard_operator import operator_kubeconfig
from yard import BINARY

NODE = "played"
JOB = "a"
ATTEMPT = "trainyard.dev/attempt"
JOBS = "/apis/kubeflow.org/v1/namespaces/{}/tfjobs"
WATCHED = {"pods": "/api/v1/pods", "services": "/api/v1/services", "tfjobs": "/apis/kubeflow.org/v1/tfjobs"}
SECONDS = 180  # for any one wait of a script; an idle machine needs a fiftieth of it
# Of no meaning for what a job has come to.
VARIABLE = {"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "lastUpdateTime",
            "lastTransitionTime", "startTime", "completionTime", "notBefore", "when"}


def quietly(action, *arguments):
    """Somebody else was quicker, or the server is away: the next word of the watch says what there is to do."""
    with contextlib.suppress(ApiError, OSError):
        action(*arguments)


class Witness:
    """Watches pods, services and jobs of all namespaces, and does a node's part: every pod is placed and runs at once; one
    that is asked to end does so at once."""

    def __init__(self, api):
        self.api, self.closing = api, False
        self.changed = threading.Condition()
        self.objects = {resource: {} for resource in WATCHED}  # (namespace, name): object
        self.made = collections.defaultdict(set)  # (namespace, "pods/a-worker-0"): UIDs
        self.gone = collections.defaultdict(set)
        self.last_change = collections.defaultdict(float)  # by namespace
        self.pods_seen = collections.defaultdict(list)  # by namespace: (when, what)
        self.robbed = set()  # namespaces where the server deleted a pod for another (docs/test-cluster.md)
        self.still = set()  # namespaces without a node: pods stay as they are
        self.hands = concurrent.futures.ThreadPoolExecutor(6, "kubelet")
        self.threads = [threading.Thread(target=self.follow, args=(resource,), daemon=True) for resource in WATCHED]
        for thread in self.threads:
            thread.start()

    def close(self):
        self.closing = True
        self.hands.shutdown(cancel_futures=True)

    def follow(self, resource):
        version = None
        while not self.closing:
            with contextlib.suppress(OSError, ApiError, ValueError):
                version = version or self.list(resource)
                query = f"?allowWatchBookmarks=true&timeoutSeconds=20&resourceVersion={version}"
                for event in self.api.watch(WATCHED[resource] + query, timeout=40):
                    if event["type"] == "ERROR":  # too old: what was missed is in the next list
                        version = None
                        break
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        self.see(resource, event["type"], event["object"])
                    if self.closing:
                        return
                continue
            time.sleep(0.05)

    def list(self, resource):
        found = self.api.get(WATCHED[resource])
        there = {(thing["metadata"]["namespace"], thing["metadata"]["name"]): thing for thing in found["items"]}
        for key, thing in list(self.objects[resource].items()):
            if key not in there or there[key]["metadata"]["uid"] != thing["metadata"]["uid"]:
                self.see(resource, "DELETED", thing)
        for thing in there.values():
            self.see(resource, "ADDED", thing)
        return found["metadata"]["resourceVersion"]

    def see(self, resource, kind, thing):
        meta = thing["metadata"]
        namespace, name = meta["namespace"], meta["name"]
        with self.changed:
            known = self.objects[resource]
            if kind == "DELETED":
                known.pop((namespace, name), None)
                self.gone[namespace, f"{resource}/{name}"].add(meta["uid"])
                if "deletionTimestamp" not in meta and meta.get("finalizers"):
                    self.robbed.add(namespace)
            else:
                known[namespace, name] = thing
                self.made[namespace, f"{resource}/{name}"].add(meta["uid"])
            self.last_change[namespace] = time.monotonic()
            if resource == "pods":
                state = "leaving" if "deletionTimestamp" in meta else thing["status"].get("phase")
                self.pods_seen[namespace].append((time.monotonic(), f"{kind} {name} {meta['uid'][:8]} {state}"))
            self.changed.notify_all()
        if resource == "pods" and kind != "DELETED" and namespace not in self.still and not self.closing:
            with contextlib.suppress(RuntimeError):  # closed meanwhile
                self.hands.submit(quietly, self.play, thing)

    def look_again(self, namespace):
        """After a time without a node: places what waits."""
        for (space, _), pod in list(self.objects["pods"].items()):
            if space == namespace:
                quietly(self.play, pod)

    def play(self, pod):
        meta, phase = pod["metadata"], pod["status"].get("phase")
        kubelet, path = PlayKubelet(self.api, meta["namespace"]), f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        if "deletionTimestamp" in meta:
            if meta.get("deletionGracePeriodSeconds", 0) > 0:
                if phase == "Running":
                    kubelet.ended(pod, 143)
                self.api.delete(path, {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}})
        elif "nodeName" not in pod["spec"]:
            self.api.post(path + "/binding", {"metadata": {"name": meta["name"], "uid": meta["uid"]},
                                              "target": {"kind": "Node", "name": NODE}})
        elif phase == "Pending":
            kubelet.running(pod)

    def wait(self, condition, what, seconds=SECONDS):
        deadline = time.monotonic() + seconds
        with self.changed:
            while not (value := condition()):
                assert self.changed.wait(deadline - time.monotonic()) or time.monotonic() < deadline, \
                    f"not within {seconds} s: {what}"
        return value

    def tally(self, namespace):
        """How often each object was made, and how often it went."""
        with self.changed:
            return {name: (len(uids), len(self.gone.get((space, name), ())))
                    for (space, name), uids in sorted(self.made.items()) if space == namespace}


class Operator:
    """`trainyard operator` for one namespace."""

    def __init__(self, kubeconfig, namespace, log, *flags):
        self.command = [str(BINARY), "operator", "--kubeconfig", str(kubeconfig), "--namespace", namespace,
                        "--metrics-bind-address", "0", "--health-probe-bind-address", "0", *flags]
        self.log, self.lock, self.process, self.starts, self.over = log, threading.Lock(), None, 0, False
        self.start()

    def start(self):
        with self.lock, open(self.log, "a") as log:
            if not self.over:
                self.starts += 1
                self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def kill_and_start(self):
        self.kill()
        self.start()

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)
        while open(f"/proc/{self.process.pid}/stat").read().rsplit(")", 1)[1].split()[0] != "T":
            time.sleep(0.001)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def close(self):
        with self.lock:
            self.over = True
        status = self.process.poll()
        self.kill()
        assert status is None or status == -signal.SIGKILL, f"the operator ended by itself: {status}"


@dataclasses.dataclass
class Outcome:
    state: dict
    tally: dict

    def differences(self, other):
        """What is so here, and otherwise there: lines."""
        out = []
        for part in ("state", "tally"):
            ours, theirs = getattr(self, part), getattr(other, part)
            for key in sorted(ours.keys() | theirs.keys()):
                if ours.get(key) != theirs.get(key):
                    out += [f"{part} {key}:", f"   is     {ours.get(key)}", f"   not    {theirs.get(key)}"]
        return out


def stripped(value):
    if isinstance(value, dict):
        return {key: stripped(item) for key, item in value.items() if key not in VARIABLE}
    return [stripped(item) for item in value] if isinstance(value, list) else value


class Life:
    def __init__(self, stage, namespace, folder, operators=1):
        self.stage, self.namespace, self.api, self.witness = stage, namespace, stage.api, stage.witness
        self.kubelet = PlayKubelet(stage.api, namespace)
        self.ends = contextlib.ExitStack()
        self.proxies, self.operators = [], []
        self.seen, self.seen_at = None, 0.0
        for number in range(operators):
            proxy = self.ends.enter_context(FaultProxy(stage.cluster.server, stage.cluster.dir / "pki", stage.user))
            conf = proxy.kubeconfig(folder / f"{namespace}-{number}.conf")
            operator = Operator(conf, namespace, folder / f"{namespace}-{number}.log")
            self.ends.callback(operator.close)
            self.proxies.append(proxy)
            self.operators.append(operator)
        self.proxy, self.operator = self.proxies[0], self.operators[0]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.ends.close()

    # -- what a user does

    @property
    def jobs(self):
        return JOBS.format(self.namespace)

    def submit(self, policy=None, name=JOB, **replicas):
        """`Worker=2`: replicas of a role."""
        pod = {"automountServiceAccountToken": False, "containers": [{"name": "tensorflow", "image": "played"}]}
        specs = {role: {"replicas": count, "restartPolicy": "ExitCode", "template": {"spec": pod}}
                 for role, count in replicas.items()}
        self.api.post(self.jobs, {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name},
                                  "spec": {"runPolicy": {"cleanPodPolicy": "Running", **(policy or {})}, "tfReplicaSpecs": specs}})

    def edit(self, **spec):
        self.api.patch(f"{self.jobs}/{JOB}", {"spec": spec})

    def scale(self, role, count):
        self.edit(tfReplicaSpecs={role: {"replicas": count}})

    def delete(self):
        return self.api.delete(f"{self.jobs}/{JOB}")["details"]["uid"]

    # -- what is there

    def job(self, name=JOB):
        return self.witness.objects["tfjobs"].get((self.namespace, name))

    def pod(self, replica, name=JOB):
        return self.witness.objects["pods"].get((self.namespace, f"{name}-{replica}"))

    def status(self, *path, name=JOB, default=None):
        value = (self.job(name) or {}).get("status")
        for key in path:
            value = (value or {}).get(key)
        return default if value is None else value

    def has(self, condition, name=JOB):
        return any(c["type"] == condition and c["status"] == "True" for c in self.status("conditions", name=name, default=[]))

    def runs(self, replica, attempt, uid=None, name=JOB):
        """Whether its pod of this attempt runs."""
        pod = self.pod(replica, name)
        return (pod and pod["metadata"].get("labels", {}).get(ATTEMPT) == str(attempt) and "deletionTimestamp" not in pod["metadata"] and
                pod["status"].get("phase") == "Running" and (uid is None or self.owner(pod) == uid))

    @staticmethod
    def owner(pod):
        return (pod["metadata"].get("ownerReferences") or [{}])[0].get("uid")

    # -- the script

    def wait(self, condition, what, seconds=SECONDS):
        return self.witness.wait(condition, f"{self.namespace}: {what}; status {json.dumps(self.status())}", seconds)

    def up(self, attempts, uid=None):
        """All of these run, and the job says so: {"worker-0": 0}."""
        self.wait(lambda: all(self.runs(replica, attempt, uid) for replica, attempt in attempts.items()), f"up: {attempts}")
        counts = collections.Counter({"ps": "PS"}.get(r.split("-")[0], r.split("-")[0].capitalize()) for r in attempts)
        self.wait(lambda: (uid is None or self.job()["metadata"]["uid"] == uid) and self.has("Running") and
                  all(self.status("replicaStatuses", role, "active") == n for role, n in counts.items()),
                  f"counted: {dict(counts)}")

    def exits(self, replica, code, attempt=0):
        pod = self.wait(lambda: self.runs(replica, attempt) and self.pod(replica), f"{replica} runs in attempt {attempt}")
        self.kubelet.ended(pod, code)

    def shows(self, condition):
        self.wait(lambda: self.has(condition), condition)

    def empty(self, *resources):
        """Nothing of these is left in the namespace."""
        self.wait(lambda: not any(space == self.namespace for resource in resources
                                  for space, _ in self.witness.objects[resource]), f"no {', '.join(resources)}")

    # -- how it ended

    def outcome(self):
        state, [job, *_] = {}, [*self.api.get(self.jobs)["items"], {}]
        uid = job.get("metadata", {}).get("uid")
        for resource, path in (("tfjobs", self.jobs), ("pods", f"/api/v1/namespaces/{self.namespace}/pods"),
                               ("services", f"/api/v1/namespaces/{self.namespace}/services")):
            for thing in self.api.get(path)["items"]:
                if resource != "tfjobs":
                    thing["owned"] = self.owner(thing) == uid
                if resource == "pods":
                    thing["status"] = {"phase": thing["status"].get("phase")}
                text = json.dumps(stripped(thing), sort_keys=True).replace(self.namespace, "NAMESPACE")
                state[f"{resource}/{thing['metadata']['name']}"] = text
        return Outcome(state, self.witness.tally(self.namespace))

    def is_quiet(self, seconds):
        """Nothing was written for so long, no request is under way, no pod is about to go, and the operators watch."""
        watching = all(proxy.stream(resource).watches for proxy in self.proxies for resource in WATCHED)
        with self.witness.changed:
            leaving = self.namespace not in self.witness.still and any(
                space == self.namespace and "deletionTimestamp" in pod["metadata"]
                for (space, _), pod in self.witness.objects["pods"].items())
        state = (watching, self.witness.last_change[self.namespace], [proxy.write_count() for proxy in self.proxies])
        if state != self.seen:
            self.seen, self.seen_at = state, time.monotonic()
        return (watching and not leaving and time.monotonic() - self.seen_at > seconds and
                not any(proxy.open for proxy in self.proxies))

    def settle(self, seconds=1.0, within=SECONDS):
        deadline = time.monotonic() + within
        while not self.is_quiet(seconds):
            assert time.monotonic() < deadline, f"{self.namespace}: it does not come to rest: {self.told()[-8:]}"
            time.sleep(0.02)
        return self.outcome()

    def becomes(self, expected, quiet, within=SECONDS):
        """The outcome once it is as expected and stays so; or, when time is up, as it is."""
        deadline = time.monotonic() + within
        while True:
            self.settle(quiet, within)
            outcome = self.outcome()
            if not outcome.differences(expected) or time.monotonic() > deadline:
                return outcome
            time.sleep(0.1)

    def told(self):
        """What operators wrote, and was answered, and what became of pods, in the order of time."""
        lines = [(write.at, f"{number}: {write.label} {write.status} {write.uid[:8]}")
                 for number, proxy in enumerate(self.proxies) for write in proxy.writes] + self.witness.pods_seen[self.namespace]
        return [f"{at - min(lines)[0]:.3f} {line}" for at, line in sorted(lines)]

    def violations(self):
        return [line for proxy in self.proxies for line in proxy.violations]

    def events(self):
        """What was told about the job: [(reason, message)]."""
        items = self.api.get(f"/api/v1/namespaces/{self.namespace}/events")["items"]
        return [(e["reason"], e["message"]) for e in items if e["involvedObject"]["kind"] == "TFJob"]


class Stage:
    def __init__(self, cluster, folder):
        self.cluster, self.api, self.folder = cluster, cluster.api, folder
        self.user = operator_kubeconfig(cluster).stem
        self.numbers, self.free, self.lock = iter(range(1, 1_000_000)), [], threading.Lock()
        with contextlib.suppress(ApiError):
            self.api.post("/api/v1/nodes", {"metadata": {"name": NODE}})
        self.witness, self.over = Witness(cluster.api), threading.Event()
        self.heart = threading.Thread(target=self.beat, daemon=True)
        self.heart.start()

    def close(self):
        self.over.set()
        self.witness.close()

    def beat(self):
        """Keeps the node from being taken for lost."""
        while not self.over.wait(5):
            stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            quietly(self.api.patch, f"/api/v1/nodes/{NODE}/status",
                    {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Played", "message": "",
                                                "lastHeartbeatTime": stamp, "lastTransitionTime": stamp}]}}, "strategic")

    def namespace(self):
        """A new one, ready for pods. Made several at a time: accounts take a while."""
        with self.lock:
            if not self.free:
                names = [f"life-{os.getpid()}-{next(self.numbers)}" for _ in range(16)]
                for name in names:
                    self.api.post("/api/v1/namespaces", {"metadata": {"name": name}})
                for name in names:
                    self.cluster.wait(lambda: self.api.get(f"/api/v1/namespaces/{name}/serviceaccounts/default"), "an account")
                self.free = names
            return self.free.pop()

    def life(self, **options):
        return Life(self, self.namespace(), self.folder, **options)
