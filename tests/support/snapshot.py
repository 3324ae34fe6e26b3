"""A job and all that an operator made of it, as flat text that can be compared with another operator's.

    {"conditions": "Created Running=False Failed", "condition.Failed": "TFJobFailed: TFJob NS/a has failed because …",
     "count.Worker": "failed=1", "pods": "worker-0:Failed worker-1:Running", "made.worker-0": "1",
     "pod.worker-0.spec.restartPolicy": "Never", "event.TFJobFailed": "Normal TFJob NS/a has failed because …", …}

What two operators cannot have in common is left out or replaced: UIDs, times, versions, the namespace (NS), addresses.
"""

import collections
import json
import re

# Written by the API server, or different for every object.
LEFT_OUT = {"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink", "deletionTimestamp",
            "deletionGracePeriodSeconds", "namespace", "name"}


class Snapshot(dict):
    def __missing__(self, key):
        return ""


def flat(value, path, out):
    if isinstance(value, dict) and value:
        for key, below in value.items():
            flat(below, f"{path}.{key}", out)
    elif isinstance(value, list) and value:
        for i, below in enumerate(value):
            # Lists of named things, such as containers and variables, by name: an added one shifts no other. Names need
            # not be unique; the last one wins, as it does in a pod.
            name = below.get("name", i) if isinstance(below, dict) else i
            name = "kube-api-access" if str(name).startswith("kube-api-access-") else name
            flat(below, f"{path}.{name}", out)
    else:
        out[path] = value if isinstance(value, str) else json.dumps(value)


def says(condition):
    return condition["type"] + ("" if condition["status"] == "True" else "=" + condition["status"])


def metadata(thing):
    kept = {key: value for key, value in thing["metadata"].items() if key not in LEFT_OUT}
    kept["ownerReferences"] = [{**owner, "uid": "UID"} for owner in kept.get("ownerReferences", [])]
    return kept


def of_status(status, out):
    conditions = status.get("conditions") or []
    out["conditions"] = " ".join(says(c) for c in conditions)
    for c in conditions:
        out[f"condition.{c['type']}"] = f"{c['reason']}: {c['message']}"
    for role, counts in (status.get("replicaStatuses") or {}).items():
        selector = counts.get("selector")
        if selector:
            out[f"selector.{role}"] = selector
        out[f"count.{role}"] = " ".join(f"{key}={counts[key]}" for key in ("active", "succeeded", "failed") if counts.get(key))
    for key in ("startTime", "completionTime"):
        out[key] = "set" if status.get(key) else "not set"


def phase(pod):
    return pod["status"].get("phase", "?") + ("-deleting" if "deletionTimestamp" in pod["metadata"] else "")


def made(mirror, job):
    """How many there were of each name, ever."""
    return collections.Counter(o["metadata"]["name"] for o in mirror.made[job].values())


def of_pods(world, job, out):
    pods, short = world.pods.of_job[job], lambda name: name.removeprefix(job + "-")
    out["pods"] = " ".join(f"{short(name)}:{phase(pod)}" for name, pod in sorted(pods.items()))
    for name, pod in pods.items():
        spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
        flat({**metadata(pod), "spec": spec}, f"pod.{short(name)}", out)
    out.update({f"made.{short(name)}": str(count) for name, count in made(world.pods, job).items()})


def of_services(world, job, out):
    services, short = world.services.of_job[job], lambda name: name.removeprefix(job + "-")
    out["services"] = " ".join(sorted(map(short, services)))
    out["services made"] = " ".join(f"{short(name)}={count}" for name, count in sorted(made(world.services, job).items()))
    for name, service in services.items():
        flat({**metadata(service), "spec": service["spec"]}, f"service.{short(name)}", out)


def order(world, job):
    """Whether every service was there before the first pod."""
    services, pods = ([int(o["metadata"]["resourceVersion"]) for o in mirror.made[job].values()]
                      for mirror in (world.services, world.pods))
    return "services, then pods" if max(services, default=0) < min(pods, default=0) else "pods before services"


def of_events(world, job, out):
    """Without the names of pods: of a job that has much to tell, an operator in Go tells a part only, at random."""
    told, replica = {}, re.compile(rf"\b{job}-[a-z]+-[0-9]+")
    for event in world.events.of_job[job].values():
        told.setdefault(event["reason"], set()).add(f"{event['type']} {replica.sub('POD', event['message'])}")
    out.update({f"event.{reason}": " | ".join(sorted(lines)) for reason, lines in told.items()})


def snapshot(world, job):
    """To be taken while the world does not change: `with world.changed`."""
    out, stored = {}, world.jobs.objects.get(job)
    out["job"] = "there" if stored else "gone"
    if stored:
        of_status(stored.get("status", {}), out)
    of_pods(world, job, out)
    of_services(world, job, out)
    of_events(world, job, out)
    if "made.worker-0" in out:
        out["order"] = order(world, job)
    name, random = re.compile(rf"\b{world.namespace}\b"), re.compile("kube-api-access-[a-z0-9]{5}")
    return Snapshot({key: random.sub("kube-api-access", name.sub("NS", value)) for key, value in out.items()})


def differences(theirs, ours):
    """Path to (theirs, ours), of all that is not the same."""
    return {path: (theirs[path], ours[path]) for path in sorted(theirs.keys() | ours.keys()) if theirs[path] != ours[path]}
