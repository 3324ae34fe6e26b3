"""The objects of one kind in one namespace as a watch tells them, and all that were ever there.

A thread of its own follows the watch; `changed`, which several mirrors may share, is notified of every word. Reading is by
`with changed:`.
"""

import threading

from cluster import ApiError


class Mirror:
    def __init__(self, api, path, changed):
        self.api, self.path, self.changed = api, path, changed
        self.objects = {}  # by name
        self.made = {}  # UID to the object as it was first seen, in the order of that
        self.version, self.stopped = None, threading.Event()
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def named(self, name):
        return self.objects.get(name)

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
            self.objects = {}
            for item in items["items"]:
                self.keep(item)
            self.version = items["metadata"]["resourceVersion"]
            self.changed.notify_all()

    def keep(self, item):
        self.objects[item["metadata"]["name"]] = item
        self.made.setdefault(item["metadata"]["uid"], item)

    def take(self, event):
        item = event["object"]
        with self.changed:
            if event["type"] == "ERROR":  # too old a version: begin again
                self.version = None
                raise ValueError(item.get("message"))
            self.version = item["metadata"]["resourceVersion"]
            if event["type"] == "DELETED":
                self.objects.pop(item["metadata"]["name"], None)
            elif event["type"] != "BOOKMARK":
                self.keep(item)
            self.changed.notify_all()
