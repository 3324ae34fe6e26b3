"""deploy/crd.yaml on a real API server: what it takes, what it refuses and in which words, what it keeps."""

import json

import pytest

from cluster import ApiError
from samples import POD, TENSORFLOW, decoder_says, job, path_of, pod, replicas, server_says
from yard import ROOT

CRD = ROOT / "deploy/crd.yaml"
MANIFESTS = ROOT / "tests/data/manifests"
# Groups and spellings of fields that are read from a file, but that no API server ever took under this group.
NOT_SERVED = {"mlkube.yaml", "v1alpha1-all.yaml", "v1alpha2.yaml"}


def test_a_plain_apply_takes_it_and_a_second_one_changes_nothing(tfjobs):
    assert "unchanged" in tfjobs.kubectl("apply", "-f", CRD)
    crd = tfjobs.json("get", "crd", "tfjobs.kubeflow.org")
    # training-operator's does not fit into this annotation (262144 bytes), so that a plain apply fails.
    assert len(crd["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]) < 48 * 1024
    conditions = {c["type"]: c["status"] for c in crd["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}  # and none that says it is not structural
    assert crd["status"]["storedVersions"] == ["v1"]


# -- what it refuses: V1-V8 as training-operator v1.9's webhook, in its words where a schema can say them

DNS = ("should match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
       "character, and end with an alphanumeric character")
ROOM = "must leave room for the names of replicas, such as NAME-worker-10: they may have 63 characters"
TYPES = "unknown replica type, expected one of: Chief, Evaluator, Master, PS, Worker"
WORKER = replicas(Worker={})
CONTAINERS = "spec.tfReplicaSpecs[Worker].template.spec.containers"
UNCHECKED = "some validation rules were not checked"


def of_list(*entries, **spec):
    return job({"replicaSpecs": [{"template": POD, **entry} for entry in entries], **spec}, version="v1alpha1")


REFUSED = {
    "V1 digit": (job(WORKER, "00test"), f'metadata.name: Invalid value: "object": {DNS}'),
    "V1 dot": (job(WORKER, "a.b"), f'metadata.name: Invalid value: "object": {DNS}'),
    "V1 length": (job({"tfReplicaSpecs": {}}, "a" * 64), f'metadata.name: Invalid value: "object": {DNS}'),
    "V2 unknown": (job({**WORKER, "runPolicy": {"managedBy": "me"}}),
                   'spec.runPolicy.managedBy: Unsupported value: "me": supported values: "kubeflow.org/training-operator", '
                   '"kueue.x-k8s.io/multikueue"'),
    "V2 empty": (job({**WORKER, "runPolicy": {"managedBy": ""}}), 'spec.runPolicy.managedBy: Unsupported value: ""'),
    "V4 none": (job({}), "spec.tfReplicaSpecs: Required value: must be required"),
    "V4 null": (job({"tfReplicaSpecs": None}), "spec.tfReplicaSpecs: Required value: must be required"),
    "V5 and V7 empty list": (job(replicas(Worker={"template": pod()})),
                             f"[{CONTAINERS}: Required value: must be specified, "
                             f"{CONTAINERS}: Required value: must have at least one container with name tensorflow]"),
    "V5 no pod": (job({"tfReplicaSpecs": {"Worker": {}}}), f"{CONTAINERS}: Required value: must be specified"),
    "V5 null": (job({"tfReplicaSpecs": {"Worker": None}}), f"{CONTAINERS}: Required value: must be specified"),
    "V6 no image": (job(replicas(Worker={"template": pod(TENSORFLOW, {"name": "b"})})),
                    f"{CONTAINERS}[1].image: Required value: must be required"),
    "V6 empty image": (job(replicas(Worker={"template": pod({"name": "tensorflow", "image": ""})})),
                       f"{CONTAINERS}[0].image: Required value: must be required"),
    "V7": (job(replicas(Worker={"template": pod({"name": "main", "image": "a"})})),
           f"{CONTAINERS}: Required value: must have at least one container with name tensorflow"),
    "V8": (job(replicas(Chief={}, Master={})),
           "spec.tfReplicaSpecs: Forbidden: must not have more than 1 Chief or Master role"),
    "V8 in other letters": (job(replicas(CHIEF={}, master={})),
                            "spec.tfReplicaSpecs: Forbidden: must not have more than 1 Chief or Master role"),
    # Ours: what training-operator takes, to go wrong later.
    "name of a replica too long": (job(replicas(Worker={"replicas": 11}), "a" * 54),
                                   f'metadata.name: Invalid value: "object": {ROOM}'),
    "name of the evaluator too long": (job(replicas(Evaluator={}), "a" * 52),
                                       f'metadata.name: Invalid value: "object": {ROOM}'),
    "replica type": (job(replicas(Wroker={})), f'spec.tfReplicaSpecs: Invalid value: "object": {TYPES}'),
    "replica type twice": (job(replicas(worker={}, Worker={})),
                           "spec.tfReplicaSpecs: Forbidden: must not have the same replica type in two spellings"),
    "six replica types": (job({"tfReplicaSpecs": {name: {} for name in "abcdef"}}),
                          "spec.tfReplicaSpecs: Too many: 6: must have at most 5 items"),
    "negative replicas": (job(replicas(Worker={"replicas": -1})),
                          "spec.tfReplicaSpecs.Worker.replicas in body should be greater than or equal to 0"),
    "too many replicas": (job(replicas(Worker={"replicas": 10_001})),
                          "spec.tfReplicaSpecs.Worker.replicas in body should be less than or equal to 10000"),
    "restart policy": (job(replicas(Worker={"restartPolicy": "Sometimes"})),
                       'spec.tfReplicaSpecs.Worker.restartPolicy: Unsupported value: "Sometimes"'),
    "success policy": (job({**WORKER, "successPolicy": "OneWorker"}), 'spec.successPolicy: Unsupported value: "OneWorker"'),
    "clean-up policy": (job({**WORKER, "runPolicy": {"cleanPodPolicy": ""}}),
                        'spec.runPolicy.cleanPodPolicy: Unsupported value: "": supported values: "None", "Running", "All"'),
    "time to live": (job({**WORKER, "runPolicy": {"ttlSecondsAfterFinished": 2**31}}),
                     "spec.runPolicy.ttlSecondsAfterFinished in body should be less than or equal to 2147483647"),
    "deadline": (job({**WORKER, "runPolicy": {"activeDeadlineSeconds": -1}}),
                 "spec.runPolicy.activeDeadlineSeconds in body should be greater than or equal to 0"),
    "quantity": (job({**WORKER, "runPolicy": {"schedulingPolicy": {"minResources": {"cpu": "lots"}}}}),
                 "spec.runPolicy.schedulingPolicy.minResources.cpu in body should match"),
    "policy twice": (job({**WORKER, "backoffLimit": 1, "runPolicy": {"backoffLimit": 1}}),
                     "spec: Forbidden: cleanPodPolicy, ttlSecondsAfterFinished, activeDeadlineSeconds, backoffLimit: each in "
                     "runPolicy or at the top of the spec, not in both"),
    "port": (job(replicas(Worker={"template": pod({**TENSORFLOW, "ports": [{"containerPort": 0}]})})),
             "containers[0].ports[0].containerPort in body should be greater than or equal to 1"),
    "number for a word": (job(replicas(Worker={"template": pod({**TENSORFLOW, "args": [3]})})),
                          "containers[0].args[0] in body must be of type string"),
    "field of nobody": (job({**WORKER, "sucessPolicy": "AllWorkers"}), 'unknown field "spec.sucessPolicy"'),
    # The list form.
    "list none": (job({}, version="v1alpha1"), "spec.replicaSpecs: Required value: must be required"),
    "list and map": (job({**WORKER, "replicaSpecs": []}), "spec.replicaSpecs: Forbidden: is given twice, also as tfReplicaSpecs"),
    "list and map of old": (of_list({}, **WORKER), "spec.tfReplicaSpecs: Too many: 1: must have at most 0 items"),
    "list type": (of_list({"tfReplicaType": "WROKER"}),
                  f'spec.replicaSpecs[0].tfReplicaType: Invalid value: "string": {TYPES}'),
    "list type twice": (of_list({}, {"tfReplicaType": "master"}),
                        "spec.replicaSpecs: Forbidden: must not have two entries of one type"),
    "list V8": (of_list({}, {"tfReplicaType": "Chief"}),
                "spec.replicaSpecs: Forbidden: must not have more than 1 Chief or Master role"),
    "list V5": (of_list({"tfReplicaType": "PS", "template": None}),
                "spec.replicaSpecs[0].template.spec.containers: Required value: must be specified"),
    "list V6": (of_list({"template": pod({"name": "tensorflow"})}),
                "spec.replicaSpecs: Required value: the image of a container is required, or tfImage"),
    "list V6 beside": (of_list({"template": pod(TENSORFLOW, {"name": "b"})}, tfImage="a"),
                       "spec.replicaSpecs[0].template.spec.containers[1].image: Required value: must be required"),
    "list V7": (of_list({"template": pod({"name": "b", "image": "a"})}),
                "spec.replicaSpecs[0].template.spec.containers: Required value: must have at least one container"),
    "list restart policy": (of_list({"template": pod(TENSORFLOW, restartPolicy="Sometimes")}),
                            'spec.replicaSpecs[0].template.spec.restartPolicy: Invalid value: "object": must be Never, '
                            "OnFailure, Always or ExitCode"),
    "list port": (of_list({"tfPort": 1, "template": pod({**TENSORFLOW, "ports": [{"name": "tfjob-port",
                                                                                  "containerPort": 2}]})}),
                  "spec.replicaSpecs[0].tfPort: Invalid value: \"object\": differs from the port named tfjob-port"),
    "list termination": (of_list({}, terminationPolicy={"chief": {"replicaName": "WORKER"}}),
                         'spec.terminationPolicy.chief: Invalid value: "object": must name MASTER 0 or, in a job without one, '
                         "WORKER 0"),
    "fields of the list": (job({**WORKER, "tfImage": "a"}),
                           "spec: Forbidden: tfImage, schedulerName, terminationPolicy, tensorboard, RuntimeId go with "
                           "replicaSpecs only"),
    "name of a replica of the list too long": (of_list({"tfReplicaType": "PS", "replicas": 11}) |
                                               {"metadata": {"name": "a" * 58}}, ROOM),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(tfjobs, name):
    refused, words = REFUSED[name]
    said = server_says(tfjobs, refused)
    assert words in said
    if words.startswith(("spec", "metadata")) and UNCHECKED not in said and "in body" not in said:
        assert said.startswith(words)  # and nothing else is told
    assert decoder_says([refused])[0]["errors"]


# -- what it takes

TAKEN = {
    "no replica types": job({"tfReplicaSpecs": {}}),
    "no replicas": job(replicas(Worker={"replicas": 0}), "a" * 63),
    "the longest name": job(replicas(Worker={"replicas": 11}), "a" * 53),
    "two chiefs": job(replicas(Chief={"replicas": 2})),
    "any letter case": job(replicas(WORKER={}, ps={}, cHief={})),
    "an empty restart policy": job(replicas(Worker={"restartPolicy": ""})),
    "MultiKueue": job({**WORKER, "runPolicy": {"managedBy": "kueue.x-k8s.io/multikueue"}}),
    "a fraction": job({**WORKER, "runPolicy": {"schedulingPolicy": {"minResources": {"cpu": 1.5, "memory": "1e3", "a": ".5Ki"}}}}),
    "64 containers": job(replicas(Worker={"template": pod(TENSORFLOW, *[{"name": f"c{i}", "image": "a"} for i in range(63)])})),
    # What the SDK makes of a Python function.
    "the SDK's": job({"runPolicy": {}, "tfReplicaSpecs": {role: {"replicas": 1, "template": {
        "metadata": {"annotations": {"sidecar.istio.io/inject": "false"}},
        "spec": pod({"name": "tensorflow", "image": "docker.io/tensorflow/tensorflow:2.9.1", "command": ["bash", "-c"],
                     "args": ["\nprogram_path=$(mktemp -d)\nread -r -d '' SCRIPT << EOM\n\nEOM\n"],
                     "resources": {"limits": {"cpu": 1}}})["spec"]}} for role in ("Chief", "PS", "Worker")}}),
    "a list as it is stored": job({"tfReplicaSpecs": {}, "replicaSpecs": [{"template": POD}]}),
    "a list whose image is the job's": of_list({"template": pod({"name": "tensorflow"})}, tfImage="a", schedulerName="s",
                                               RuntimeId="5oz2", tensorboard={"logDir": "/tmp"},
                                               terminationPolicy={"chief": {"replicaName": "MASTER", "replicaIndex": 0}}),
}


@pytest.mark.parametrize("name", TAKEN)
def test_takes(tfjobs, name):
    assert server_says(tfjobs, TAKEN[name]) == ""
    assert decoder_says([TAKEN[name]])[0]["errors"] == []


def test_a_generated_name_must_leave_room_too(tfjobs):
    # The API server cuts the beginning to 58 characters and appends 5.
    nameless = job(WORKER, generateName="b" * 60)
    del nameless["metadata"]["name"]
    assert ROOM in server_says(tfjobs, nameless)


# Bounds that rules need to be affordable. The decoder has none; no pod that goes beyond them could be made.
BOUNDS = {
    "65 containers": (replicas(Worker={"template": pod(*[TENSORFLOW] * 65)}), "Too many: 65: must have at most 64 items"),
    "name of a container": (replicas(Worker={"template": pod(TENSORFLOW, {"name": "a" * 254, "image": "a"})}), "Too long"),
    "257 ports": (replicas(Worker={"template": pod({**TENSORFLOW, "ports": [{"containerPort": 1}] * 257})}), "Too many: 257"),
    "name of a port": (replicas(Worker={"template": pod({**TENSORFLOW, "ports": [{"name": "a" * 254, "containerPort": 1}]})}),
                       "Too long"),
    "restart policy of a pod": (replicas(Worker={"template": pod(TENSORFLOW, restartPolicy="a" * 65)}), "Too long"),
    "image": ({"replicaSpecs": [{"template": pod({"name": "tensorflow"})}], "tfImage": "a" * 4097}, "Too long"),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_has_bounds(tfjobs, name):
    spec, words = BOUNDS[name]
    assert words in server_says(tfjobs, job(spec))
    assert decoder_says([job(spec)])[0]["errors"] == []


# -- every version

def documents(text):
    """JSON values one after the other, as kubectl writes several objects."""
    values = []
    while text := text.strip():
        value, end = json.JSONDecoder().raw_decode(text)
        values.append(value)
        text = text[end:]
    return values


SERVED = sorted(path for path in MANIFESTS.glob("*.*") if path.name not in NOT_SERVED)


@pytest.fixture(scope="module")
def created(tfjobs):
    """Every manifest that can be served: as it was written, and as v1 reads it after a plain `kubectl create`."""
    files = [word for path in SERVED for word in ("-f", path)]
    written = documents(tfjobs.kubectl("create", "--dry-run=client", *files, "-o", "json"))
    namespaces = [one["metadata"].get("namespace", "default") for one in written]
    for namespace in {*namespaces} - {"default"}:
        tfjobs.kubectl("create", "namespace", namespace)
    names = tfjobs.kubectl("create", *files, "-o", "name").split()
    paths = [f"/apis/kubeflow.org/v1/namespaces/{namespace}/tfjobs/{name.split('/')[1]}"
             for namespace, name in zip(namespaces, names, strict=True)]
    yield {path.name: (one, tfjobs.api.get(where)) for path, one, where in zip(SERVED, written, paths, strict=True)}
    for where in paths:
        tfjobs.api.patch(where, {"metadata": {"finalizers": None}})
        tfjobs.api.delete(where)


@pytest.mark.parametrize("file", [path.name for path in SERVED])
def test_a_manifest_that_kubectl_creates_means_the_same_when_v1_reads_it(created, file):
    """Nothing is pruned, whatever the version; what the version meant unless said is filled in."""
    written, stored = created[file]
    assert stored["apiVersion"] == "kubeflow.org/v1"
    assert lost(written["spec"], stored["spec"]) == []
    meant, means = decoder_says([written, stored])
    assert meant["errors"] == means["errors"] == []
    assert with_protocol(meant["job"]["spec"]) == with_protocol(means["job"]["spec"])


def with_protocol(value):
    """A spec in which every port has the protocol that it means when it names none."""
    if isinstance(value, dict):
        return {**({"protocol": "TCP"} if "containerPort" in value else {}), **{key: with_protocol(inner) for key, inner in value.items()}}
    return [with_protocol(inner) for inner in value] if isinstance(value, list) else value


def lost(written, stored, path="spec"):
    """The paths of what was written and is not stored; null is no value."""
    if isinstance(written, dict) and isinstance(stored, dict):
        return [p for key, value in written.items() if value is not None
                for p in (lost(value, stored[key], f"{path}.{key}") if key in stored else [f"{path}.{key}"])]
    if isinstance(written, list) and isinstance(stored, list) and len(written) == len(stored):
        return [p for i, pair in enumerate(zip(written, stored)) for p in lost(*pair, f"{path}[{i}]")]
    return [] if written == stored else [path]


def test_older_versions_are_told_to_be_old(tfjobs):
    tfjobs.kubectl("get", "tfjobs.v1alpha1.kubeflow.org")
    assert "Warning: kubeflow.org/v1alpha1 TFJob is deprecated; use kubeflow.org/v1 TFJob" in tfjobs.said


# -- an object's life

@pytest.fixture
def stored(tfjobs):
    """Stores a job for the length of a test, and returns its path."""
    paths = []

    def store(job):
        name = tfjobs.api.post(path_of(job), job)["metadata"]["name"]
        paths.append(f"/apis/kubeflow.org/v1/namespaces/default/tfjobs/{name}")
        return paths[-1]
    yield store
    for path in paths:
        tfjobs.api.delete(path)


def test_defaults_are_stored(tfjobs, stored):
    spec = tfjobs.api.get(stored(job(WORKER, "defaults")))["spec"]
    assert spec["runPolicy"] == {"suspend": False}  # the SDK cannot read a job without one
    assert spec["tfReplicaSpecs"]["Worker"]["replicas"] == 1  # `kubectl scale` cannot read one without
    assert "cleanPodPolicy" not in spec and "restartPolicy" not in spec["tfReplicaSpecs"]["Worker"]
    assert "tfConfigForSingleReplica" not in spec
    old = tfjobs.api.get(stored(of_list({}) | {"metadata": {"name": "old-defaults"}}))["spec"]
    assert old["cleanPodPolicy"] == "Running" and old["tfConfigForSingleReplica"] is True
    assert old["replicaSpecs"][0]["tfReplicaType"] == "MASTER"
    assert old["tfReplicaSpecs"] == {}  # nor can the SDK without this one


def test_the_protocol_of_a_port_is_stored(tfjobs, stored):
    """Kueue compares containers with a copy in which it is, and never started a job without."""
    ports = [{"containerPort": 1}, {"containerPort": 1, "protocol": "UDP", "hostPort": 2}]
    template = pod({**TENSORFLOW, "ports": ports}, initContainers=[{"name": "first", "image": "a", "ports": ports}])
    filled = [{**ports[0], "protocol": "TCP"}, ports[1]]
    for version in ("v1", "v1beta1"):
        made = job({"tfReplicaSpecs": {"Worker": {"template": template}}}, f"ports-{version}", version)
        kept = tfjobs.api.get(stored(made))["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]
        assert kept["containers"][0]["ports"] == kept["initContainers"][0]["ports"] == filled


def test_a_list_can_be_written_again_as_it_is_read(tfjobs, stored):
    """By `kubectl edit`, say: with the empty map that was put beside it."""
    name = stored(of_list({}) | {"metadata": {"name": "read-and-written"}}).rsplit("/", 1)[1]
    for version in ("v1", "v1alpha1"):
        path = f"/apis/kubeflow.org/{version}/namespaces/default/tfjobs/{name}"
        job = tfjobs.api.get(path)
        job["spec"]["replicaSpecs"][0]["replicas"] += 1
        tfjobs.api.request("PUT", f"{path}?fieldValidation=Strict", job)
    assert tfjobs.api.get(path)["spec"]["replicaSpecs"][0]["replicas"] == 3


def test_kubectl_scales_workers(tfjobs, stored):
    path = stored(job(replicas(Worker={}, PS={}), "scaled"))
    tfjobs.kubectl("scale", "tfjob", "scaled", "--replicas=5")
    assert tfjobs.api.get(path)["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] == 5
    tfjobs.api.patch(f"{path}/status", {"status": {"replicaStatuses": {"Worker": {"active": 3, "selector": "a=b"}}}})
    scale = tfjobs.api.get(f"{path}/scale")
    assert (scale["spec"], scale["status"]) == ({"replicas": 5}, {"replicas": 3, "selector": "a=b"})
    tfjobs.kubectl("scale", "tfjob", "scaled", "--replicas=10001", status=1)
    assert "should be less than or equal to 10000" in tfjobs.said


def test_kubectl_lists_state_and_age_and_more_when_asked(tfjobs, stored):
    path = stored(job(WORKER, "listed"))
    assert tfjobs.kubectl("get", "tfj", "listed").split()[:4] == ["NAME", "STATE", "AGE", "listed"]
    tfjobs.api.patch(f"{path}/status", {"status": {
        "conditions": [{"type": "Created", "status": "True"}, {"type": "Running", "status": "True"}],
        "restarts": 2, "disruptions": 1, "progress": {"percent": 12.5}, "verdict": {"cause": "none yet"}}})
    header, row = (line.split() for line in tfjobs.kubectl("get", "tfjobs", "listed", "-o", "wide").splitlines())
    assert header == ["NAME", "STATE", "AGE", "RESTARTS", "DISRUPTIONS", "PERCENT", "VERDICT"]
    assert row[:2] == ["listed", "Running"] and row[3:] == ["2", "1", "12.5", "none", "yet"]


def test_kubectl_explains_it(tfjobs):
    assert "How many failures are answered with a restart" in tfjobs.kubectl("explain", "tfjob.spec.runPolicy")
    assert "The highest attempt number" in tfjobs.kubectl("explain", "tfjob.status.attempt")


def test_a_status_is_kept_as_it_was_patched(tfjobs, stored):
    """All that EncodeStatus writes is named in the schema (src/api/crd_test.cc); this is what the server makes of it."""
    path = stored(job(WORKER, "kept"))
    unit = {"attempt": 2, "failuresInRow": 1, "disruptionsInRow": 3, "preemptionsInRow": 2, "preemptedAt": 40, "planned": True,
            "notBefore": "2026-11-15T20:29:57.000005Z"}
    status = {
        "conditions": [{"type": "Created", "status": "True", "reason": "r", "message": "m",
                        "lastUpdateTime": "2026-11-15T20:29:57Z", "lastTransitionTime": "2026-11-15T20:29:57Z"}],
        "replicaStatuses": {"Worker": {"active": 2, "succeeded": 1, "failed": 1, "selector": "a=b"}, "PS": {}},
        "startTime": "2026-11-15T20:29:57Z", "completionTime": "2026-11-15T20:29:58Z",
        "lastReconcileTime": "2026-11-15T20:29:57Z", "restarts": 2, "disruptions": 1, "attempt": 3,
        "progress": {"percent": 12.5, "step": 40, "remainingSeconds": 90, "metrics": {"loss": 0.25, "epoch": 3}},
        "shards": {"todo": 3, "doing": 2, "done": 5, "recordsLeft": 320, "recordsTotal": 640, "recordsQuarantined": 64,
                   "complete": True},
        "verdict": {"result": "failed", "cause": "c", "advice": "a", "exitStatus": 137},
        "gang": unit, "units": {"ps-1": unit}, "completed": {"Worker": "1"}, "seen": {"PS": "0", "Worker": "0-2,7"},
        "shape": {"Worker": 2},
        "incidents": [{"replica": "worker-0", "attempt": 1, "when": "2026-11-15T20:29:57.000000Z", "what": "w", "line": "l",
                       "disruption": True, "consequences": ["worker-1"]}],
    }
    tfjobs.api.patch(f"{path}/status", {"status": status})
    assert tfjobs.api.get(path)["status"] == status
    # What has gone is taken out by null.
    tfjobs.api.patch(f"{path}/status", {"status": {"verdict": None, "units": {"ps-1": None, "ps-2": unit}}})
    after = tfjobs.api.get(path)["status"]
    assert "verdict" not in after and after["units"] == {"ps-2": unit}
    assert after["gang"] == unit
    # A patch of the job itself leaves the status alone.
    tfjobs.api.patch(path, {"status": {"attempt": 9}, "spec": {"runPolicy": {"suspend": True}}})
    assert tfjobs.api.get(path)["status"]["attempt"] == 3


# V3, and the one rule that training-operator's own schema has. Through each version that can change it.
CHANGES = {
    "V3 changed": ({"managedBy": "kubeflow.org/training-operator"}, {"managedBy": "kueue.x-k8s.io/multikueue"},
                   'spec.runPolicy.managedBy: Invalid value: "object": field is immutable'),
    "V3 added": ({}, {"managedBy": "kueue.x-k8s.io/multikueue"}, "spec.runPolicy.managedBy: Invalid value"),
    "V3 removed": ({"managedBy": "kubeflow.org/training-operator"}, {"managedBy": None}, "field is immutable"),
    "V3 with all": ({"managedBy": "kubeflow.org/training-operator"}, None, "field is immutable"),
    "queue changed": ({"schedulingPolicy": {"queue": "a"}}, {"schedulingPolicy": {"queue": "b"}},
                      "spec.runPolicy.schedulingPolicy.queue is immutable"),
    "queue added": ({}, {"schedulingPolicy": {"queue": "b"}}, ""),
    "queue removed": ({"schedulingPolicy": {"queue": "a"}}, {"schedulingPolicy": None}, ""),
    "minAvailable": ({"schedulingPolicy": {"minAvailable": 10}}, {"schedulingPolicy": {"minAvailable": 1}}, ""),
}


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
@pytest.mark.parametrize("name", CHANGES)
def test_changes(tfjobs, stored, name, version):
    before, after, words = CHANGES[name]
    path = stored(job({**WORKER, "runPolicy": before}, "changed"))
    try:
        tfjobs.api.patch(path.replace("/v1/", f"/{version}/"), {"spec": {"runPolicy": after}})
        said = ""
    except ApiError as error:
        said = error.body["message"]
    assert words in said and bool(words) == bool(said)


def test_scaling_is_refused_where_the_names_would_not_fit(tfjobs, stored):
    path = stored(job(replicas(Worker={"replicas": 10}), "c" * 54))
    with pytest.raises(ApiError, match="must leave room"):
        tfjobs.api.patch(path, {"spec": {"tfReplicaSpecs": {"Worker": {"replicas": 11}}}})
    tfjobs.api.patch(path, {"spec": {"tfReplicaSpecs": {"Worker": {"replicas": 9}}}})


def test_a_job_from_before_these_rules_can_have_a_status_and_an_end(tfjobs):
    """Jobs of another operator's definition are there already when ours is installed."""
    crd = tfjobs.json("get", "crd", "tfjobs.kubeflow.org")
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/tfjobs.kubeflow.org"
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    lax = [{"schema": {"openAPIV3Schema": anything}, **{key: version[key] for key in ("name", "served", "storage")},
            "subresources": {"status": {}}} for version in crd["spec"]["versions"]]
    before = job(replicas(Worker={"restartPolicy": "Sometimes"}, Foo={}), "d" * 70, finalizers=["example.com/hold"])
    probe = job({}, "probe")
    tfjobs.api.patch(path, {"spec": {"versions": lax}})
    try:
        tfjobs.wait(lambda: server_says(tfjobs, probe) == "", "the lax definition")
        tfjobs.api.post(path_of(before), before)
    finally:
        tfjobs.api.patch(path, {"spec": {"versions": crd["spec"]["versions"]}})
        tfjobs.wait(lambda: "must be required" in server_says(tfjobs, probe), "the strict definition")
    there = path_of(before) + "/" + before["metadata"]["name"]
    tfjobs.api.patch(f"{there}/status", {"status": {"conditions": [{"type": "Failed", "status": "True"}]}})
    assert tfjobs.api.get(there)["status"]["conditions"][0]["type"] == "Failed"
    tfjobs.api.patch(there, {"metadata": {"labels": {"a": "b"}}})
    with pytest.raises(ApiError, match="must leave room"):
        tfjobs.api.patch(there, {"spec": {"runPolicy": {"suspend": True}}})
    tfjobs.api.delete(there)
    tfjobs.api.patch(there, {"metadata": {"finalizers": None}})
    tfjobs.wait(lambda: before["metadata"]["name"] not in json.dumps(tfjobs.api.get(path_of(before))), "the job gone")
