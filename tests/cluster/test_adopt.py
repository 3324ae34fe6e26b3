"""`adopt`: the live TFJobs of the real training-operator, installed by its own manifests, go over to ours on a real node.

Every replica stays until its job may end: a folder of the node is mounted into each, and once a file of the job's name lies
there, they do what it says.
"""

import json
import os
import pathlib

import pytest

from cluster import ApiError, holds
from docs import run_page
from kubeflow_install import DEPLOYMENT, WEBHOOKS, kubeflow
from trainyard_operator import remove_deployed
from yard import BINARY, Yard

WHERE = "adopted"
STAY = 'while true; do test -e /yard/$JOB && . /yard/$JOB; sleep 0.3; done'
# Fails once, and stays when a kubelet has started it again.
STAY_AFTER_A_FAILURE = f'test -e /yard/failed-$JOB || {{ touch /yard/failed-$JOB; exit 1; }}; {STAY}'

# Worker 1 is killed the first time; both are done when it is there again.
KILLED_ONCE = """
case $HOSTNAME in *-1) test -e /yard/once && touch /yard/twice; touch /yard/once;; esac
test -e /yard/twice && exit 0
case $HOSTNAME in *-1) exit 137;; esac
"""

SOAK = os.environ.get("SOAK") == "1"


def job(name, folder, policy="OnFailure", script=STAY, run_policy=None, more=None, **counts):
    """A TFJob; `counts` are its replicas: Worker=2."""
    container = {"name": "tensorflow", "image": "trainyard.test/small:1", "command": ["sh", "-c", script],
                 "env": [{"name": "JOB", "value": name}], "volumeMounts": [{"name": "yard", "mountPath": "/yard"}]}
    pod = {"containers": [container], "terminationGracePeriodSeconds": 0,
           "volumes": [{"name": "yard", "hostPath": {"path": str(folder)}}]}
    replicas = {role: {"replicas": count, "restartPolicy": policy, "template": {"spec": pod}} for role, count in counts.items()}
    return {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name, "namespace": WHERE},
            "spec": {"runPolicy": run_policy or {}, "tfReplicaSpecs": replicas, **(more or {})}}


# Name: how it is made, what it is told when it may end, and what is true of it then.
LIVE = {
    "alone": (dict(Worker=1), "exit 0", "Succeeded"),
    "never": (dict(Worker=1, policy="Never"), "exit 0", "Succeeded"),
    "always": (dict(Worker=1, PS=1, policy="Always", run_policy={"activeDeadlineSeconds": 3600}), "exit 1", "Running"),
    "two": (dict(Worker=2), "exit 0", "Succeeded"),
    "first": (dict(Worker=2, policy="Never"), "case $HOSTNAME in *-0) exit 0; esac", "Succeeded"),
    "all": (dict(Worker=2, more={"successPolicy": "AllWorkers"}), "exit 0", "Succeeded"),
    "ps": (dict(Chief=1, PS=1, Worker=1), "case $HOSTNAME in *chief-0) exit 0; esac", "Succeeded"),
    "master": (dict(Master=1, Worker=1), "exit 0", "Succeeded"),
    "evaluator": (dict(Chief=1, Evaluator=1), "exit 0", "Succeeded"),
    "dynamic": (dict(Worker=2, PS=1, policy="Never", more={"enableDynamicWorker": True}),
                "case $HOSTNAME in *worker-1) exit 1; esac; sleep 2; exit 0", "Succeeded"),
    "restarted": (dict(Worker=1, script=STAY_AFTER_A_FAILURE), "exit 0", "Succeeded"),
    "limited": (dict(Worker=1, script=STAY_AFTER_A_FAILURE, run_policy={"backoffLimit": 2}), "exit 1", "Failed"),
    "limited-by-us": (dict(Worker=1, policy="ExitCode", run_policy={"backoffLimit": 1}), "exit 137", "Failed"),
    "killed": (dict(Worker=2, policy="ExitCode"), KILLED_ONCE, "Succeeded"),
    "wrong": (dict(Worker=1, policy="ExitCode"), "exit 1", "Failed"),
    "fails": (dict(Worker=1, policy="Never"), "exit 1", "Failed"),
    "clean-all": (dict(Worker=1, PS=1, run_policy={"cleanPodPolicy": "All"}), "exit 0", "Succeeded"),
    "clean-running": (dict(Worker=1, PS=1, run_policy={"cleanPodPolicy": "Running"}),
                      "case $HOSTNAME in *worker-0) exit 0; esac", "Succeeded"),
    "short": (dict(Worker=1, run_policy={"ttlSecondsAfterFinished": 1}), "exit 0", None),
    "suspended": (dict(Worker=1, run_policy={"suspend": True}), "exit 0", "Succeeded"),
}
RUN_AGAIN = {"limited-by-us", "killed", "suspended"}  # by ours, in new pods
LEFT = {"clean-all": set(), "clean-running": {"clean-running-worker-0"}, "short": set()}  # of all others every pod stays


class Jobs:
    """The jobs of the test, and the folder by which they are told to end."""

    def __init__(self, cluster, folder):
        self.cluster, self.folder = cluster, folder

    def create(self, name, **options):
        self.cluster.api.post(f"/apis/kubeflow.org/v1/namespaces/{WHERE}/tfjobs", job(name, self.folder, **options))

    def end(self, name, words):
        part = self.folder / f".{name}"
        part.write_text(words)
        part.rename(self.folder / name)

    def status(self, name):
        try:
            return self.cluster.api.get(f"/apis/kubeflow.org/v1/namespaces/{WHERE}/tfjobs/{name}").get("status", {})
        except ApiError as error:
            assert error.status == 404
            return None

    def state(self, name):
        """The last condition that is true; nothing once the job is gone."""
        status = self.status(name)
        return None if status is None else [c["type"] for c in status.get("conditions", []) if c["status"] == "True"][-1:]

    def pods(self):
        return {pod["metadata"]["name"]: pod for pod in self.cluster.pods(WHERE)}

    def lives(self):
        """By pod its UID, and its container with the number of times it was restarted."""
        def life(pod):
            [container] = pod["status"]["containerStatuses"]
            return pod["metadata"]["uid"], container["containerID"], container["restartCount"]
        return {name: life(pod) for name, pod in self.pods().items()}

    def settled(self):
        """All run but the one that has ended, and two have failed and were restarted in place."""
        of = [pod["status"]["containerStatuses"][0] for name, pod in self.pods().items() if name != "ended-worker-0"]
        return all("running" in one["state"] for one in of) and sum(one["restartCount"] for one in of) == 2

    def wait_for(self, expected, timeout=90):
        """Until every job is in the state that is said of it."""
        def wrong():
            return {name: found for name, want in expected.items() if (found := self.state(name)) != (want and [want])}
        try:
            self.cluster.wait(lambda: not wrong(), "the jobs end", timeout)
        except AssertionError:
            raise AssertionError(f"{wrong()}\n{json.dumps({n: self.status(n) for n in wrong()}, indent=1)}") from None


@pytest.fixture(scope="module")
def yard(with_image, tmp_path_factory):
    yard = Yard(tmp_path_factory.mktemp("adopt") / "home")
    yard.env |= {"KUBECONFIG": str(with_image.kubeconfig), "TRAINYARD_ON": "kubernetes"}
    yield yard
    yard.close()


@pytest.fixture(scope="module")
def theirs(with_image, tmp_path_factory):
    """Kubeflow's own installation, with jobs of all kinds that run, and one that has ended."""
    with_image.kubectl("delete", "crd", "tfjobs.kubeflow.org", "--ignore-not-found")  # another test's
    folder = with_image.dir / "adopted"
    folder.mkdir()
    with kubeflow(with_image, tmp_path_factory.mktemp("kubeflow")):
        with_image.kubectl("create", "namespace", WHERE)
        with_image.wait(lambda: with_image.api.get(f"/api/v1/namespaces/{WHERE}/serviceaccounts/default"), "a service account")
        jobs = Jobs(with_image, folder)
        jobs.end("ended", "exit 0")
        made = {name: {"Worker": 1} for name in (["ended", "one", "other"] if SOAK else ["ended"])} | {name: options for name, (options, _, _) in LIVE.items()}
        for name, options in made.items():
            jobs.create(name, **options)
        jobs.wait_for(dict.fromkeys(made, "Running") | {"ended": "Succeeded", "suspended": "Suspended"})
        with_image.wait(jobs.settled, "all run")
        yield jobs
        remove_deployed(with_image)
        with_image.kubectl("delete", "namespace", WHERE, "--wait=false")


@pytest.mark.skipif(not SOAK, reason="a minute more; the gate has the way there, SOAK=1 also the way back")
def test_there_and_back_again_as_the_manual_says(with_image, theirs, yard):
    before = theirs.lives()
    programs = pathlib.Path(with_image.state.program("kubectl")).parent
    path = f"{BINARY.parent}:{programs}:{os.environ['PATH']}"
    assert run_page("from-kubeflow.md", yard.home, {**yard.env, "PATH": path}) == 6
    assert theirs.lives() == before
    assert not any(pod["metadata"].get("finalizers") for pod in theirs.pods().values())
    theirs.end("one", "exit 0")
    theirs.wait_for({"one": "Succeeded"})
    assert "verdict" not in theirs.status("one"), "it did not end under theirs"


@pytest.mark.skipif(not SOAK, reason="a minute more")
def test_it_may_stay_for_its_other_kinds(with_image, theirs, yard):
    before = theirs.lives()
    yard.run("adopt", "--yes", "--leave-others")
    [pod] = with_image.pods("kubeflow")
    assert holds(pod, "Ready") and "--enable-scheme=pytorchjob" in pod["spec"]["containers"][0]["args"]
    theirs.end("other", "exit 0")
    theirs.wait_for({"other": "Succeeded"})
    assert "verdict" in theirs.status("other"), "it did not end under ours"
    yard.run("uninstall", "--keep-jobs", "--yes")
    with_image.kubectl("rollout", "undo", "deployment/training-operator", "-n", "kubeflow")
    with_image.kubectl("rollout", "status", "deployment/training-operator", "-n", "kubeflow")
    assert theirs.lives() == before


def test_live_jobs_are_taken_over_without_a_restart_and_end_right(with_image, theirs, yard):
    before = theirs.lives()
    out = yard.run("adopt", "--yes")
    assert f"take over: {len(LIVE)} live TFJobs; no pod is restarted" in out
    assert f"taken over: {len(LIVE)} live TFJobs\n" in out
    assert theirs.lives() == before
    assert with_image.api.get(DEPLOYMENT)["spec"]["replicas"] == 0
    assert not any("tfjob" in webhook["name"] for webhook in with_image.api.get(WEBHOOKS)["webhooks"])

    with_image.api.patch(f"/apis/kubeflow.org/v1/namespaces/{WHERE}/tfjobs/suspended",
                         {"spec": {"runPolicy": {"suspend": False}}}, kind="merge")
    for name, (_, words, _) in LIVE.items():
        theirs.end(name, words)
    theirs.wait_for({name: state for name, (_, _, state) in LIVE.items()})

    # What was made anew is what ours restarted by its own rules, and what had ended before did not run again.
    now, uids = theirs.lives(), {uid for uid, _, _ in before.values()}
    assert {name.rsplit("-", 2)[0] for name, (uid, _, _) in now.items() if uid not in uids} == RUN_AGAIN
    assert now["ended-worker-0"] == before["ended-worker-0"]
    assert theirs.status("killed")["restarts"] == 1 and theirs.status("limited-by-us")["restarts"] == 1
    for name, kept in LEFT.items():
        with_image.wait(lambda: {pod for pod in theirs.pods() if pod.startswith(f"{name}-")} == kept, f"the pods of {name}")

    # Nothing is held that has ended, and nothing is left once the jobs are gone.
    held = {name for name, pod in theirs.pods().items() if pod["metadata"].get("finalizers")}
    assert all(theirs.pods()[name]["status"]["phase"] == "Running" for name in held), held
    with_image.kubectl("delete", "tfjobs", "--all", "-n", WHERE)
    with_image.wait(lambda: not theirs.pods(), "the pods are gone")
    yard.run("uninstall", "--yes")
