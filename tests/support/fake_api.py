"""An API server in memory, for tests of what the command line shows and does on a cluster: no kubelet, no controllers.

    with FakeApi() as api:
        yard.env |= {"KUBECONFIG": str(api.kubeconfig(tmp_path / "config")), "TRAINYARD_ON": "kubernetes"}
        api.status_of = lambda pod: waiting("ErrImageNeverPull", "the image is not there")
        yard.run("serve", "job")

It stores any object under its path, answers list, watch, create, merge patch, apply, replace and delete, and removes what
a deleted object owned. A Deployment or a Job gets one pod from its template. `status_of` says what a kubelet reports for a
new pod; `add_event` reports an event about an object; `denied` lists what the server forbids; `logs` holds the pods' logs.
"""

import copy
import http.server
import json
import re
import threading
import time
import urllib.parse
import uuid

# What the server knows, by API version: plural name, kind, whether it lies in a namespace.
KINDS = {
    "v1": [("pods", "Pod", True), ("services", "Service", True), ("configmaps", "ConfigMap", True), ("secrets", "Secret", True),
           ("events", "Event", True), ("serviceaccounts", "ServiceAccount", True), ("namespaces", "Namespace", False),
           ("persistentvolumeclaims", "PersistentVolumeClaim", True), ("nodes", "Node", False),
           ("persistentvolumes", "PersistentVolume", False)],
    "apps/v1": [("deployments", "Deployment", True)],
    "batch/v1": [("jobs", "Job", True)],
    "rbac.authorization.k8s.io/v1": [("roles", "Role", True), ("rolebindings", "RoleBinding", True), ("clusterroles", "ClusterRole", False),
                                     ("clusterrolebindings", "ClusterRoleBinding", False)],
    "apiextensions.k8s.io/v1": [("customresourcedefinitions", "CustomResourceDefinition", False)],
    "networking.k8s.io/v1": [("ingresses", "Ingress", True)],
    "storage.k8s.io/v1": [("storageclasses", "StorageClass", False)],
    "kubeflow.org/v1": [("tfjobs", "TFJob", True)],
    "kueue.x-k8s.io/v1beta1": [("workloads", "Workload", True)],
}


def waiting(reason, message="", container="server"):
    """The status of a pod whose container waits for something that does not come."""
    return {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}],
            "containerStatuses": [{"name": container, "state": {"waiting": {"reason": reason, "message": message}}}]}


def running(container="server"):
    return {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": container, "ready": True, "state": {"running": {"startedAt": now()}}}]}


def ended(code, container="tensorflow"):
    return {"phase": "Failed" if code else "Succeeded", "containerStatuses": [
        {"name": container, "state": {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed", "startedAt": now(),
                                                     "finishedAt": now()}}}]}


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def merged(into, patch):
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    out = dict(into) if isinstance(into, dict) else {}
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = merged(out.get(key), value)
    return out


def selected(item, query):
    labels = item["metadata"].get("labels", {})
    for part in filter(None, query.get("labelSelector", "").split(",")):
        key, _, value = part.partition("=")
        if key not in labels or ("=" in part and labels[key] != value.lstrip("=")):
            return False
    for part in filter(None, query.get("fieldSelector", "").split(",")):
        key, _, value = part.partition("=")
        found = item
        for step in key.split("."):
            found = found.get(step, {}) if isinstance(found, dict) else {}
        if found != value:
            return False
    return True


class Refusal(Exception):
    def __init__(self, code, reason, message):
        super().__init__(message)
        self.code, self.body = code, {"kind": "Status", "status": "Failure", "reason": reason, "message": message, "code": code}


class FakeApi:
    def __init__(self, tfjobs=True):
        self.lock = threading.Condition()
        self.objects = {}  # by path
        self.changes = []  # (version, type, path, object), for watches
        self.version = 1000
        self.requests = []  # (method, path)
        self.denied = set()  # "create configmaps", "get configmaps"
        self.denied_to_accounts = set()  # the same, for service accounts
        self.kinds = {version: list(kinds) for version, kinds in KINDS.items() if tfjobs or version != "kubeflow.org/v1"}
        self.logs = {}
        self.log_bytes = 0  # of logs, sent so far
        self.status_of = lambda pod: running()
        self.pods_rejected = ""  # why a Deployment gets no pod
        self.delay = 0.0  # seconds until a write is answered
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def serve(self):
                length = int(self.headers.get("Content-Length") or 0)
                api.answer(self, self.rfile.read(length))

            do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = serve

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

        self.server = Server(("127.0.0.1", 0), Handler)
        self.closing = False

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_):
        with self.lock:
            self.closing = True
            self.lock.notify_all()
        self.server.shutdown()
        self.server.server_close()

    def kubeconfig(self, path, namespace="default"):
        path.write_text(json.dumps({
            "current-context": "fake", "contexts": [{"name": "fake", "context": {"cluster": "c", "user": "u", "namespace": namespace}}],
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{self.server.server_port}"}}],
            "users": [{"name": "u", "user": {}}]}))
        return path

    # -- for tests

    def put(self, api_version, resource, item, namespace="default"):
        """Stores an object as if somebody had made it."""
        root = "/api/v1" if api_version == "v1" else f"/apis/{api_version}"
        with self.lock:
            return self.create(f"{root}/namespaces/{namespace}/{resource}", {"apiVersion": api_version, **item})

    def get(self, resource, name, namespace="default"):
        with self.lock:
            return next((item for path, item in self.objects.items() if path.endswith(f"/namespaces/{namespace}/{resource}/{name}")), None)

    def names(self):
        """What there is: "pods/a"."""
        with self.lock:
            return sorted("/".join(path.split("/")[-2:]) for path in self.objects if "/events/" not in path)

    def change(self, resource, name, patch, namespace="default"):
        with self.lock:
            path = next(path for path in self.objects if path.endswith(f"/namespaces/{namespace}/{resource}/{name}"))
            return self.store(path, merged(self.objects[path], patch))

    def add_event(self, item, reason, message, kind="Warning", count=1):
        about = item["metadata"]
        self.put("v1", "events", {
            "metadata": {"name": f"{about['name']}.{self.version:016x}"}, "type": kind, "reason": reason, "message": message,
            "count": count, "lastTimestamp": now(),
            "involvedObject": {"kind": item["kind"], "name": about["name"], "uid": about["uid"]}}, about["namespace"])

    # -- the store; the lock is held

    def store(self, path, item, what="MODIFIED"):
        if "deletionTimestamp" in item["metadata"] and not item["metadata"].get("finalizers"):
            return self.remove(path)
        self.version += 1
        item["metadata"]["resourceVersion"] = str(self.version)
        self.objects[path] = item
        self.changes.append((self.version, what, path, copy.deepcopy(item)))
        self.lock.notify_all()
        return item

    def create(self, collection, item, manager=""):
        item = copy.deepcopy(item)
        meta = item.setdefault("metadata", {})
        if "generateName" in meta and "name" not in meta:
            meta["name"] = meta["generateName"] + uuid.uuid4().hex[:5]
        path = f"{collection}/{meta['name']}"
        if path in self.objects:
            raise Refusal(409, "AlreadyExists", f"{meta['name']} already exists")
        parts = collection.split("/")
        if "namespaces" in parts[:-1]:
            meta["namespace"] = parts[parts.index("namespaces") + 1]
        meta |= {"uid": str(uuid.uuid4()), "creationTimestamp": now(), "generation": 1}
        if manager:
            meta["managedFields"] = [{"manager": manager}]
        resource = parts[-1]
        item.setdefault("kind", next((kind for kinds in self.kinds.values() for name, kind, _ in kinds if name == resource), ""))
        if resource == "pods":
            item["status"] = item.get("status") or self.status_of(item)
        self.store(path, item, "ADDED")
        if resource in ("deployments", "jobs") and self.pods_rejected:
            condition = {"type": "ReplicaFailure", "status": "True", "message": self.pods_rejected}
            self.store(path, merged(item, {"status": {"conditions": [condition]}}))
        elif resource in ("deployments", "jobs"):
            self.start(item, resource)
        if resource == "customresourcedefinitions":
            self.store(path, merged(item, {"status": {"conditions": [{"type": "Established", "status": "True"}]}}))
        return item

    def start(self, item, resource):
        """The pod of a Deployment or a Job."""
        meta, template = item["metadata"], copy.deepcopy(item["spec"]["template"])
        labels = dict(template.get("metadata", {}).get("labels", {}))
        if resource == "jobs":
            labels |= {"job-name": meta["name"], "batch.kubernetes.io/job-name": meta["name"]}
        owner = {"apiVersion": item["apiVersion"], "kind": item["kind"], "name": meta["name"], "uid": meta["uid"], "controller": True}
        self.create(f"/api/v1/namespaces/{meta['namespace']}/pods", {
            "apiVersion": "v1", "kind": "Pod", "spec": template["spec"],
            "metadata": {"name": f"{meta['name']}-{uuid.uuid4().hex[:5]}", "labels": labels, "ownerReferences": [owner]}})

    def remove(self, path):
        item = self.objects.pop(path, None)
        if item is None:
            return {}
        self.version += 1
        item["metadata"]["resourceVersion"] = str(self.version)
        self.changes.append((self.version, "DELETED", path, item))
        self.lock.notify_all()
        uid = item["metadata"]["uid"]
        for other in [path for path, owned in self.objects.items()
                      if any(owner["uid"] == uid for owner in owned["metadata"].get("ownerReferences", []))]:
            if other not in self.objects:
                continue
            owned = self.objects[other]
            if owned["metadata"].get("finalizers"):
                self.store(other, merged(owned, {"metadata": {"deletionTimestamp": now()}}))
            else:
                self.remove(other)
        return item

    # -- requests

    def answer(self, handler, body):
        url = urllib.parse.urlsplit(handler.path)
        path, query = urllib.parse.unquote(url.path), dict(urllib.parse.parse_qsl(url.query))
        with self.lock:
            self.requests.append((handler.command, path))
        if self.delay and handler.command != "GET":
            time.sleep(self.delay)
        try:
            if handler.command == "GET" and query.get("watch"):
                return self.watch(handler, path, query)
            with self.lock:
                if handler.command == "GET" and path.endswith("/log"):
                    lines = self.logs.get(path.split("/")[-2], "").splitlines(keepends=True)
                    tail = lines[max(0, len(lines) - int(query.get("tailLines", len(lines)))):]
                    self.log_bytes += len("".join(tail))
                    return self.reply(handler, 200, "".join(tail).encode(), "text/plain")
                code, answer = self.serve(handler.command, path, query, json.loads(body) if body else None)
        except Refusal as refusal:
            code, answer = refusal.code, refusal.body
        self.reply(handler, code, json.dumps(answer).encode())

    def reply(self, handler, code, body, kind="application/json"):
        try:
            handler.send_response(code)
            handler.send_header("Content-Type", kind)
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            handler.close_connection = True

    def resource_of(self, path):
        """The collection that a path belongs to, and the name of the object, if it names one."""
        match = re.fullmatch(r"(/api/v1|/apis/[^/]+/[^/]+)((?:/namespaces/[^/]+)?/([^/]+))(?:/([^/]+))?(?:/status)?", path)
        if not match:
            raise Refusal(404, "NotFound", f"there is no {path}")
        version = match[1].removeprefix("/apis/").removeprefix("/api/")
        if not any(match[3] == name for name, _, _ in self.kinds.get(version, [])):
            raise Refusal(404, "NotFound", "the server could not find the requested resource")
        return match[1] + match[2], match[3], match[4]

    def serve(self, method, path, query, body):
        version = path.removeprefix("/apis/").removeprefix("/api/")
        if method == "GET" and version in self.kinds:
            return 200, {"kind": "APIResourceList", "resources": [{"name": name, "kind": kind, "namespaced": namespaced}
                                                                  for name, kind, namespaced in self.kinds[version]]}
        if path == "/version":
            return 200, {"gitVersion": "v1.0.0-fake"}
        if path.endswith("subjectaccessreviews"):
            if f"create {path.rsplit('/', 1)[1]}" in self.denied:
                raise Refusal(403, "Forbidden", "you may not ask that")
            wish = body["spec"]["resourceAttributes"]
            denied = self.denied if "user" not in body["spec"] else self.denied_to_accounts
            return 201, {"status": {"allowed": f"{wish['verb']} {wish['resource']}" not in denied}}
        collection, resource, name = self.resource_of(path)
        verb = {"GET": "get" if name else "list", "POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}[method]
        if f"{verb} {resource}" in self.denied:
            raise Refusal(403, "Forbidden", f'{resource} is forbidden: User "u" cannot {verb} resource "{resource}"')
        if method == "POST":
            return 201, self.create(collection, body, query.get("fieldManager", ""))
        if not name:
            return 200, self.listed(collection, resource, query)
        item = self.objects.get(f"{collection}/{name}")
        if method == "PATCH" and item is None and "force" in query:  # server-side apply
            return 201, self.create(collection, body)
        if item is None:
            raise Refusal(404, "NotFound", f'{resource} "{name}" not found')
        if method == "GET":
            return 200, item
        if method == "DELETE":
            if (body or {}).get("preconditions", {}).get("uid", item["metadata"]["uid"]) != item["metadata"]["uid"]:
                raise Refusal(409, "Conflict", "the UID in the precondition does not match")
            if item["metadata"].get("finalizers"):
                return 200, self.store(f"{collection}/{name}", merged(item, {"metadata": {"deletionTimestamp": now()}}))
            return 200, self.remove(f"{collection}/{name}")
        wanted = (body or {}).get("metadata", {}).get("resourceVersion", item["metadata"]["resourceVersion"])
        if wanted != item["metadata"]["resourceVersion"]:
            raise Refusal(409, "Conflict", "the object has been modified")
        return 200, self.store(f"{collection}/{name}", merged(item, body))

    def matching(self, collection, path):
        """Whether the path is of an object of the collection, which may span all namespaces."""
        if path.rsplit("/", 1)[0] == collection:
            return True
        root, resource = collection.rsplit("/", 1)
        return "/namespaces/" not in collection and re.fullmatch(re.escape(root) + f"/namespaces/[^/]+/{resource}/[^/]+", path)

    def listed(self, collection, resource, query):
        items = [item for path, item in sorted(self.objects.items()) if self.matching(collection, path) and selected(item, query)]
        return {"kind": "List", "metadata": {"resourceVersion": str(self.version)}, "items": items}

    def watch(self, handler, path, query):
        collection, resource, _ = self.resource_of(path)
        with self.lock:
            if f"watch {resource}" in self.denied:
                raise Refusal(403, "Forbidden", f'{resource} is forbidden: User "u" cannot watch resource "{resource}"')
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        seen = int(query.get("resourceVersion", 0))
        handler.close_connection = True
        while True:
            with self.lock:
                self.lock.wait_for(lambda: self.closing or self.version > seen, 1)
                fresh = [(what, item) for version, what, path, item in self.changes
                         if version > seen and self.matching(collection, path) and selected(item, query)]
                seen = self.version
                if self.closing:
                    return
            lines = b"".join(json.dumps({"type": what, "object": item}).encode() + b"\n" for what, item in fresh)
            try:
                if lines:
                    handler.wfile.write(f"{len(lines):x}\r\n".encode() + lines + b"\r\n")
                    handler.wfile.flush()
            except OSError:
                return
