"""The objects of one kind in one namespace as a watch tells them, and all that were ever there, by the job they belong to.

A thread of its own follows the watch; `changed`, which several mirrors may share, is notified of every word. Reading is by
`with changed:`.
"""

import collections
import threading

from cluster import ApiError


class Mirror:
    def __init__(self, api, path, changed, job_of):
        self.api, self.path, self.changed, self.job_of = api, path, changed, job_of
        self.objects = {}  # by name
        self.of_job = collections.defaultdict(dict)  # job to those that are there, by name
        self.made = collections.defaultdict(dict)  # job to all there ever were, by UID, as they were first seen
        self.changes = collections.Counter()  # by job
        self.version, self.stopped = None, threading.Event()
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def stop(self):
        """The thread ends with its connection: at the latest when the server does."""
        self.stopped.set()

    def follow(self):
        while not self.stopped.is_set():
            try:
                if self.version is None:
                    self.list()
                for event in self.api.watch(f"{self.path}?resourceVersion={self.version}&allowWatchBookmarks=true"):
                    self.take(event)
            except (OSError, ValueError, ApiError):
                self.stopped.wait(0.1)

    def list(self):
        items = self.api.get(self.path)
        with self.changed:
            for name in self.objects.keys() - {item["metadata"]["name"] for item in items["items"]}:
                self.drop(self.objects[name])
            for item in items["items"]:
                self.keep(item)
            self.version = items["metadata"]["resourceVersion"]
            self.changed.notify_all()

    def keep(self, item):
        job, name = self.job_of(item), item["metadata"]["name"]
        self.objects[name] = self.of_job[job][name] = item
        self.made[job].setdefault(item["metadata"]["uid"], item)
        self.changes[job] += 1

    def drop(self, item):
        job, name = self.job_of(item), item["metadata"]["name"]
        self.objects.pop(name, None)
        self.of_job[job].pop(name, None)
        self.changes[job] += 1

    def take(self, event):
        item = event["object"]
        with self.changed:
            if event["type"] == "ERROR":  # too old a version: begin again
                self.version = None
                raise ValueError(item.get("message"))
            self.version = item["metadata"]["resourceVersion"]
            if event["type"] == "DELETED":
                self.drop(item)
            elif event["type"] != "BOOKMARK":
                self.keep(item)
            self.changed.notify_all()
