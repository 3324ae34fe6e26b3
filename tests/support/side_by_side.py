"""Two operators on one API server, each with a namespace of its own, and the same things done to a job of either.

A `World` is one operator's namespace: mirrors of what is in it, and a kubelet that is played. A `Pair` is one job in both
worlds. What a scenario does, it does to both; what it then waits for is that both come to the same (`same`), or that they
differ in exactly the ways that somebody wrote down (`apart`).
"""

import datetime
import re
import threading
import time

from cluster import ApiError
from mirror import Mirror
from play_kubelet import PlayKubelet
from snapshot import differences, phase, snapshot

MAY = (".*", ".*")  # may differ, and need not
SECONDS = 180  # for anything to come about; an idle machine needs a fiftieth of it


def by_label(thing):
    return thing["metadata"].get("labels", {}).get("training.kubeflow.org/job-name")


def by_subject(event):
    return event["involvedObject"]["name"] if event["involvedObject"]["kind"] == "TFJob" else None


def itself(job):
    return job["metadata"]["name"]


class World:
    def __init__(self, cluster, namespace):
        self.api, self.namespace, self.changed = cluster.api, namespace, threading.Condition()
        self.api.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
        self.tfjobs = f"/apis/kubeflow.org/v1/namespaces/{namespace}/tfjobs"
        core = f"/api/v1/namespaces/{namespace}"
        self.jobs, self.pods, self.services, self.events = self.mirrors = [
            Mirror(self.api, path, self.changed, job_of) for path, job_of in
            ((self.tfjobs, itself), (f"{core}/pods", by_label), (f"{core}/services", by_label), (f"{core}/events", by_subject))]
        self.kubelet, self.core = PlayKubelet(self.api, namespace), core
        self.lingering = set()  # names of pods that take their time to go
        self.stopped = False
        self.undertaker = threading.Thread(target=self.bury, daemon=True)
        self.undertaker.start()

    def close(self):
        for mirror in self.mirrors:
            mirror.stop()
        with self.changed:
            self.stopped = True
            self.changed.notify_all()
        self.undertaker.join()

    def changes(self, job):
        """A number that grows with every change to the job and what belongs to it."""
        return sum(mirror.changes[job] for mirror in self.mirrors)

    def wait(self, job, predicate, what, seconds=SECONDS):
        seen = -1

        def holds():
            nonlocal seen
            seen, before = self.changes(job), seen
            return seen != before and predicate()
        with self.changed:
            assert self.changed.wait_for(holds, seconds), f"{self.namespace}: not within {seconds} s: {what()}"

    def bury(self):
        """What a kubelet does for pods that were deleted: ends them, says so, and lets them go."""
        done = set()  # UIDs

        def due():
            return self.stopped or [pod for pod in self.pods.objects.values()
                                    if "deletionTimestamp" in pod["metadata"] and pod["spec"].get("nodeName")
                                    and pod["metadata"]["name"] not in self.lingering
                                    and pod["metadata"]["uid"] not in done]
        while True:
            with self.changed:
                self.changed.wait_for(due)
                pods = due()
            if self.stopped:
                return
            for pod in pods:
                name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
                try:
                    if phase(pod).startswith(("Running", "Pending")):
                        self.kubelet.ended(name, 143)
                    self.kubelet.gone(name, uid)
                except ApiError as error:
                    if error.status != 404 and not (error.status == 409 and "UID" in str(error)):
                        continue  # the pod was changed meanwhile: once more
                done.add(uid)


def condition(name):
    """A predicate on a snapshot: that this condition is true; all of them if there are several."""
    return lambda seen: set(name.split()) <= set(seen["conditions"].split())


def matches(pattern, text):
    return re.fullmatch(pattern, text, re.S) is not None


class Pair:
    """One job in both worlds. `allowed` are the differences there may be, by key."""

    def __init__(self, name, theirs, ours, allowed):
        self.name, self.theirs, self.ours = name, theirs, ours
        self.worlds, self.allowed = (theirs, ours), allowed
        self.shown = set()  # keys of differences that there were
        self.apart_in = None  # key of the difference that it came to

    # -- looking

    def look(self, world):
        with world.changed:
            return snapshot(world, self.name)

    def differences(self, events=False):
        """What differs and may not always differ."""
        out = differences(self.look(self.theirs), self.look(self.ours))
        out = {path: seen for path, seen in out.items() if events or not path.startswith("event.")}
        for key, allowed in self.allowed.items():
            for paths, values in allowed.shows.items() if allowed.always else ():
                if found := [path for path, seen in out.items() if matches(paths, path) and all(map(matches, values, seen))]:
                    self.shown.add(key)
                    for path in found:
                        del out[path]
        return out

    # -- waiting

    def until(self, predicate, worlds=None):
        """Until the snapshot of each is so: a function, or the name of a condition that is true."""
        predicate = condition(predicate) if isinstance(predicate, str) else predicate
        for world in worlds or self.worlds:
            world.wait(self.name, lambda: predicate(snapshot(world, self.name)), lambda: f"{self.name}: {self.look(world)}")

    def until_pods(self, *names, worlds=None):
        """Until these pods are there and wait to be started."""
        for world in worlds or self.worlds:
            def there():
                return {name for name in names
                        if (pod := world.pods.objects.get(f"{self.name}-{name}")) and phase(pod) == "Pending"} == set(names)
            world.wait(self.name, there, lambda: f"{self.name}: pods {names}: {self.look(world)['pods']}")

    def same(self, predicate=lambda seen: True):
        """Until both are so, and the same. Of events, which may come late, `finish` speaks."""
        self.until(predicate)
        self.settle(self.differences, self.explained)

    def apart(self, key, theirs=lambda seen: True, ours=lambda seen: True):
        """Until they differ as is allowed under this key, and in nothing else."""
        self.until(theirs, [self.theirs])
        self.until(ours, [self.ours])
        self.apart_in = key
        self.shown.add(key)
        self.settle(self.differences, self.explained)

    def together(self):
        """From here on they are the same again."""
        self.apart_in = None

    def finish(self):
        """It is still so, and the events are as they should be. An operator in Go tells them one by one, later."""
        self.settle(lambda: self.differences(events=True), lambda left: self.explained(left, events=True))

    def explained(self, left, events=False):
        expected = self.allowed[self.apart_in].shows if self.apart_in else {}
        covered = set()
        for paths, values in expected.items():
            found = [path for path in left if matches(paths, path)]
            covered.update(found)
            if not found and values != MAY and (events or not paths.startswith("event")):
                return False
            if not all(matches(value, seen) for path in found for value, seen in zip(values, left[path], strict=True)):
                return False
        return covered == left.keys()

    def settle(self, ask, good, seconds=SECONDS):
        deadline, seen = time.monotonic() + seconds, None
        while time.monotonic() < deadline:
            before, seen = seen, [world.changes(self.name) for world in self.worlds]
            if seen != before and good(left := ask()):
                return
            time.sleep(0.05)
        text = "\n".join(f"{path}\n    theirs: {t!r}\n    ours:   {o!r}" for path, (t, o) in left.items())
        raise AssertionError(f"{self.name}: {self.apart_in or 'same'} is not what is found:\n{text}")

    # -- doing

    def create(self, spec, **metadata):
        self.job = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": self.name, **metadata}, "spec": spec}
        for world in self.worlds:
            world.api.post(f"{world.tfjobs}?fieldValidation=Strict", self.job)

    def edit(self, spec):
        """A merge patch of the spec."""
        for world in self.worlds:
            world.api.patch(f"{world.tfjobs}/{self.name}", {"spec": spec})

    def deadline(self, seconds):
        """Sets activeDeadlineSeconds so that it is over in so many seconds from now."""
        for world in self.worlds:
            began = datetime.datetime.fromisoformat(world.jobs.objects[self.name]["status"]["startTime"])
            so_far = datetime.datetime.now(datetime.timezone.utc) - began
            world.api.patch(f"{world.tfjobs}/{self.name}",
                            {"spec": {"runPolicy": {"activeDeadlineSeconds": int(so_far.total_seconds()) + seconds}}})

    def delete_job(self):
        for world in self.worlds:
            world.api.delete(f"{world.tfjobs}/{self.name}", {"propagationPolicy": "Background"})

    def play(self, worlds, names, deed):
        for world in worlds or self.worlds:
            for name in names:
                deed(world, f"{self.name}-{name}")

    def running(self, *names, worlds=None, **more):
        def run(world, pod):
            if not world.pods.objects[pod]["spec"].get("nodeName"):
                world.kubelet.place(pod)
            world.kubelet.running(pod, **more)
        self.play(worlds, names, run)

    def ended(self, *names, exit_code=0, worlds=None, **more):
        self.play(worlds, names, lambda world, pod: world.kubelet.ended(pod, exit_code, **more))

    def delete(self, *names, worlds=None, linger=False, kind="pods"):
        """As somebody with kubectl does."""
        if linger:
            self.linger(*names)

        def delete(world, pod):
            world.api.delete(f"{world.core}/{kind}/{pod}")
        self.play(worlds, names, delete)

    def linger(self, *names):
        """These will take their time when somebody deletes them: until `gone`."""
        self.play(None, names, lambda world, pod: world.lingering.add(pod))

    def gone(self, *names, worlds=None):
        def gone(world, pod):
            with world.changed:
                world.lingering.discard(pod)
                world.changed.notify_all()
        self.play(worlds, names, gone)

    def to_running(self, *names, state="Running"):
        """The usual beginning: these pods are made, run, and both operators say so."""
        self.until_pods(*names)
        self.same()
        self.running(*names)
        self.same(state)
