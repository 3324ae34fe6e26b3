"""What the operators of operators.py are asked to do. Each load has a namespace of its own and returns figures by name."""

import collections
import concurrent.futures
import math
import statistics
import time

from lab import control
from lab.api import ApiError
from operator_world import JOB_LABEL, KINDS, Witness
from play_kubelet import PlayKubelet
from yard import wait_for

CONTAINER = {"name": "tensorflow", "image": "played"}
LIMIT = 300  # seconds for any load; what was made until then counts
PAUSE = 0.5  # seconds between failures, in which 20 requests a second are enough for a restart
FOREIGN = 10_000
OUTAGE = 20  # seconds, in which an operator has come to wait between its attempts


def job(name, **roles):
    specs = {role: {"replicas": count, "restartPolicy": "ExitCode", "template": {"spec": {"containers": [CONTAINER]}}}
             for role, count in roles.items()}
    return {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name}, "spec": {"tfReplicaSpecs": specs}}


def percentile(values, percent):
    """The smallest that so many percent do not exceed."""
    return sorted(values)[math.ceil(len(values) * percent / 100) - 1]


def submit(world, namespace, jobs):
    """A witness of the namespace, and when each job was sent."""
    witness, path = Witness(world.api, world.namespace(namespace)), KINDS["tfjobs"].format(namespace)
    # The API server answers the first job after its definition with a delay of two seconds, whoever's it is.
    world.api.post(f"{path}?dryRun=All", jobs[0])
    return witness, world.submit(path, jobs)


def burst(world, jobs, replicas):
    """So many jobs at once, and when their pods and services are there. None of them runs: what is measured is making."""
    total, before = jobs * replicas, world.cpu()
    witness, sent = submit(world, f"burst-{jobs}-{replicas}", [job(f"job-{i}", Worker=replicas) for i in range(jobs)])
    began, seen = min(sent.values()), witness.seen
    deadline = time.monotonic() + LIMIT
    with witness.changed:
        witness.changed.wait_for(lambda: len(seen["pods"]) >= total <= len(seen["services"]), LIMIT)
        pods, services = witness.of("pods"), witness.of("services")
    whole = time.monotonic() < deadline

    def rate(things):
        return len(things) / (max(thing.at["made"] for thing in things) - began)
    last, made = collections.defaultdict(float), collections.Counter(pod.job for pod in pods)
    for pod in pods:
        last[pod.job] = max(last[pod.job], pod.at["made"])
    waits = [last[name] - then if made[name] == replicas else math.inf for name, then in sent.items()]
    world.settle()
    return {"pods": rate(pods), "replicas": rate(pods + services) / 2 if whole else math.nan,
            "wait": statistics.median(waits), "wait p99": percentile(waits, 99),
            "cpu": (world.cpu() - before) * 1000 / len(pods)}


def running(world, jobs=100, replicas=10, limit=LIMIT):
    """So many jobs at once, on nodes of kwok, until every job reads Running. The delay of a job is the time from its first running pod
    to its condition. A job is whole when all of its pods run."""
    namespace = f"running-{jobs}-{replicas}"
    world.cluster.play_nodes(10)
    witness, sent = submit(world, namespace, [job(f"job-{i}", Worker=replicas) for i in range(jobs)])
    began = min(sent.values())
    witness.wait(lambda: witness.reached["tfjobs", "Running"] == jobs, "all jobs read Running", limit)
    with witness.changed:
        conditions, pods = {one.name: one.at["Running"] for one in witness.of("tfjobs")}, witness.of("pods")
    runs = collections.defaultdict(list)
    for pod in pods:
        if "Running" in pod.at:
            runs[pod.job].append(pod.at["Running"])
    delays = [conditions[name] - min(runs[name]) for name in conditions]
    whole = [max(times) - began if len(times) == replicas else math.inf for times in runs.values()]
    world.settle()
    by_kind = collections.Counter(one["objectRef"]["resource"] for one in world.writes_in(namespace))
    return {"all running": max(conditions.values()) - began, "delay p99": percentile(delays, 99), "whole": statistics.median(whole),
            "all made": max(pod.at["made"] for pod in pods) - began, "writes running": by_kind.total() / jobs,
            "events running": by_kind["events"] / jobs}


def recovery(world):
    """How long a job waits for its pod that is sent as soon as the API server takes it: after the server and its store were gone for a
    while, and after first the one and then the other was restarted."""
    namespace = world.namespace("recovery")
    jobs, pods = (KINDS[kind].format(namespace) for kind in ("tfjobs", "pods"))

    def accepted(thing):
        try:
            return world.api.post(jobs, thing)
        except (ApiError, OSError) as error:
            assert getattr(error, "status", 503) in (403, 429, 500, 503), error  # 403: its rules are not loaded yet

    def first_pod(name):
        wait_for(lambda: accepted(job(name, Worker=1)), "the API server takes a job", LIMIT)
        began = time.perf_counter()
        world.cluster.wait(lambda: any(pod["metadata"]["labels"].get(JOB_LABEL) == name for pod in world.api.get(pods)["items"]),
                           "a pod of the job", LIMIT)
        return time.perf_counter() - began
    first_pod("before")
    for component in ("apiserver", "etcd"):
        world.cluster.kill(component)
    time.sleep(OUTAGE)
    for component in ("etcd", "apiserver"):
        control.restart(world.cluster.state, component)
    after_outage = first_pod("after-outage")
    for component in ("apiserver", "etcd"):
        world.cluster.restart(component)
    return {"recovery": after_outage, "recovery restart": first_pod("after-restart")}


def foreign_pods(world):
    """Pods that are none of the operator's and on no node, and its memory before and after."""
    before, path = world.memory(), KINDS["pods"].format(world.namespace("foreign"))
    spec = {"containers": [CONTAINER], "schedulerName": "nobody"}
    world.submit(path, [{"metadata": {"name": f"foreign-{i}"}, "spec": spec} for i in range(FOREIGN)])
    after = world.memory()
    return {"full": before[0], "full share": before[1], "foreign": after[0], "growth": after[0] - before[0]}


def reactions(world, count=20):
    """Workers fail one after another, each of a job of its own, in a way that calls for a restart: how long until the next
    pod of that name is made. The parameter server is why one worker is restarted alone, by either operator."""
    namespace = "reactions"
    witness, _ = submit(world, namespace, [job(f"job-{i}", PS=1, Worker=2) for i in range(count)])
    witness.wait(lambda: len(witness.seen["pods"]) == 3 * count, "pods of small jobs", LIMIT)
    kubelet = PlayKubelet(world.api, namespace)
    for pod in witness.of("pods"):
        kubelet.running(pod.name)
    world.settle()
    took = []
    for i in range(count):
        name = f"job-{i}-worker-1"

        def lives():
            return [pod.at for pod in witness.of("pods") if pod.name == name]
        kubelet.ended(name, exit_code=137 if i % 2 else 130)
        witness.wait(lambda: len(lives()) == 2 and "Failed" in lives()[0], "a failed worker is replaced", 60)
        took.append(lives()[1]["made"] - lives()[0]["Failed"])
        time.sleep(PAUSE)
    return {"reaction": statistics.median(took), "reaction max": max(took)}


def lives(world, count=5, replicas=10):
    """Whole lives: a pod runs when it is made, and ends well when all of its job run and the job says so. What the operator
    wrote."""
    namespace = "lives"
    witness, _ = submit(world, namespace, [job(f"job-{i}", Worker=replicas) for i in range(count)])
    kubelet, asked = PlayKubelet(world.api, namespace), set()

    def due():
        """What a kubelet would do next, and has not done."""
        running = collections.Counter(pod.job for pod in witness.of("pods") if "Running" in pod.at)
        known = {job.name for job in witness.of("tfjobs") if "Running" in job.at and running[job.name] == replicas}
        wanted = {(kubelet.ended if pod.job in known else kubelet.running, pod.name)
                  for pod in witness.of("pods") if "Running" not in pod.at or pod.job in known}
        return wanted - asked

    def over():
        return sum("Succeeded" in job.at for job in witness.of("tfjobs")) == count
    deadline = time.monotonic() + LIMIT
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        while not over():
            witness.wait(lambda: due() or over(), "jobs of short lives succeed", deadline - time.monotonic())
            with witness.changed:
                now = due()
            asked.update(now)
            for done in [pool.submit(act, name) for act, name in now]:
                done.result()
    world.settle()
    by_kind = collections.Counter(one["objectRef"]["resource"] for one in world.writes_in(namespace))
    return {"writes": by_kind.total() / count, "writes events": by_kind["events"] / count,
            "writes status": by_kind["tfjobs"] / count}
