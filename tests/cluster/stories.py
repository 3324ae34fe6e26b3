"""What the simulator's API server is compared by: every request that the operator makes, and the ways in which each can fail.

Each function is one story (conformance.py).
"""


def pod(name, **more):
    metadata = {"name": name, **{k: more.pop(k) for k in ("labels", "annotations", "finalizers", "ownerReferences", "generateName",
                                                         "namespace", "resourceVersion") if k in more}}
    if name is None:
        del metadata["name"]
    # Tokens of service accounts are not modelled.
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
            "spec": {"automountServiceAccountToken": False, "containers": [{"name": "tensorflow", "image": "image:1"}], **more}}


def service(name, ports=({"name": "tfjob-port", "port": 2222},), **more):
    metadata = {"name": name, **{k: more.pop(k) for k in ("labels", "finalizers", "ownerReferences") if k in more}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata,
            "spec": {"clusterIP": "None", "ports": list(ports), "selector": {"a": "b"}, **more}}


def job(name, workers=2, **metadata):
    return {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name, **metadata},
            "spec": {"tfReplicaSpecs": {"Worker": {"replicas": workers, "template": {"spec": {"containers": [
                {"name": "tensorflow", "image": "image:1"}]}}}}}}


def lease(name, holder, **metadata):
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name, **metadata},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": 0,
                     "renewTime": "2026-11-15T21:49:57.220145Z"}}


def owner(of, **more):
    return {"apiVersion": of["apiVersion"], "kind": of["kind"], "name": of["metadata"]["name"], "uid": of["metadata"]["uid"],
            "controller": True, "blockOwnerDeletion": True, **more}


def ended(code=0):
    """A pod's status when its container has ended, with all that a kubelet writes."""
    return {"status": {"phase": "Failed" if code else "Succeeded", "containerStatuses": [
        {"name": "tensorflow", "image": "image:1", "imageID": "", "ready": False, "restartCount": 0,
         "lastState": {}, "state": {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed",
                                                   "startedAt": "2026-11-15T21:49:57Z", "finishedAt": "2026-11-15T21:50:07Z"}}}]}}


def bind(t, name, node="node-1", **metadata):
    return t.post(t.at("pods", name, "binding"), {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, **metadata},
                                                  "target": {"apiVersion": "v1", "kind": "Node", "name": node}})


def creating(t):
    t.post(t.at("pods"), pod("a"))
    t.post(t.at("pods"), pod("a"))
    t.get(t.at("pods", "a"))
    t.get(t.at("pods", "nobody"))
    t.post(t.at("pods"), pod("with-all", labels={"a": "b"}, annotations={"x.y/z": "t"}, finalizers=["trainyard.dev/observed"],
                             restartPolicy="Never", terminationGracePeriodSeconds=5, schedulerName="volcano"))
    t.post(t.at("pods"), pod(None, generateName="gen-"))
    t.post(t.at("pods"), pod("ports", containers=[{
        "name": "tensorflow", "image": "repo:5000/x", "ports": [{"name": "p", "containerPort": 2222}], "env": [{"name": "A", "value": "b"}],
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]))
    t.post(t.at("pods"), pod("some", containers=[{"name": "c", "image": "x:latest", "resources": {"requests": {"cpu": "1"}}}]))
    t.post(t.at("pods"), {**pod("said"), "status": {"phase": "Running"}})
    t.post(t.at("pods"), {"metadata": {"name": "bare", "labels": {}, "annotations": {}},
                          "spec": {"automountServiceAccountToken": False, "containers": [{"name": "c", "image": "i", "args": []}]}})
    t.post(t.at("services"), service("a"))
    t.post(t.at("services"), service("a"))
    t.post(t.at("services"), service("ports", ports=[{"name": "a", "port": 1}, {"name": "b", "port": 2, "targetPort": "x"}]))
    t.post(t.at("services"), service("none", ports=[]))
    t.post(t.at("services"), service("ip", clusterIP=""))
    t.post(t.at("tfjobs"), job("a"))
    t.post(t.at("tfjobs"), job("a"))
    t.get(t.at("tfjobs", "a"))
    t.get(t.at("tfjobs", "nobody"))
    t.post(t.at("tfjobs"), {**job("said"), "status": {"conditions": []}})
    t.post(t.at("configmaps"), {"metadata": {"name": "code"}, "data": {"script.py": "print(1)"}})
    t.post(t.at("leases"), lease("l", "me"))


def events(t):
    about = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "a", "namespace": t.ns, "uid": "0"}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "a.1"}, "involvedObject": about, "type": "Normal",
             "reason": "SuccessfulCreatePod", "message": "Created pod: a", "count": 1, "source": {"component": "tfjob-controller"},
             "firstTimestamp": "2026-11-15T21:49:57Z", "lastTimestamp": "2026-11-15T21:49:57Z"}
    t.post(t.at("events"), event)
    t.post(t.at("events"), event)
    t.post(t.at("events"), {**event, "metadata": {"generateName": "gen-"}})
    t.post(t.at("events"), {**event, "metadata": {"name": "b.1"}, "involvedObject": {**about, "namespace": "elsewhere"}})
    t.post(t.at("events"), {**event, "metadata": {"name": "c.1"}, "involvedObject": {}})
    t.merge(t.at("events", "a.1"), {"count": 2})


def trying_out(t):
    t.post(t.at("pods", dryRun="All"), pod("a"))
    t.get(t.at("pods", "a"))
    t.post(t.at("pods"), pod("a"))
    t.post(t.at("pods", dryRun="All"), pod("a"))
    t.post(t.at("pods", dryRun="All"), pod("b", restartPolicy="Sometimes"))
    t.post(t.at("pods", dryRun="Some"), pod("b"))
    t.merge(t.at("pods", "a", dryRun="All"), {"metadata": {"labels": {"x": "y"}}})
    t.get(t.at("pods", "a"))
    t.delete(t.at("pods", "a", dryRun="All"))
    t.get(t.at("pods", "a"))


def refusing(t):
    bad = [pod("Bad_Name"), pod("x" * 254), pod(None), pod("-a"), pod("a", labels={"a": "not valid!"}), pod("a", labels={"a": "x" * 64}),
           pod("a", labels={"": "b"}), pod("a", labels={"a/b/c": "d"}), pod("a", annotations={"a b": "c"}), pod("a", finalizers=["not valid!"]),
           pod("a", containers=[]), pod("a", containers=[{"name": "c"}]), pod("a", containers=[{"image": "i"}]),
           pod("a", containers=[{"name": "C_", "image": "i"}]), pod("a", containers=[{"name": "c", "image": "i"}] * 2),
           pod("a", restartPolicy="ExitCode"), pod("a", containers=[{"name": "c", "image": "i", "ports": [{"containerPort": 70000}]}]),
           pod("a", containers=[{"name": "c", "image": "i", "ports": [{"name": "port-name-too-long", "containerPort": 1}]}]),
           pod("a", containers=[{"name": "c", "image": "i", "ports": [{"name": "p", "containerPort": 1}, {"name": "p", "containerPort": 2}]}]),
           pod("a", ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "", "uid": ""}]),
           pod("a", namespace="elsewhere"), pod("a", resourceVersion="1")]
    for each in bad:
        t.post(t.at("pods"), each)
    for each in [service("1a"), service("a" * 64), service("a", ports=[{"port": 1}, {"port": 2}]), service("a", ports=[{"name": "a", "port": 0}]),
                 service("a", ports=[{"name": "a", "port": 1}, {"name": "a", "port": 2}]),
                 service("a", ports=[{"name": "a", "port": 1}, {"name": "b", "port": 1}]), service("a", ports=[], clusterIP=""),
                 service("a", selector={"a": "x" * 64}), service("a", ports=[{"name": "A_", "port": 1}])]:
        t.post(t.at("services"), each)
    t.post(t.at("tfjobs"), job("Bad_Name"))
    t.post(t.at("tfjobs"), job("a", labels={"a": "not valid!"}))
    t.post(t.at("tfjobs"), {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "a"}, "spec": {}})
    t.post(t.at("leases"), {**lease("l", "me"), "spec": {"leaseDurationSeconds": 0}})
    t.post("/api/v1/namespaces/there-is-no-such/pods", pod("a"))
    t.post("/apis/kubeflow.org/v1/namespaces/there-is-no-such/tfjobs", job("a"))
    t.get("/api/v1/namespaces/there-is-no-such/pods")
    t.get("/apis/scheduling.volcano.sh/v1beta1/podgroups")
    t.get("/apis/kubeflow.org/v1/namespaces/x/nojobs")


def versions(t):
    made = t.post(t.at("tfjobs"), job("a"))
    before = made["metadata"]["resourceVersion"]
    path, status = t.at("tfjobs", "a"), t.at("tfjobs", "a", "status")
    t.merge(status, {"metadata": {"resourceVersion": before}, "status": {"conditions": [{"type": "Created", "status": "True"}]}})
    t.merge(status, {"metadata": {"resourceVersion": before}, "status": {"startTime": "2026-11-15T21:49:57Z"}})  # conflict
    t.merge(status, {"status": {"startTime": "2026-11-15T21:49:57Z"}})  # takes what is there
    t.merge(status, {"status": {"startTime": "2026-11-15T21:49:57Z"}})  # changes nothing
    t.merge(status, {"status": {"startTime": None}})
    t.merge(status, {"spec": {"tfReplicaSpecs": {"Worker": {"replicas": 9}}}})
    t.merge(path, {"status": {"ignored": "here"}, "metadata": {"labels": {"kept": "here"}}})
    t.merge(path, {"spec": {"tfReplicaSpecs": {"Worker": {"replicas": 3}}}})  # a new generation
    t.merge(path, {"metadata": {"generation": 77}})
    t.merge(path, {"metadata": {"labels": {"kept": None}}})
    t.merge(path, {"metadata": {"resourceVersion": before}, "spec": {"runPolicy": {"suspend": True}}})  # conflict
    t.merge(path, {"spec": {"tfReplicaSpecs": None}})  # invalid
    t.merge(path, {"metadata": {"uid": "00000000-0000-4000-8000-999999999999"}})
    t.merge(status, {"metadata": {"uid": "00000000-0000-4000-8000-999999999999"}, "status": {"x": "y"}})
    t.merge(t.at("tfjobs", "nobody", "status"), {"status": {}})
    t.strategic(path, {"metadata": {"labels": {"a": "b"}}})  # not for custom resources
    now = t.get(path)
    t.put(path, {**now, "spec": {**now["spec"], "successPolicy": "AllWorkers"}})
    t.put(path, now)  # conflict
    t.put(path, {**now, "metadata": {"name": "a"}})  # no version
    t.put(status, {**t.get(path), "status": {"attempt": 1}, "spec": {}})
    t.put(path, {**t.get(path), "metadata": {**now["metadata"], "name": "b"}})
    t.put(t.at("tfjobs", "nobody"), job("nobody", resourceVersion="1"))


def pods_change(t):
    t.post(t.at("pods"), pod("a", labels={"a": "b"}, finalizers=["trainyard.dev/observed", "other.dev/x"]))
    path, status = t.at("pods", "a"), t.at("pods", "a", "status")
    t.merge(path, {"status": {"phase": "Running"}, "metadata": {"labels": {"c": "d"}}})
    t.merge(status, {"status": {"phase": "Running"}, "spec": {"nodeName": "n"}, "metadata": {"labels": {"e": "f"}}})
    t.merge(status, {"status": {"phase": "Running", "qosClass": None}})
    t.strategic(path, {"metadata": {"labels": {"c": None, "g": "h"}}})
    uid = t.get(path)["metadata"]["uid"]
    t.strategic(path, {"metadata": {"uid": uid, "$deleteFromPrimitiveList/finalizers": ["trainyard.dev/observed"]}})
    t.strategic(path, {"metadata": {"uid": uid, "$deleteFromPrimitiveList/finalizers": ["trainyard.dev/observed"]}})  # again
    t.strategic(path, {"metadata": {"uid": "00000000-0000-4000-8000-999999999999", "$deleteFromPrimitiveList/finalizers": ["other.dev/x"]}})
    t.strategic(path, {"metadata": {"finalizers": ["third.dev/y"]}})
    t.strategic(path, {"metadata": {"$setElementOrder/finalizers": ["other.dev/x"], "$deleteFromPrimitiveList/finalizers": ["third.dev/y"]}})
    t.strategic(t.at("pods", "nobody"), {"metadata": {"labels": {"a": "b"}}})
    t.merge(path, {"metadata": {"finalizers": None}})
    t.merge(path, {"metadata": {"labels": None}})
    t.merge(path, {"metadata": {"name": "b"}})
    t.merge(path, {"metadata": {"namespace": "elsewhere"}})
    t.merge(path, {"metadata": {"labels": {"a": "not valid!"}}})
    t.merge(path, {"metadata": {"creationTimestamp": None, "deletionTimestamp": "2026-11-15T21:49:57Z"}})
    t.merge(path, {"spec": {"containers": [{"name": "tensorflow", "image": "image:2"}]}})
    t.ask("PATCH", path, {"metadata": {}}, "application/unheard-of")
    t.ask("PATCH", path, "{no json", "application/merge-patch+json")
    t.ask("POST", t.at("pods"), "{no json")
    t.post(t.at("pods"), {**service("a")})
    t.ask("POST", path, pod("a"))
    t.ask("PATCH", t.at("pods"), {}, "application/merge-patch+json")
    t.get(t.at("pods", "a", "nothing"))


def deleting(t):
    a = t.post(t.at("tfjobs"), job("a"))
    wrong, right = {"uid": "00000000-0000-4000-8000-999999999999"}, {"uid": a["metadata"]["uid"]}
    t.delete(t.at("tfjobs", "a"), {"preconditions": wrong})
    t.delete(t.at("tfjobs", "a"), {"preconditions": {**right, "resourceVersion": "1"}})
    t.delete(t.at("tfjobs", "a"), {"preconditions": right, "propagationPolicy": "Background"})
    t.delete(t.at("tfjobs", "a"), {"preconditions": right})
    t.delete(t.at("tfjobs", "a"), {"propagationPolicy": "Sideways"})
    t.post(t.at("services"), service("a"))
    t.delete(t.at("services", "a"), {"preconditions": wrong})
    t.delete(t.at("services", "a"))
    p = t.post(t.at("pods"), pod("a"))
    t.delete(t.at("pods", "a"), {"preconditions": wrong, "gracePeriodSeconds": 0})
    t.delete(t.at("pods", "a"), {"preconditions": {"uid": p["metadata"]["uid"]}})
    t.delete(t.at("pods", "a"))
    t.post(t.at("configmaps"), {"metadata": {"name": "c"}})
    t.delete(t.at("configmaps", "c"))
    t.post(t.at("leases"), lease("l", "me"))
    t.delete(t.at("leases", "l"))


def finalizers(t):
    t.post(t.at("tfjobs"), job("a", finalizers=["one.dev/x", "two.dev/y"]))
    path = t.at("tfjobs", "a")
    t.delete(path)
    t.delete(path)
    t.merge(path, {"metadata": {"finalizers": ["one.dev/x", "two.dev/y", "three.dev/z"]}})
    t.merge(path, {"metadata": {"deletionTimestamp": None}})
    t.merge(path, {"metadata": {"finalizers": ["two.dev/y"]}})
    t.merge(t.at("tfjobs", "a", "status"), {"status": {"attempt": 1}})
    t.post(t.at("tfjobs"), job("a"))  # the name is taken until it is gone
    t.merge(path, {"metadata": {"finalizers": []}})
    t.get(path)
    t.post(t.at("tfjobs"), job("a"))
    t.post(t.at("services"), service("a", finalizers=["one.dev/x"]))
    t.delete(t.at("services", "a"))
    t.strategic(t.at("services", "a"), {"metadata": {"$deleteFromPrimitiveList/finalizers": ["one.dev/x"]}})
    t.get(t.at("services", "a"))


def pods_end(t):
    hold = ["trainyard.dev/observed"]
    release = {"metadata": {"$deleteFromPrimitiveList/finalizers": hold}}
    # On no node: no grace.
    t.post(t.at("pods"), pod("waiting", finalizers=hold))
    t.delete(t.at("pods", "waiting"))
    t.delete(t.at("pods", "waiting"), {"gracePeriodSeconds": 0})
    t.strategic(t.at("pods", "waiting"), release)
    t.get(t.at("pods", "waiting"))
    # On a node: the kubelet says when.
    t.post(t.at("pods"), pod("runs", finalizers=hold))
    bind(t, "runs")
    bind(t, "runs")
    t.get(t.at("pods", "runs"))
    t.merge(t.at("pods", "runs", "status"), {"status": {"phase": "Running"}})
    t.delete(t.at("pods", "runs"))
    t.delete(t.at("pods", "runs"), {"gracePeriodSeconds": 60})
    t.delete(t.at("pods", "runs"), {"gracePeriodSeconds": 10})
    t.strategic(t.at("pods", "runs"), release)
    t.post(t.at("pods"), pod("runs"))
    t.merge(t.at("pods", "runs", "status"), ended(137))
    t.delete(t.at("pods", "runs"), {"gracePeriodSeconds": 0})
    t.get(t.at("pods", "runs"))
    # Ended, held, gone.
    t.post(t.at("pods"), pod("held", finalizers=hold, terminationGracePeriodSeconds=7))
    bind(t, "held")
    t.delete(t.at("pods", "held"))
    t.merge(t.at("pods", "held", "status"), ended(0))
    t.delete(t.at("pods", "held"), {"gracePeriodSeconds": 0})
    t.get(t.at("pods", "held"))
    t.strategic(t.at("pods", "held"), release)
    t.get(t.at("pods", "held"))
    # One that has ended has no grace.
    t.post(t.at("pods"), pod("over"))
    bind(t, "over")
    t.merge(t.at("pods", "over", "status"), ended(1))
    t.delete(t.at("pods", "over"), {"gracePeriodSeconds": 30})
    t.get(t.at("pods", "over"))
    # Forced.
    t.post(t.at("pods"), pod("forced"))
    bind(t, "forced")
    t.delete(t.at("pods", "forced"), {"gracePeriodSeconds": 0})
    t.get(t.at("pods", "forced"))
    t.post(t.at("pods"), pod("leaving", finalizers=hold))
    t.delete(t.at("pods", "leaving"))
    bind(t, "leaving")
    bind(t, "nobody")
    t.post(t.at("pods"), pod("other"))
    bind(t, "other", uid="00000000-0000-4000-8000-999999999999")


def evicting(t):
    t.post(t.at("pods"), pod("a", finalizers=["trainyard.dev/observed"]))
    bind(t, "a")
    t.merge(t.at("pods", "a", "status"), {"status": {"phase": "Running"}})
    t.post(t.at("pods", "a", "eviction"), {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}})
    t.get(t.at("pods", "a"))
    t.post(t.at("pods", "nobody", "eviction"), {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "nobody"}})


def listing(t):
    for i, labels in enumerate([{"app": "a", "tier": "x"}, {"app": "a"}, {"app": "b", "tier": "y"}, {}, {"app": ""}]):
        t.post(t.at("pods"), pod(f"p{i}", labels=labels))
    for selector in ["app=a", "app==a", "app!=a", "app", "!app", "app in (a,b)", "app notin (a, b)", "app=a,tier", "app=a,!tier",
                     "app=", "tier in (x,z),app=a", "nothing=here", "a/b/c=d"]:
        t.get(t.at("pods", labelSelector=selector))
    for selector in ["app=a=b", "app in a", "app=not valid!"]:
        t.get(t.at("pods", labelSelector=selector), words=False)
    for selector in ["metadata.name=p1", "metadata.name!=p1", "status.phase=Pending", "spec.nodeName=", "metadata.color=red", "x"]:
        t.get(t.at("pods", fieldSelector=selector))
    t.get(t.at("tfjobs", fieldSelector="metadata.name=a"))
    t.get(t.at("tfjobs"))
    t.post(t.at("tfjobs"), job("a", labels={"app": "a"}))
    t.get(t.at("tfjobs"))
    t.get(f"/apis/kubeflow.org/v1/tfjobs?fieldSelector=metadata.namespace={t.ns}")
    t.get(f"/api/v1/pods?fieldSelector=metadata.namespace={t.ns}&labelSelector=app=a")


def pages(t):
    for i in range(5):
        t.post(t.at("pods"), pod(f"p{i}", labels={"even": "yes" if i % 2 == 0 else "no"}))
    page = t.get(t.at("pods", limit=2))
    t.post(t.at("pods"), pod("p1a"))  # is not in a list that began before
    page = t.get(t.at("pods", limit=2, **{"continue": page["metadata"]["continue"]}))
    t.delete(t.at("pods", "p4"))
    t.get(t.at("pods", limit=2, **{"continue": page["metadata"]["continue"]}))
    page = t.get(t.at("pods", limit=1, labelSelector="even=yes"))
    t.get(t.at("pods", limit=500, labelSelector="even=yes", **{"continue": page["metadata"]["continue"]}))
    t.get(t.at("pods", limit=2, resourceVersion="0"))
    t.get(t.at("pods", limit=500))
    t.get(t.at("pods", resourceVersion=page["metadata"]["resourceVersion"], resourceVersionMatch="Exact"))
    t.get(t.at("pods", resourceVersion=page["metadata"]["resourceVersion"]))
    t.get(t.at("pods", resourceVersion="99999999999"))
    t.get(t.at("pods", resourceVersion="latest"))
    t.get(t.at("pods", limit=2, **{"continue": "nonsense"}), words=False)


def expiring(t):
    for i in range(4):
        t.post(t.at("pods"), pod(f"p{i}"))
    page = t.get(t.at("pods", limit=2))
    t.post(t.at("pods"), pod("p9"))
    t.delete(t.at("pods", "p2"))
    t.server.compact()
    expired = t.get(t.at("pods", limit=2, **{"continue": page["metadata"]["continue"]}))
    t.get(t.at("pods", limit=2, **{"continue": expired["metadata"]["continue"]}))
    t.get(t.at("pods", resourceVersion=page["metadata"]["resourceVersion"], resourceVersionMatch="Exact"))
    t.watch("old", t.at("pods", resourceVersion="1"))
    t.events("old")
    t.watch("odd", t.at("pods", resourceVersion="latest"))


def watching(t):
    t.post(t.at("pods"), pod("before", labels={"app": "a"}))
    page = t.get(t.at("pods"))
    version = page["metadata"]["resourceVersion"]
    t.watch("all", t.at("pods", resourceVersion=version))
    t.watch("a", t.at("pods", resourceVersion=version, labelSelector="app=a"))
    t.watch("now", t.at("pods", labelSelector="app=a"))
    t.watch("any", t.at("pods", resourceVersion="0", fieldSelector="metadata.name!=later"))
    t.post(t.at("pods"), pod("later", labels={"app": "b"}, finalizers=["trainyard.dev/observed"]))
    t.merge(t.at("pods", "later"), {"metadata": {"labels": {"app": "a"}}})  # comes into sight
    t.merge(t.at("pods", "later"), {"metadata": {"labels": {"app": "a"}}})  # changes nothing, is not told
    t.merge(t.at("pods", "later", "status"), {"status": {"phase": "Running"}})
    t.merge(t.at("pods", "later"), {"metadata": {"labels": {"app": "b"}}})  # out of sight
    t.delete(t.at("pods", "later"))
    t.strategic(t.at("pods", "later"), {"metadata": {"$deleteFromPrimitiveList/finalizers": ["trainyard.dev/observed"]}})
    t.delete(t.at("pods", "before"))
    t.post(t.at("pods"), pod("fence", labels={"app": "a"}))
    for name in ("all", "a", "now", "any"):
        t.events(name, "fence")
    # Again from the middle, as after a broken connection.
    t.watch("again", t.at("pods", resourceVersion=version, labelSelector="app=a"))
    t.events("again", "fence")


def watching_jobs(t):
    t.watch("jobs", t.at("tfjobs"))
    made = t.post(t.at("tfjobs"), job("a", finalizers=["one.dev/x"]))
    t.merge(t.at("tfjobs", "a", "status"), {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "status": {"attempt": 1}})
    t.merge(t.at("tfjobs", "a"), {"spec": {"tfReplicaSpecs": {"Worker": {"replicas": 5}}}})
    t.delete(t.at("tfjobs", "a"))
    t.merge(t.at("tfjobs", "a"), {"metadata": {"finalizers": None}})
    t.post(t.at("tfjobs"), job("a"))
    t.post(t.at("tfjobs"), job("fence"))
    t.events("jobs", "fence")
    t.watch("leases", t.at("leases"))
    l = t.post(t.at("leases"), lease("l", "me"))
    t.put(t.at("leases", "l"), {**l, "spec": {**l["spec"], "holderIdentity": "you", "leaseTransitions": 1}})
    t.post(t.at("leases"), lease("fence", "me"))
    t.events("leases", "fence")


def leases(t):
    t.get(t.at("leases", "l"))
    made = t.post(t.at("leases"), lease("l", "me"))
    t.post(t.at("leases"), lease("l", "you"))
    mine = t.put(t.at("leases", "l"), {**made, "spec": {**made["spec"], "renewTime": "2026-11-15T21:50:07.220145Z"}})
    t.put(t.at("leases", "l"), {**made, "spec": {**made["spec"], "holderIdentity": "you"}})  # conflict
    t.put(t.at("leases", "l"), {**mine, "spec": {**mine["spec"], "holderIdentity": ""}})
    t.put(t.at("leases", "l"), lease("l", "you"))  # without a version
    t.put(t.at("leases", "new"), lease("new", "you"))  # makes it
    t.put(t.at("leases", "new"), {**lease("new", "you"), "metadata": {**made["metadata"], "name": "new"}})  # another's uid
    t.merge(t.at("leases", "l"), {"spec": {"holderIdentity": "she"}})


def quota(t):
    t.server.quota(t.ns, 2)
    t.post(t.at("pods"), pod("a"))
    t.post(t.at("pods"), pod("b"))
    t.post(t.at("pods"), pod("c"))
    t.post(t.at("pods", dryRun="All"), pod("c"))
    t.post(t.at("pods"), pod("c", restartPolicy="Sometimes"))
    t.post(t.at("services"), service("c"))


def dependents(t):
    a = t.post(t.at("tfjobs"), job("a"))
    t.post(t.at("pods"), pod("a-0", ownerReferences=[owner(a)]))
    t.post(t.at("services"), service("a-0", ownerReferences=[owner(a)]))
    t.post(t.at("pods"), pod("a-1", ownerReferences=[owner(a)], finalizers=["trainyard.dev/observed"]))
    t.post(t.at("pods"), pod("stranger"))
    t.delete(t.at("tfjobs", "a"), {"propagationPolicy": "Background"})
    t.until(t.at("pods", "a-0"))
    t.until(t.at("services", "a-0"))
    t.until(t.at("pods", "a-1"), 200, lambda p: "deletionTimestamp" in p["metadata"])
    t.strategic(t.at("pods", "a-1"), {"metadata": {"$deleteFromPrimitiveList/finalizers": ["trainyard.dev/observed"]}})
    t.get(t.at("pods", "a-1"))
    t.get(t.at("pods", "stranger"))
    # The same name is not the same owner.
    b = t.post(t.at("tfjobs"), job("b"))
    t.post(t.at("pods"), pod("b-0", ownerReferences=[owner(b, uid=a["metadata"]["uid"])]))
    t.until(t.at("pods", "b-0"))


def dependents_first(t):
    a = t.post(t.at("tfjobs"), job("a"))
    t.post(t.at("pods"), pod("a-0", ownerReferences=[owner(a)], finalizers=["trainyard.dev/observed"]))
    t.delete(t.at("tfjobs", "a"), {"propagationPolicy": "Foreground"})
    t.until(t.at("pods", "a-0"), 200, lambda p: "deletionTimestamp" in p["metadata"])
    t.get(t.at("tfjobs", "a"))
    t.strategic(t.at("pods", "a-0"), {"metadata": {"$deleteFromPrimitiveList/finalizers": ["trainyard.dev/observed"]}})
    t.until(t.at("tfjobs", "a"))


def dependents_stay(t):
    a, b = t.post(t.at("tfjobs"), job("a")), t.post(t.at("tfjobs"), job("b"))
    t.post(t.at("pods"), pod("a-0", ownerReferences=[owner(a)]))
    # The garbage collector sees pods in the order in which they were made. Once it has deleted the later one, whose owner does
    # not exist, it knows that a-0 is a dependent; a job that is deleted before that takes a-0 with it.
    gone = t.post(t.at("tfjobs"), job("gone"))
    t.delete(t.at("tfjobs", "gone"))
    t.post(t.at("pods"), pod("later", ownerReferences=[owner(gone)]))
    t.until(t.at("pods", "later"))
    t.delete(t.at("tfjobs", "a"), {"propagationPolicy": "Orphan"})
    t.until(t.at("tfjobs", "a"))
    t.get(t.at("pods", "a-0"))
    # Two owners: one is enough.
    c = t.post(t.at("tfjobs"), job("c"))
    t.post(t.at("pods"), pod("bc", ownerReferences=[owner(b), owner(c, controller=False)]))
    t.delete(t.at("tfjobs", "b"))
    t.until(t.at("pods", "bc"), 200, lambda p: len(p["metadata"]["ownerReferences"]) == 1)


STORIES = [creating, events, trying_out, refusing, versions, pods_change, deleting, finalizers, pods_end, evicting, listing, pages,
           expiring, watching, watching_jobs, leases, quota, dependents, dependents_first, dependents_stay]
