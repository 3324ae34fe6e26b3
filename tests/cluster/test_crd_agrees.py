"""The schema and our decoder say yes and no to the same jobs.

The operator decodes every job again, so a disagreement is no hole. But a job that only the decoder refuses fails after
it was taken, and one that only the schema refuses runs on one machine and not on a cluster. So every value of some good
jobs is replaced by every kind of wrong one, left out, and given an unknown neighbour; both must say the same. Where
they do not, the reason is written down.
"""

import json
import os
import random

from samples import TENSORFLOW, decoder_says, job, pod, server_says

WRONG = [None, True, -1, 0, 1.5, 3, 2**31, 2**63, 1e300, "x", "", "0", [], {}, [None], [[]], {"": None}]
POD = {"metadata": {"labels": {"a": "b"}}, **pod({"name": "side", "image": "b"}, {
    **TENSORFLOW, "command": ["c"], "args": ["d"], "env": [{"name": "A", "value": "1"}],
    "ports": [{"name": "tfjob-port", "containerPort": 3333}]}, nodeSelector={"disk": "ssd"})}
LIST = {
    "tfImage": "x", "schedulerName": "s", "tensorboard": {"logDir": "x"}, "RuntimeId": "abcd",
    "terminationPolicy": {"chief": {"replicaName": "MASTER", "replicaIndex": 0}},
    "replicaSpecs": [
        {"tfReplicaType": "MASTER", "tfPort": 3333, "replicas": 1, "IsDefaultPS": False, "template": pod(
            {"name": "tensorflow", "args": ["a"], "ports": [{"name": "tfjob-port", "containerPort": 3333}]},
            restartPolicy="Never")},
        {"tfReplicaType": "worker", "restartPolicy": "OnFailure", "template": POD}]}
GOOD = [
    job({"successPolicy": "AllWorkers", "enableDynamicWorker": True, "runPolicy": {
        "cleanPodPolicy": "All", "ttlSecondsAfterFinished": 1, "activeDeadlineSeconds": 1, "backoffLimit": 1, "suspend": True,
        "managedBy": "kubeflow.org/training-operator", "schedulingPolicy": {
            "minAvailable": 1, "queue": "q", "minResources": {"cpu": 1}, "priorityClass": "p", "scheduleTimeoutSeconds": 1}},
         "tfReplicaSpecs": {"Worker": {"replicas": 2, "restartPolicy": "Always", "template": POD}}}),
    job({"cleanPodPolicy": "All", "ttlSecondsAfterFinished": 1, "activeDeadlineSeconds": 1, "backoffLimit": 1,
         "tfReplicaSpecs": {"Chief": {"template": POD}, "ps": {"template": POD}}}),
    job({"cleanPodPolicy": "All", "tfReplicaSpecs": {"Ps": {"replicas": 1, "template": POD}}}, version="v1beta1"),
    job(LIST),
    job(LIST, version="v1alpha1"),
]


def variants(value, path=()):
    """Every value with one thing wrong in it, and where that is."""
    for wrong in WRONG:
        yield wrong, path
    if isinstance(value, dict):
        for key in value:
            yield {k: v for k, v in value.items() if k != key}, (*path, key)
            for inner, at in variants(value[key], (*path, key)):
                yield {**value, key: inner}, at
        yield {**value, "unheardOf": 1}, (*path, "unheardOf")
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield value + [item], path
            for inner, at in variants(item, (*path, i)):
                yield [*value[:i], inner, *value[i + 1:]], at


def shapes():
    """Jobs that differ in names, replica types and counts."""
    types = ["Chief", "master", "WORKER", "worker", "PS", "Evaluator", "Cook", ""]
    names = ["a", "a-1", "1a", "a-", "A", "a.b", "a_b", *("n" * length for length in (45, 51, 52, 53, 54, 55, 58, 63, 64))]
    draw = random.Random(7)
    for _ in range(400):
        chosen = draw.sample(types, draw.randint(0, 4))
        entries = {name: {"template": POD, **draw.choice([{}, {"replicas": draw.choice([0, 1, 10, 11, 101, 10_000, 10_001])}])}
                   for name in chosen}
        name = draw.choice(names)
        yield job({"tfReplicaSpecs": entries}, name)
        entry_list = [{**entry, "tfReplicaType": type} for type, entry in entries.items() if type]
        more = draw.choice([{}, {"terminationPolicy": {"chief": {"replicaName": draw.choice(["MASTER", "chief", "Worker"])}}}])
        yield job({"replicaSpecs": entry_list, **more}, name, draw.choice(["v1", "v1alpha1"]))


# What only one of the two refuses, with an example and the reason.
WORKER = {"tfReplicaSpecs": {"Worker": {"template": POD}}}
ONLY_THE_SERVER = {
    "letter case: a schema names its fields": job({"ReplicaSpecs": [{"template": POD}]}, version="v1alpha1"),
    "the map in v1alpha1: a version has the form of its time": job(WORKER, version="v1alpha1"),
    "the list in v1beta1: a version has the form of its time": job({"replicaSpecs": [{"template": POD}]}, version="v1beta1"),
    "runPolicy in v1beta1: the default of its time is at the top":
        job({**WORKER, "runPolicy": {"cleanPodPolicy": "All"}}, version="v1beta1"),
    "2.0 for 2, in JSON: an API server has no such whole number (kubectl writes 2)":
        job({"tfReplicaSpecs": {"Worker": {"replicas": 2.0, "template": POD}}}),
    "the schema has a default for the protocol of a port and so its type, the decoder leaves it to the pod":
        job({"tfReplicaSpecs": {"Worker": {"template": pod({**TENSORFLOW, "ports": [{"containerPort": 1, "protocol": 6}]})}}}),
    "metadata is judged by Kubernetes": job(WORKER, labels={"a": "no label!"}),
}
ONLY_THE_DECODER = {
    "annotations cannot be seen by a schema": job(WORKER, annotations={"trainyard.dev/restart-scope": "job"}),
    "the bounds of elastic workers are an annotation": job(WORKER, annotations={"trainyard.dev/elastic": "2:3"}),
    "a quantity may be text or any number, for which a schema has no type":
        job({**WORKER, "runPolicy": {"schedulingPolicy": {"minResources": {"cpu": True}}}}),
    "two containers of one name: no pod has them, and the schema does not say which one is the training's":
        job({"tfImage": "x", "replicaSpecs": [{"template": pod({"name": "tensorflow"}, {"name": "tensorflow"})}]}),
}


def is_known(who, path):
    """Whether a difference that the variants find is one of the above."""
    return who == "decoder" and ("minResources" in path or path[-1:] == ("containers",))


def test_differences_are_those_that_are_known(tfjobs):
    for reason, one in ONLY_THE_SERVER.items():
        assert server_says(tfjobs, one) and not decoder_says([one])[0]["errors"], reason
    for reason, one in ONLY_THE_DECODER.items():
        assert not server_says(tfjobs, one) and decoder_says([one])[0]["errors"], reason


def test_the_schema_and_the_decoder_agree(tfjobs):
    cases = {json.dumps(changed, sort_keys=True): (changed, path) for good in GOOD
             for spec, path in variants(good["spec"]) for changed in [{**good, "spec": spec}]}
    cases = list(cases.values()) + [(one, ()) for one in shapes()]
    if not os.environ.get("SOAK"):
        cases = random.Random(11).sample(cases, 600)
    told, agreed = [], {True: 0, False: 0}
    for (tried, path), decoded in zip(cases, decoder_says(one for one, _ in cases), strict=True):
        server, decoder = server_says(tfjobs, tried), "; ".join(decoded["errors"])
        if bool(server) == bool(decoder):
            agreed[not server] += 1
            continue
        who = "decoder" if decoder else "server"
        if not is_known(who, path):
            told.append(f"{who} alone refuses {json.dumps(tried)} (at {path}): {server or decoder}")
    assert not told, "\n".join([f"{len(told)} of {len(cases)}", *told[:20]])
    print(f"{len(cases)} jobs: {agreed[True]} taken by both, {agreed[False]} refused by both")
    assert min(agreed.values()) > 100
