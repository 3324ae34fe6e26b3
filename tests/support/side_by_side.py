"""Two operators on one API server, each with a namespace of its own, and the same things done to a job of either.

A `World` is one operator's namespace: mirrors of what is in it, and a kubelet that is played. A `Pair` is one job in both
worlds. What a scenario does, it does to both; what it then waits for is that both come to the same (`same`), or that they
differ in exactly the ways that somebody wrote down (`apart`).
"""

import contextlib
import re
import threading
import time

from cluster import ApiError
from mirror import Mirror
from play_kubelet import PlayKubelet
from snapshot import belonging, differences, phase, snapshot

SECONDS = 40  # for anything to come about; a loaded machine needs a tenth of it


class World:
    def __init__(self, cluster, namespace):
        self.api, self.namespace, self.changed = cluster.api, namespace, threading.Condition()
        self.api.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
        self.tfjobs = f"/apis/kubeflow.org/v1/namespaces/{namespace}/tfjobs"
        core = f"/api/v1/namespaces/{namespace}"
        self.jobs, self.pods, self.services, self.events = self.mirrors = [
            Mirror(self.api, path, self.changed)
            for path in (self.tfjobs, f"{core}/pods", f"{core}/services", f"{core}/events")]
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

    def wait(self, predicate, what, seconds=SECONDS):
        with self.changed:
            assert self.changed.wait_for(predicate, seconds), f"{self.namespace}: not within {seconds} s: {what()}"

    def bury(self):
        """What a kubelet does for pods that were deleted: ends them, says so, and lets them go."""
        done = set()

        def due():
            return self.stopped or [pod for pod in self.pods.objects.values()
                                    if "deletionTimestamp" in pod["metadata"] and pod["spec"].get("nodeName")
                                    and pod["metadata"]["name"] not in self.lingering
                                    and pod["metadata"]["uid"] not in done]
        while True:
            with self.changed:
                self.changed.wait_for(due)
                if self.stopped:
                    return
                pods = due()
            for pod in pods:
                done.add(pod["metadata"]["uid"])
                with contextlib.suppress(ApiError):  # gone already
                    if phase(pod).startswith(("Running", "Pending")):
                        self.kubelet.ended(pod["metadata"]["name"], 143)
                    self.kubelet.gone(pod["metadata"]["name"], pod["metadata"]["uid"])


def condition(name):
    """A predicate on a snapshot: that this condition is true; all of them if there are several."""
    return lambda seen: set(name.split()) <= set(seen.get("conditions", "").split())


def matches(pattern, text):
    return re.fullmatch(pattern, text, re.S) is not None


class Pair:
    """One job in both worlds. `allowed` are the differences there may be, by key."""

    def __init__(self, name, theirs, ours, allowed):
        self.name, self.theirs, self.ours = name, theirs, ours
        self.worlds, self.allowed = (theirs, ours), allowed
        self.shown = set()  # keys of differences that there were

    # -- looking

    def look(self, world):
        with world.changed:
            return snapshot(world, self.name)

    def pods(self, world):
        with world.changed:
            return {name.removeprefix(self.name + "-"): pod for name, pod in belonging(world.pods, self.name).items()}

    def differences(self):
        """What differs and may not always differ."""
        out = differences(self.look(self.theirs), self.look(self.ours))
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
            world.wait(lambda: predicate(snapshot(world, self.name)), lambda: f"{self.name}: {self.look(world)}")

    def until_pods(self, *names, worlds=None):
        """Until these pods are there and wait to be started."""
        for world in worlds or self.worlds:
            def there():
                return {name for name in names
                        if (pod := world.pods.named(f"{self.name}-{name}")) and phase(pod) == "Pending"} == set(names)
            world.wait(there, lambda: f"{self.name}: pods {names}: {self.look(world)['pods']}")

    def same(self, predicate=lambda seen: True, worlds=None):
        """Until both are so, and the same."""
        self.until(predicate, worlds)
        self.settle(self.differences, lambda left: not left)

    def apart(self, key, theirs=lambda seen: True, ours=lambda seen: True):
        """Until they differ as the table says under this key, and in nothing else."""
        self.until(theirs, [self.theirs])
        self.until(ours, [self.ours])
        expected = self.allowed[key].shows
        self.shown.add(key)

        def explained(left):
            by_paths = {paths: [path for path in left if matches(paths, path)] for paths in expected}
            covered = {path for paths in by_paths.values() for path in paths}
            return covered == left.keys() and all(by_paths.values()) and all(
                matches(expected[paths][0], left[path][0]) and matches(expected[paths][1], left[path][1])
                for paths, found in by_paths.items() for path in found)
        self.settle(self.differences, explained)

    def settle(self, ask, good, seconds=SECONDS):
        deadline = time.monotonic() + seconds
        while not good(left := ask()):
            if time.monotonic() > deadline:
                text = "\n".join(f"{path}\n    theirs: {t!r}\n    ours:   {o!r}" for path, (t, o) in left.items())
                raise AssertionError(f"{self.name}: differences that nobody allowed, or not those that were expected:\n{text}")
            time.sleep(0.1)

    # -- doing

    def create(self, spec, **metadata):
        self.job = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": self.name, **metadata}, "spec": spec}
        for world in self.worlds:
            world.api.post(f"{world.tfjobs}?fieldValidation=Strict", self.job)

    def edit(self, spec):
        """A merge patch of the spec."""
        for world in self.worlds:
            world.api.patch(f"{world.tfjobs}/{self.name}", {"spec": spec})

    def delete_job(self):
        for world in self.worlds:
            world.api.delete(f"{world.tfjobs}/{self.name}", {"propagationPolicy": "Background"})

    def play(self, worlds, names, deed):
        for world in worlds or self.worlds:
            for name in names:
                deed(world, f"{self.name}-{name}")

    def running(self, *names, worlds=None, **more):
        def run(world, pod):
            with contextlib.suppress(ApiError):  # has its place already
                world.kubelet.place(pod)
            world.kubelet.running(pod, **more)
        self.play(worlds, names, run)

    def ended(self, *names, exit_code=0, worlds=None, **more):
        self.play(worlds, names, lambda world, pod: world.kubelet.ended(pod, exit_code, **more))

    def delete(self, *names, worlds=None, linger=False, kind="pods"):
        """As somebody with kubectl does. Who lingers goes when `gone` says so."""
        def delete(world, pod):
            if linger:
                world.lingering.add(pod)
            world.api.delete(f"{world.core}/{kind}/{pod}")
        self.play(worlds, names, delete)

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
