"""Our operator and training-operator v1.9.4, on one API server with our definition of TFJob: the same is done to a job of
either, and what they make of it is the same, but for what docs/differences.md explains."""

import concurrent.futures
import contextlib
import dataclasses
import inspect
import re

import pytest

from cluster import Cluster
from go_operator import go_operator
from scenarios import SCENARIOS
from side_by_side import MAY, Pair, World
from trainyard_operator import install_crd, operator
from yard import ROOT


@dataclasses.dataclass
class Difference:
    """Paths of a snapshot, and what is there: theirs, ours. All of them are regular expressions."""
    heading: str  # of docs/differences.md
    shows: dict
    always: bool = False  # in any job, whether it names the difference or not


def variable(name, value):
    path = rf"pod\..*\.spec\.containers\.tensorflow\.env\.{name}\."
    return {path + "name": ("", name), path + "value": ("", value)}


POD, SERVICE, ANY = r"pod\.[a-z]+-[0-9]+\.", r"service\.[a-z]+-[0-9]+\.", ".*"

# Parts of what follows.
FAILED_THERE = {
    "conditions": ("Created Running=False Failed", "Created Running"), "completionTime": ("set", "not set"),
    r"condition\.Failed": (r"TFJobFailed: .* has failed because 1 [A-Z][A-Za-z]+ replica\(s\) failed\.", ""),
    r"event\.TFJobFailed": (ANY, "")}
FAILED_HERE = {
    "conditions": ("Created Running", "Created Running=False Failed"), "completionTime": ("not set", "set"),
    r"event\.TFJobFailed": ("", ANY)}
RESTARTED_HERE = {r"event\.TFJobRestarting": ("", ANY), r"event\.(ExitedWithCode|SuccessfulDeletePod)": MAY}
WORKER_1_AGAIN = {r"made\.worker-1": ("1", "2")}
WORKER_0_AGAIN = {r"made\.worker-0": ("1", "2"), r"count\.Worker": ("active=2", "active=1")}

ALLOWED = {
    # Of any job.
    "restart policy": Difference("Restarts are new pods", {POD + r"spec\.restartPolicy": ("Always|OnFailure", "Never")}, True),
    "log": Difference("The end of the log in the pod's status", {
        POD + r"spec\.containers\.tensorflow\.terminationMessagePolicy": ("File", "FallbackToLogsOnError")}, True),
    "variables": Difference("Variables", variable("WORKER_NUMBER", "[0-9]+") | variable("TOT_WORKERS", "[0-9]+") |
                            variable("TRAINYARD_JOB", ANY) | variable("TRAINYARD_ROLE", "[a-z]+") |
                            variable("TRAINYARD_INDEX", "[0-9]+") | variable("TRAINYARD_ATTEMPT", "[0-9]+") |
                            variable("PYTHONUNBUFFERED", "1") | variable("PYTHONFAULTHANDLER", "1"), True),
    "attempt": Difference("A label for the attempt", {POD + r"labels\.trainyard\.dev/attempt": ("", "[0-9]+")}, True),
    "finalizer": Difference("A finalizer on pods", {POD + r"finalizers\.[0-9]+": ("", "trainyard.dev/observed")}, True),
    "names first": Difference("Services first, and of pods that are not ready too", {
        "order": ("pods before services", "services, then pods"),
        SERVICE + r"spec\.publishNotReadyAddresses": ("", "true")}, True),
    "selector": Difference("Scaling", {r"selector\.Worker": ("", ".*replica-type=worker")}, True),
    "stale": Difference("What was made a moment ago", {
        r"event\.FailedCreate(Pod|Service)": ("Warning Error creating: .* already exists", ""),
        r"event\.FailedDelete(Job|Pod|Service)": ("Warning Error deleting: .* not found", "")}, True),
    "told twice": Difference("Events", {
        r"event\.TFJobFailed": (r"Normal .* \| Warning job .*", "Warning job .*"),
        r"event\.ExitedWithCode": (r".*exited with code 143.*", ANY)}, True),
    "any type is named": Difference("Which replica failed", {
        r"condition\.Restarting|event\.TFJobRestarting": (".*because [A-Z][A-Za-z]+ replica.*", ".*because PS replica.*")}, True),

    # Of jobs to which something special happens.
    "two looks": Difference("What was made a moment ago", {r"count\.Worker|event\.ExitedWithCode": MAY}),
    "taken away worker": Difference("A pod that is taken away", FAILED_THERE | RESTARTED_HERE | WORKER_1_AGAIN | {
        r"count\.Worker": ("active=1 failed=1", "active=1"),
        "pods": ("ps-0:Running worker-0:Running", "ps-0:Running worker-0:Running worker-1:Pending"),
        r"pod\.worker-1\..*": ("", ANY)}),
    "taken away ps": Difference("A pod that is taken away", FAILED_THERE | RESTARTED_HERE | WORKER_0_AGAIN | {
        r"made\.ps-0": ("1", "2"), r"count\.PS": ("failed=1", ""),
        "pods": ("worker-0:Running worker-1:Running", "ps-0:Pending worker-0:Pending worker-1:Running"),
        r"pod\.ps-0\..*": ("", ANY)}),
    "deleted": Difference("A pod that is taken away", RESTARTED_HERE | {
        "conditions": ("Created", "Created Restarting"), r"condition\.Restarting": ("", ANY)}),
    "evicted": Difference("A pod that is taken away", FAILED_THERE | RESTARTED_HERE | WORKER_1_AGAIN | {
        r"count\.Worker": ("active=1 failed=1", "active=1"), "pods": (".*worker-1:Failed", ".*worker-1:Pending")}),
    "exit 42": Difference("A program that was told to go", FAILED_THERE | RESTARTED_HERE | WORKER_1_AGAIN | {
        r"count\.Worker": ("active=1 failed=1", "active=1"), "pods": (".*worker-1:Failed", ".*worker-1:Pending")}),
    "gang": Difference("A worker of a collective that fails", {
        "conditions": ("Created Running", "Created Restarting"), r"condition\.Running": (ANY, ""),
        r"condition\.Restarting": ("", ANY), r"count\.Worker": ("active=2", ""), r"made\.worker-[02]": ("1", "2"),
        "pods": ("worker-0:Running worker-1:Pending worker-2:Running", "worker-0:Pending worker-1:Pending worker-2:Pending")}),
    "parameter server": Difference("A parameter server that fails", WORKER_0_AGAIN | {
        "pods": (".*ps-1:Pending worker-0:Running.*", ".*ps-1:Pending worker-0:Pending.*")}),
    "in place": Difference("Restarts are new pods", RESTARTED_HERE | WORKER_1_AGAIN),
    "backoff in place": Difference("backoffLimit", RESTARTED_HERE | WORKER_1_AGAIN | {
        r"count\.Worker": ("active=2", "active=1 failed=1"), "pods": (".*worker-1:Running", ".*worker-1:Failed")}),
    "backoff by exit code": Difference("backoffLimit", FAILED_HERE | {
        r"condition\.Failed": ("", ".*has reached the specified backoff limit"), r"made\.worker-1": ("3", "2"),
        r"count\.Worker": ("active=1", "active=1 failed=1"), "pods": (".*worker-1:Pending", ".*worker-1:Failed")}),
    "done and removed": Difference("A replica that was done and is removed", {
        r"made\.worker-1": ("2", "1"), r"count\.Worker": ("active=1", "active=1 succeeded=1"),
        "pods": ("ps-0:Running worker-0:Running worker-1:Pending", "ps-0:Running worker-0:Running"),
        r"pod\.worker-1\..*": (ANY, "")}),
    "dynamic worker 0": Difference("Worker 0 with enableDynamicWorker", FAILED_HERE | {
        r"condition\.Failed": ("", ".*has failed because 2 Worker replica.*")}),
    "dynamic chief": Difference("A chief with enableDynamicWorker", {
        r"pod\.chief-0\..*\.TF_CONFIG\.value": (r'{"cluster":{"worker":{},"ps":\[\]},"task":.*',
                                                r'{"cluster":{"worker":{},"ps":\["chief.*"\],"chief":\["chief.*"\]},"task":.*')}),
    "deadline": Difference("activeDeadlineSeconds", FAILED_HERE | {
        r"condition\.Failed": ("", ".*it was active longer than specified deadline"),
        r"pods|services|pod\..*|service\..*": MAY}),
    "edited": Difference("A pod that somebody edits", {
        r"pod\.worker-1\.ownerReferences": (r"\[\]", ""), r"pod\.worker-1\.ownerReferences\..*": ("", ANY),
        r"count\.Worker": ("active=[12]", "active=1 succeeded=1"),  # by whether theirs looked again
        r"event\.TakenBackPod": ("", ANY), r"event\.ExitedWithCode": MAY}),
    "zero": Difference("replicas: 0", {
        r"made\.ps-0": ("[0-9]+", ""), "services made": (ANY, "worker-0=1"), r"event\.SuccessfulDelete(Pod|Service)": (ANY, "")}),
    "scaled down": Difference("Scaling", FAILED_THERE | {
        r"made\.worker-0": ("1", "2"), r"count\.Worker": ("active=2 failed=1", "active=1"), r"event\.TFJobScaled": ("", ANY),
        "pods": ("ps-0:Running worker-0:Running worker-1:Running", "ps-0:Running worker-0:Pending worker-1:Running"),
        r"pod\.worker-0\..*\.TF_CONFIG\.value": (".*-worker-2.*", ".*-worker-1.NS.svc:2222\"].*")}),
    "scaled up": Difference("Scaling", WORKER_0_AGAIN | {
        r"event\.TFJobScaled": ("", ANY), r"event\.SuccessfulDeletePod": ("", ANY),
        "pods": ("ps-0:Running worker-0:Running.*", "ps-0:Running worker-0:Pending.*"),
        r"pod\.worker-0\..*\.TF_CONFIG\.value": (".*-worker-1.NS.svc:2222\"].*", ".*-worker-2.*")}),
    "both": Difference("Succeeded and Failed", {
        "conditions": ("Created Running=False Succeeded Failed", "Created Running=False Succeeded"),
        r"condition\.Failed": (".*4 Worker replica.*", ""), r"event\.TFJobFailed": (ANY, ""), r"event\.ExitedWithCode": MAY}),
    "completion": Difference("The end of a job", {
        "conditions": ("Created Restarting Failed", "Created Restarting=False Failed"), "completionTime": ("not set", "set")}),
    "invalid": Difference("An invalid job", {
        "conditions": ("", "Created Failed"), r"condition\.Failed": ("", ".*the spec is invalid.*dnsPolicy.*"),
        r"condition\.Created": ("", ANY), "(start|completion)Time": MAY, r"event\.FailedCreatePod": (".*dnsPolicy.*", ""),
        r"event\.TFJobFailedValidation": ("", ".*dnsPolicy.*")}),
    "udp": Difference("Ports of services", {SERVICE + r"spec\.ports\.u\.protocol": ("TCP", "UDP")}),
    "unnamed ports": Difference("Ports of services", {
        "conditions": ("", "Created"), r"condition\.Created": ("", ANY), "startTime": ("not set", "set"),
        "services": ("", "worker-0"), "services made": ("", "worker-0=1"), r"service\..*": ("", ANY),
        r"count\..*|order": MAY, r"event\.FailedCreateService": (".*name: Required value.*", ""),
        r"event\.SuccessfulCreateService": ("", ANY)}),
}

# Explained in docs/differences.md, and not to be seen in a scenario: what takes longer, or needs a kubelet.
ELSEWHERE = {
    "A node that falls silent": "src/core/gang_test.cc",
    "A pause between restarts": "src/core/restart_policy_test.cc",
    "Jobs that compete for places": "src/backend/cluster/gangs_test.cc",
    "A pod with sidecars": "src/backend/cluster/pod_test.cc",
    "restartPolicy: Always and exit 0": "src/core/restart_policy_test.cc",
}


@contextlib.contextmanager
def operators(cluster, domain=""):
    variables = {"CUSTOM_CLUSTER_DOMAIN": domain}
    with operator(cluster, "--namespace=ours", variables=variables), \
            go_operator(cluster, own_crd=False, variables=variables, namespace="theirs", controller_threads=10,
                        kube_api_qps=1000, kube_api_burst=2000):
        yield


class Runner:
    """Runs scenarios beside each other: to the end, or to where they yield, or one step further."""

    def __init__(self, pairs):
        self.pairs, self.steps, self.failures = pairs, {}, {}

    def run(self, deed):
        """Does `deed` for every scenario that has not failed yet."""
        def attempt(name):
            try:
                deed(name)
            except Exception as error:  # told by the test of that name
                self.failures[name] = error
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            list(pool.map(attempt, [name for name in self.pairs if name not in self.failures]))

    def begin(self, name):
        steps = SCENARIOS[name](self.pairs[name])
        if inspect.isgenerator(steps):
            self.steps[name] = steps
            next(steps)

    def go_on(self, name):
        if name in self.steps:
            next(self.steps[name], None)

    def finish(self, name):
        self.pairs[name].finish()


@pytest.fixture(scope="module")
def results(request):
    """All scenarios that are asked for, run."""
    chosen = [item.callspec.params["name"] for item in request.session.items if item.originalname == "test_same"]
    with Cluster.up() as cluster, contextlib.ExitStack() as closing:
        install_crd(cluster)
        cluster.restart("controller-manager")  # or its garbage collector learns of TFJobs half a minute later
        cluster.api.post("/api/v1/nodes", {"metadata": {"name": "played"}})
        worlds = [closing.enter_context(contextlib.closing(World(cluster, name))) for name in ("theirs", "ours")]
        runner = Runner({name: Pair(name, *worlds, ALLOWED) for name in SCENARIOS if name in chosen})
        with operators(cluster):
            runner.run(runner.begin)
            runner.run(runner.finish)
        runner.run(runner.go_on)
        with operators(cluster, "cluster.local"):
            runner.run(runner.go_on)
            runner.run(runner.finish)
        yield runner


@pytest.mark.parametrize("name", SCENARIOS)
def test_same(results, name):
    if name in results.failures:
        raise results.failures[name]


def test_every_difference_was_seen(results):
    if len(results.pairs) < len(SCENARIOS):
        pytest.skip("not all scenarios were asked for")
    seen = set().union(*(pair.shown for pair in results.pairs.values()))
    by_chance = {"stale", "any type is named"}  # theirs names the first of a map, in no order
    assert ALLOWED.keys() - seen - by_chance == set()


def sections():
    """Of the part that speaks of operators: heading to text."""
    text = (ROOT / "docs/differences.md").read_text().split("\n## On one machine")[0]
    return dict(re.findall(r"^### (.+)\n\n((?:(?!#).*\n)+)", text, re.M))


def test_every_difference_is_explained_and_every_explanation_is_shown():
    assert sections().keys() == {allowed.heading for allowed in ALLOWED.values()} | ELSEWHERE.keys()


def test_an_explanation_says_what_either_does_and_whether_theirs_can_be_had():
    for heading, text in sections().items():
        text = " ".join(text.split())
        assert all(word in text for word in ("Theirs ", "urs ", "Theirs back: ")), heading
