"""Jobs that a real Kueue holds back: `ps`, `why` and `run` name the queue and what it waits for, and nothing bypasses it.

Kubelets are played, pods are on no node.
"""

import json

import pytest

import samples
from cluster import Cluster, holds
from kueue import is_built, kueue
from play_kubelet import PlayKubelet
from there import There
from trainyard_operator import install_crd, operator

pytestmark = pytest.mark.skipif(not is_built(), reason="Kueue takes three minutes to build: script/cluster build --with-kueue, or SOAK=1 script/test cluster")

SPACE = "team"
NO_ROOM = "couldn't assign flavors to pod set worker: insufficient unused quota for cpu in flavor default, 1 more needed"


class Queues:
    """A namespace, our operator and Kueue. Each test has queues of its own."""

    def __init__(self, there, kueue):
        self.there, self.kueue, self.kubelet = there, kueue, PlayKubelet(there.cluster.api, SPACE)
        self.run, self.wait, self.job = there.run, there.cluster.wait, there.job

    def add(self, name, cpu=1, **spec):
        """A LocalQueue and its ClusterQueue."""
        self.kueue.add_cluster_queue(name, cpu, **spec)
        self.kueue.add_local_queue(SPACE, name, name)

    def manifest(self, name, queue, cpu=1, priority=""):
        labels = {"kueue.x-k8s.io/queue-name": queue, **({"kueue.x-k8s.io/priority-class": priority} if priority else {})}
        template = samples.pod({**samples.TENSORFLOW, "resources": {"requests": {"cpu": cpu}}})
        job = samples.job({"runPolicy": {}, "tfReplicaSpecs": {"Worker": {"replicas": 1, "template": template}}}, name=name, labels=labels)
        return self.there.script(json.dumps(job), f"{name}.json")

    def submit(self, name, queue, **options):
        self.run("run", "-d", "-f", self.manifest(name, queue, **options))

    def up(self, name):
        """Its queue has admitted it; now its pod runs."""
        self.wait(lambda: self.pod(name) and not self.job(name)["spec"]["runPolicy"]["suspend"], f"the pod of {name}")
        self.kubelet.running(f"{name}-worker-0")
        self.wait(lambda: holds(self.job(name), "Running"), f"{name} runs")

    def pod(self, name):
        return self.there.pods(name).get("worker-0")

    def end(self, name):
        self.kubelet.ended(f"{name}-worker-0")
        self.wait(lambda: holds(self.job(name), "Succeeded"), f"{name} has succeeded")

    def held(self, name, text):
        """`ps` and `why` say what it waits for, and `resume` refuses. What `why` and `resume` say."""
        self.wait(lambda: text in self.note(name), f"{name}: {text}")
        line = self.line(name)
        assert "Queued" in line, line
        why = self.run("why", name)
        assert f"{name} is queued" in why and text in why and "trainyard resume" not in why, why
        refused = self.there.refused("resume", name)
        assert f"{name} waits in queue" in refused and text in refused, refused
        assert self.job(name)["spec"]["runPolicy"]["suspend"] and not self.pod(name)
        return why, refused

    def line(self, name):
        return next((line for line in self.run("ps").splitlines() if line.split()[0] == name), "")

    def note(self, name):
        return next(one["waitsFor"] for one in json.loads(self.run("ps", "--json")) if one["name"] == name)


@pytest.fixture(scope="module")
def queues(tmp_path_factory):
    with Cluster.up() as cluster:
        install_crd(cluster)
        with kueue(cluster) as works, operator(cluster):
            works.create("ResourceFlavor", "default")
            works.create("WorkloadPriorityClass", "high", value=1000)
            there = There(tmp_path_factory.mktemp("kueue") / "home", cluster, SPACE, security="")
            yield Queues(there, works)
            there.close()


def test_a_job_waits_for_quota_and_starts_by_itself(queues):
    queues.add("quota")
    queues.submit("first", "quota")
    queues.up("first")
    queues.submit("second", "quota")
    why, refused = queues.held("second", f"queue quota has not admitted it: {NO_ROOM}")
    assert "it starts by itself when the queue has room" in why and "label tfjob second kueue.x-k8s.io/queue-name-" in refused
    assert "Running" in queues.line("first")
    queues.end("first")
    queues.up("second")
    assert queues.note("second") == "" and "Running" in queues.line("second")
    queues.end("second")


def test_a_job_that_is_larger_than_the_quota(queues):
    queues.add("small")
    queues.submit("large", "small", cpu=7)
    why, refused = queues.held("large", "maximum capacity (1)")
    assert "request less" in why and "by itself" not in why + refused


def test_a_job_whose_queue_does_not_exist(queues):
    queues.submit("lost", "nowhere")
    why, refused = queues.held("lost", "queue nowhere has not admitted it: LocalQueue nowhere doesn't exist")
    for told in (why, refused):
        assert "label tfjob lost kueue.x-k8s.io/queue-name=QUEUE --overwrite" in told and "when the queue has room" not in told
    queues.add("somewhere")
    queues.there.kubectl("label", "tfjob", "lost", "kueue.x-k8s.io/queue-name=somewhere", "--overwrite")
    queues.up("lost")
    queues.end("lost")


def test_a_job_whose_cluster_queue_is_stopped(queues):
    queues.add("halted", stopPolicy="Hold")
    queues.submit("halt", "halted")
    why, _ = queues.held("halt", "queue halted has not admitted it: ClusterQueue halted is inactive")
    assert "kubectl describe clusterqueue halted" in why and "when the queue has room" not in why
    queues.kueue.stop("clusterqueues", "halted", "None")
    queues.up("halt")
    queues.end("halt")


def test_a_job_whose_local_queue_is_stopped(queues):
    queues.add("paused")
    queues.kueue.stop("localqueues", "paused", "Hold", SPACE)
    queues.submit("pause", "paused")
    why, _ = queues.held("pause", "queue paused has not admitted it: LocalQueue paused is inactive")
    assert "kubectl -n team describe localqueue paused" in why and "when the queue has room" not in why
    queues.kueue.stop("localqueues", "paused", "None", SPACE)
    queues.up("pause")
    queues.end("pause")


def test_a_job_that_waits_for_an_admission_check(queues):
    """The controller of such a check would add nodes, for example. Here the test is that controller."""
    queues.kueue.create("AdmissionCheck", "nodes", spec={"controllerName": "trainyard.test/checks"})
    queues.kueue.set_status("admissionchecks", "nodes", conditions=[queues.kueue.condition("Active", "True")])
    queues.add("checked", admissionChecksStrategy={"admissionChecks": [{"name": "nodes"}]})
    queues.submit("check", "checked")
    why, _ = queues.held("check", "queue checked has not admitted it: admission check nodes is Pending")
    assert "it starts by itself when the check has passed: kubectl -n team describe workload" in why
    workload = queues.kueue.workload(SPACE, "check")
    queues.kueue.set_status("workloads", workload["metadata"]["name"], SPACE, admissionChecks=[
        {**workload["status"]["admissionChecks"][0], "state": "Ready"}])
    queues.up("check")
    queues.end("check")


def test_a_job_that_somebody_took_out_of_its_queue(queues):
    queues.add("open")
    queues.submit("taken", "open")
    queues.up("taken")
    queues.kueue.set_active(SPACE, "taken", False)
    why, refused = queues.held("taken", "it was taken out of queue open")
    workload = queues.kueue.workload(SPACE, "taken")["metadata"]["name"]
    for told in (why, refused):
        assert f"kubectl -n team patch workload {workload} --type merge -p '{{\"spec\":{{\"active\":true}}}}' puts it back" in told
    queues.kueue.set_active(SPACE, "taken", True)
    queues.up("taken")
    queues.end("taken")


def test_a_job_that_ran_too_long_for_its_queue(queues):
    queues.add("short")
    path = queues.manifest("long", "short")
    job = json.loads((queues.there.home / path).read_text())
    job["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] = "2"
    (queues.there.home / path).write_text(json.dumps(job))
    queues.run("run", "-d", "-f", path)
    queues.up("long")
    queues.held("long", "it was taken out of queue short due to exceeding the maximum execution time")


def test_a_preempted_job_runs_again_by_itself(queues):
    queues.add("contested")
    queues.submit("low", "contested")
    queues.up("low")
    queues.submit("high", "contested", priority="high")
    queues.up("high")
    why, _ = queues.held("low", f"queue contested preempted it and has not admitted it again: {NO_ROOM}")
    assert "it starts by itself when the queue has room" in why
    queues.end("high")
    queues.up("low")
    queues.end("low")


def test_run_and_wait_stay_with_a_job_through_its_queue(queues):
    """A job that is held back, or preempted, is not over: they end when it has."""
    queues.add("busy")
    queues.submit("before", "busy")
    queues.up("before")
    attached, waiting = queues.there.home / "attached", None
    with attached.open("w") as said:
        run = queues.there.start("run", "-f", queues.manifest("patient", "busy"), stdout=said, stderr=said)
    queues.wait(lambda: f"queue busy has not admitted it: {NO_ROOM}" in attached.read_text(), "run says what it waits for")
    waiting = queues.there.start("wait", "patient")
    queues.end("before")
    queues.up("patient")
    queues.submit("urgent", "busy", priority="high")
    queues.up("urgent")
    queues.wait(lambda: "queue busy preempted it and has not admitted it again" in attached.read_text(), "run says that it was preempted")
    queues.end("urgent")
    queues.up("patient")
    assert run.poll() is None and waiting.poll() is None
    queues.end("patient")
    assert (run.wait(60), waiting.wait(60)) == (0, 0), attached.read_text()
    assert "patient succeeded" in attached.read_text()


def test_suspend_says_how_a_queue_lets_go_of_a_job(queues):
    """Kueue would start at once what it has admitted."""
    queues.add("keen")
    queues.submit("eager", "keen")
    queues.up("eager")
    workload = queues.kueue.workload(SPACE, "eager")["metadata"]["name"]
    refused = queues.there.refused("suspend", "eager")
    assert "queue keen would start eager again" in refused and f"kubectl -n team patch workload {workload}" in refused
    queues.end("eager")


def test_the_way_around_the_queue_leaves_no_quota_behind(queues):
    """`resume` says what to type for that."""
    queues.add("full")
    queues.submit("inside", "full")
    queues.up("inside")
    queues.submit("around", "full")
    _, refused = queues.held("around", "has not admitted it")
    for command in refused.partition("to run it without the queue: ")[2].split(" && "):
        words = command.split()
        assert words[0] in ("kubectl", "trainyard"), command
        if words[0] == "kubectl":
            queues.there.cluster.kubectl(*(word.strip("'") for word in words[1:]))
        else:
            queues.run(*words[1:], "-d")
    queues.up("around")
    queues.end("inside")
    queues.submit("next", "full")
    queues.up("next")
    for name in ("around", "next"):
        queues.end(name)


def test_a_failed_job_is_not_resumed_past_its_queue(queues):
    queues.add("once")
    queues.submit("broken", "once")
    queues.up("broken")
    queues.kubelet.ended("broken-worker-0", exit_code=1)
    queues.wait(lambda: holds(queues.job("broken"), "Failed"), "broken has failed")
    refused = queues.there.refused("resume", "broken")
    assert "queue once" in refused, refused
