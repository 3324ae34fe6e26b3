"""What is done to a job under both operators: tfjob.md's tables O (old end-to-end suites), G (unit and envtest cases), the
table of success and failure, and the bugs B.

A scenario gets a `Pair` (tests/support/side_by_side.py). One that yields is continued while both operators are away, and after
the next `yield` while they are back: so whatever it wrote meanwhile is seen by either in one pass.
"""

import functools
import inspect

from samples import TENSORFLOW, pod

SCENARIOS = {}


def scenario(*variants):
    """Registers a function under its name, once for each of the variants (name, arguments)."""
    def register(function):
        name, parameters = function.__name__.replace("_", "-"), list(inspect.signature(function).parameters)[1:]
        if not variants:
            SCENARIOS[name] = function
        for word, *arguments in variants:
            SCENARIOS[f"{name}-{word}"] = functools.partial(function, **dict(zip(parameters, arguments, strict=True)))
        return function
    return register


def job(run=None, restart="Never", template=None, **more):
    """job(Worker=2, PS=1, run={"cleanPodPolicy": "All"}): replica types have capital letters."""
    types = {key: value for key, value in more.items() if key[0].isupper()}
    rest = {key: value for key, value in more.items() if not key[0].isupper()}
    return {"runPolicy": run or {}, **rest, "tfReplicaSpecs": {
        name: {"replicas": count, "restartPolicy": restart, "template": template or pod(TENSORFLOW)}
        for name, count in types.items()}}


def names(**counts):
    return [f"{role.lower()}-{i}" for role, count in counts.items() for i in range(count)]


# -- what is made: names, labels, owners, TF_CONFIG, ports, services


@scenario(("names", {"Chief": 1, "PS": 2, "Worker": 3, "Evaluator": 1}),  # O5, G12
          ("one-worker", {"Worker": 1}),  # G13, G14: no TF_CONFIG
          ("one-ps", {"PS": 1}), ("worker-and-ps", {"Worker": 1, "PS": 1}), ("chief-and-worker", {"Chief": 1, "Worker": 1}),
          ("evaluator", {"Evaluator": 1, "PS": 1, "Worker": 1}), ("master", {"Master": 1, "Worker": 2}),
          ("two-chiefs", {"Chief": 2, "Worker": 1}), ("workers", {"Worker": 3}))
def made(p, types):
    p.create(job(**types))
    p.until_pods(*names(**types))
    p.same("Created")


@scenario()
def made_dynamic(p):  # G23
    p.create(job(Worker=2, PS=2, enableDynamicWorker=True))
    p.until_pods(*names(Worker=2, PS=2))
    p.same("Created")


@scenario()
def made_dynamic_without_ps(p):
    p.create(job(Worker=2, enableDynamicWorker=True))
    p.until_pods(*names(Worker=2))
    p.same("Created")


@scenario()
def made_by_default(p):  # G22
    p.create({"tfReplicaSpecs": {"WORKER": {"template": pod(TENSORFLOW)}, "ps": {"template": pod(TENSORFLOW)}}})
    p.until_pods("worker-0", "ps-0")
    p.same("Created")


@scenario(("named", [{"name": "tfjob-port", "containerPort": 5000}]), ("beside", [{"name": "http", "containerPort": 80}]),
          ("both", [{"name": "http", "containerPort": 80}, {"name": "tfjob-port", "containerPort": 5000}]))
def made_with_ports(p, ports):  # G22
    p.create(job(Worker=2, template=pod({**TENSORFLOW, "ports": ports})))
    p.until_pods("worker-0", "worker-1")
    p.same("Created")


@scenario()
def made_from_a_rich_template(p):  # G6
    template = pod({"name": "sidecar", "image": "b"},
                   {**TENSORFLOW, "env": [{"name": "A", "value": "1"}, {"name": "TF_CONFIG", "value": "{}"}],
                    "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}, "workingDir": "/a"},
                   initContainers=[{"name": "init", "image": "c"}], nodeSelector={"a": "b"},
                   volumes=[{"name": "v", "emptyDir": {}}], terminationGracePeriodSeconds=5)
    template["metadata"] = {"labels": {"team": "a", "training.kubeflow.org/job-name": "another"},
                            "annotations": {"sidecar.istio.io/inject": "false"}, "finalizers": ["test/one"]}
    p.create(job(Worker=2, template=template), labels={"not": "copied"}, annotations={"not": "copied"})
    p.until_pods("worker-0", "worker-1")
    p.same("Created")


@scenario()
def made_with_a_restart_policy_in_the_template(p):
    p.create(job(Worker=2, restart="Never", template=pod(TENSORFLOW, restartPolicy="Always")))
    p.until_pods("worker-0", "worker-1")
    p.same("Created")


@scenario()
def made_anew_when_a_service_is_deleted(p):
    p.create(job(Worker=2))
    p.to_running(*names(Worker=2))
    p.delete("worker-1", kind="services")
    p.same(lambda seen: seen["services made"] == "worker-0=1 worker-1=2")


@scenario()
def made_in_a_domain(p):  # G13: the operators come back with one
    yield
    yield
    p.create(job(Worker=1, PS=1))
    p.until_pods("worker-0", "ps-0")
    p.same("Created")
    assert "ps-0.NS.svc.cluster.local:2222" in p.look(p.ours)["pod.ps-0.spec.containers.tensorflow.env.TF_CONFIG.value"]


@scenario(("multikueue", "kueue.x-k8s.io/multikueue", ""), ("here", "kubeflow.org/training-operator", "Created"))
def managed_by(p, manager, state):  # G4, G25
    p.create(job(Worker=1, run={"managedBy": manager, "suspend": True}))
    p.same("Suspended" if state else "")
    p.edit({"runPolicy": {"suspend": False}})
    if state:
        p.until_pods("worker-0")
    p.same(state)


@scenario()
def twin(p):  # G5: and beside it one whose name begins like its pods
    p.create(job(Worker=1))
    p.to_running("worker-0")
    p.delete_job()
    p.same(lambda seen: seen["job"] == "gone" and not seen["pods"] and not seen["services"])


@scenario()
def twin_worker(p):
    p.create(job(Worker=1))
    p.to_running("worker-0")


# -- counting and conditions


@scenario()
def counted(p):  # G1; of a few, for an operator in Go tells 25 things of a job and then no more
    p.create(job(Worker=2, PS=1))
    p.until_pods(*names(Worker=2, PS=1))
    p.same("Created")
    p.running("worker-1")
    p.same("Running")
    p.running("worker-0", "ps-0")
    p.same(lambda seen: seen["count.Worker"] == "active=2" and seen["count.PS"] == "active=1")
    p.ended("worker-1")
    p.same(lambda seen: seen["count.Worker"] == "active=1 succeeded=1")
    p.ended("ps-0")
    p.same(lambda seen: seen["count.PS"] == "succeeded=1")
    p.ended("worker-0")
    p.same("Succeeded")


@scenario()
def counted_before_anything_runs(p):  # G1: one that is done while the others wait is no reason to say Running
    p.create(job(Worker=2, PS=1))
    p.until_pods(*names(Worker=2, PS=1))
    p.ended("worker-1")
    p.same(lambda seen: "succeeded=1" in seen["count.Worker"])


@scenario(("chief", {"Chief": 1, "Ps": 2, "Worker": 4}, "chief-0"),  # O1, O2
          ("worker-0", {"Ps": 2, "Worker": 4}, "worker-0"),  # O3, G19
          ("one-worker", {"Worker": 1}, "worker-0"))
def succeeds_with(p, types, last):
    p.create(job(**types))
    p.to_running(*names(**types))
    p.ended(last)
    p.same("Succeeded")


@scenario()
def succeeds_with_all_workers(p):
    p.create(job(Worker=3, successPolicy="AllWorkers"))
    p.to_running(*names(Worker=3))
    p.ended("worker-0")
    p.same(lambda seen: seen["count.Worker"] == "active=2 succeeded=1")
    p.ended("worker-1", "worker-2")
    p.same("Succeeded")


@scenario()
def succeeds_while_not_every_pod_has_come_up(p):
    p.create(job(Worker=2))
    p.until_pods("worker-0", "worker-1")
    p.ended("worker-0")
    p.apart("two looks", theirs="Succeeded", ours=lambda seen: seen["count.Worker"] == "succeeded=1")


@scenario(("none", "None"), ("running", "Running"), ("all", "All"))
def cleaned(p, policy):  # O4, G7, G24
    p.create(job(Chief=1, Worker=2, PS=2, run={"cleanPodPolicy": policy}))
    p.to_running(*names(Chief=1, Worker=2, PS=2))
    p.ended("worker-0", "worker-1")
    p.same(lambda seen: seen["count.Worker"] == "succeeded=2")
    p.ended("chief-0")
    left = {"None": 5, "Running": 3, "All": 0}[policy]
    p.same(lambda seen: "Succeeded" in seen["conditions"] and len(seen["pods"].split()) == left)
    p.same(lambda seen: len(seen["services"].split()) == left)


@scenario(("none", "None"), ("running", "Running"), ("all", "All"))
def cleaned_while_a_pod_waits(p, policy):
    p.create(job(Worker=2, PS=1, run={"cleanPodPolicy": policy}))
    p.until_pods(*names(Worker=2, PS=1))
    p.running("worker-0")
    p.same("Running")
    p.ended("worker-0")
    left = {"None": 3, "Running": 1, "All": 0}[policy]
    p.same(lambda seen: "Succeeded" in seen["conditions"] and len(seen["pods"].split()) == left)


@scenario(("none", "None"), ("running", "Running"), ("all", "All"))
def cleaned_after_a_failure(p, policy):  # G24
    p.create(job(Worker=2, PS=1, run={"cleanPodPolicy": policy}))
    p.to_running(*names(Worker=2, PS=1))
    p.ended("worker-1", exit_code=1)
    left = {"None": 3, "Running": 1, "All": 0}[policy]
    p.same(lambda seen: "Failed" in seen["conditions"] and len(seen["pods"].split()) == left)


# -- restart policies


@scenario(("chief", {"Chief": 1, "Worker": 1}, "chief-0"), ("worker", {"Worker": 2}, "worker-1"),
          ("ps", {"PS": 1, "Worker": 2}, "ps-0"), ("evaluator", {"Worker": 1, "Evaluator": 1}, "evaluator-0"))
def never(p, types, who):  # O7
    p.create(job(**types))
    p.to_running(*names(**types))
    p.ended(who, exit_code=1)
    p.same("Failed")


@scenario(("never", "Never"), ("on-failure", "OnFailure"), ("exit-code", "ExitCode"))
def a_ps_that_is_done(p, restart):  # O7
    p.create(job(PS=1, Worker=2, restart=restart))
    p.to_running(*names(PS=1, Worker=2))
    p.ended("ps-0")
    p.same(lambda seen: seen["count.PS"] == "succeeded=1")


@scenario()
def exit_code_permanent(p):  # O7, G17
    p.create(job(PS=1, Worker=2, restart="ExitCode"))
    p.to_running(*names(PS=1, Worker=2))
    p.ended("ps-0", exit_code=1)
    p.same("Failed")


@scenario()
def exit_code_retryable(p):  # O7, G16, G29
    p.create(job(PS=1, Worker=2, restart="ExitCode"))
    p.to_running(*names(PS=1, Worker=2))
    p.ended("worker-1", exit_code=130)
    p.until_pods("worker-1")
    p.same(lambda seen: seen["made.worker-1"] == "2")
    p.running("worker-1")
    p.same("Running")


# -- suspension


@scenario()
def suspended_from_the_start(p):  # G2, G11
    p.create(job(Worker=2, PS=1, run={"suspend": True, "ttlSecondsAfterFinished": 0}))
    p.same("Suspended")


@scenario(("none", "None"), ("running", "Running"), ("all", "All"))
def suspended(p, policy):  # G3, G24
    p.create(job(Worker=1, PS=1, run={"suspend": False, "cleanPodPolicy": policy}))
    p.to_running(*names(Worker=1, PS=1))
    p.edit({"runPolicy": {"suspend": True}})
    p.same(lambda seen: "Suspended" in seen["conditions"] and not seen["pods"] and not seen["services"])
    p.edit({"runPolicy": {"suspend": False}})
    p.to_running(*names(Worker=1, PS=1))
    p.ended("worker-0")
    p.same("Succeeded")
    p.edit({"runPolicy": {"suspend": True}})  # too late
    p.same("Succeeded")


# -- limits of time


@scenario(("none", "None"), ("running", "Running"), ("all", "All"))
def deadline(p, policy):  # G8, G24, G25
    p.create(job(Worker=2, PS=1, run={"cleanPodPolicy": policy}))
    p.to_running(*names(Worker=2, PS=1))
    p.deadline(6)
    p.apart("deadline", theirs="Running", ours="Failed")
    p.together()
    p.running("worker-1", worlds=[p.theirs], restarts=1)  # a reason to look
    p.same("Failed")


@scenario(("succeeded", 0), ("failed", 1))
def time_to_live(p, exit_code):  # G10
    p.create(job(Worker=1, run={"ttlSecondsAfterFinished": 3}))
    p.to_running("worker-0")
    p.ended("worker-0", exit_code=exit_code)
    p.same(lambda seen: seen["job"] == "gone" and not seen["pods"] and not seen["services"])


@scenario()
def time_to_live_none(p):  # G11
    p.create(job(Worker=1, run={"ttlSecondsAfterFinished": 0}))
    p.to_running("worker-0")
    p.ended("worker-0")
    p.same(lambda seen: seen["job"] == "gone" and not seen["pods"] and not seen["services"])


# -- scaling


@scenario()
def scaled_dynamic(p):  # G18
    p.create(job(Worker=3, PS=1, enableDynamicWorker=True))
    p.to_running(*names(Worker=3, PS=1))
    p.edit({"tfReplicaSpecs": {"Worker": {"replicas": 2}}})
    p.same(lambda seen: "worker-2" not in seen["pods"] and "worker-2" not in seen["services"])
    p.edit({"tfReplicaSpecs": {"Worker": {"replicas": 4}}})
    p.until_pods("worker-2", "worker-3")
    p.same("Running")


@scenario()
def scaled_dynamic_with_a_hole(p):  # G27
    p.create(job(Worker=4, PS=1, enableDynamicWorker=True))
    p.to_running(*names(Worker=4, PS=1))
    p.linger("worker-3")
    p.edit({"tfReplicaSpecs": {"Worker": {"replicas": 2}}})
    p.until(lambda seen: "worker-2" not in seen["pods"] and "worker-3:Running-deleting" in seen["pods"])
    p.gone("worker-3")
    p.same(lambda seen: "worker-3" not in seen["pods"])


# -- the table of success and failure (2.8, G20): what one pass makes of what it finds

TABLE = {
    "chief-done": ({"Chief": 1, "Worker": 1}, {}, {0: ["chief-0", "worker-0"]}, "Succeeded"),
    "chief-runs": ({"Chief": 1}, {}, {}, "Running"),
    "chief-fails": ({"Chief": 1}, {}, {1: ["chief-0"]}, "Failed"),
    "worker-fails": ({"Worker": 1}, {}, {1: ["worker-0"]}, "Failed"),
    "worker-done": ({"Worker": 1}, {}, {0: ["worker-0"]}, "Succeeded"),
    "worker-runs": ({"Worker": 1}, {}, {}, "Running"),
    "two-of-four-done": ({"Worker": 4, "PS": 2}, {}, {0: ["worker-2", "worker-3"]}, "Running"),
    "two-of-four-fail": ({"Worker": 4, "PS": 2}, {}, {1: ["worker-2", "worker-3"]}, "Failed"),
    "two-done-two-fail": ({"Worker": 4, "PS": 2}, {}, {0: ["worker-2", "worker-3"], 1: ["worker-0", "worker-1"]}, "Failed"),
    "worker-0-done": ({"Worker": 4, "PS": 2}, {}, {0: ["worker-0"]}, "Succeeded"),
    "all-but-worker-0-runs": ({"Worker": 4}, {"successPolicy": "AllWorkers"}, {0: ["worker-0"]}, "Running"),
    "all-done": ({"Worker": 4}, {"successPolicy": "AllWorkers"}, {0: names(Worker=4)}, "Succeeded"),
    "all-but-one-fails": ({"Worker": 4}, {"successPolicy": "AllWorkers"}, {0: ["worker-0"], 1: ["worker-3"]}, "Failed"),
    "chief-runs-workers-fail": ({"Chief": 1, "Worker": 4, "PS": 2}, {}, {1: names(Worker=4)}, "Failed"),
    "chief-runs-workers-done": ({"Chief": 1, "Worker": 4, "PS": 2}, {}, {0: names(Worker=4)}, "Running"),
    "chief-runs-ps-fails": ({"Chief": 1, "Worker": 4, "PS": 2}, {}, {0: names(Worker=4), 1: ["ps-1"]}, "Failed"),
    "chief-fails-workers-done": ({"Chief": 1, "Worker": 4, "PS": 2}, {}, {0: names(Worker=4), 1: ["chief-0"]}, "Failed"),
    "chief-done-workers-fail": ({"Chief": 1, "Worker": 4, "PS": 2}, {}, {0: ["chief-0"], 1: names(Worker=4)}, "Succeeded"),
    "everybody-killed": ({"Chief": 1, "Worker": 4, "PS": 2}, {"restart": "ExitCode"},
                         {130: names(Chief=1, Worker=4, PS=2)}, "Restarting"),
}


@scenario(*((name, *row) for name, row in TABLE.items()))
def table(p, types, more, endings, state):
    p.create(job(**types, **more))
    p.to_running(*names(**types))
    yield
    for exit_code, who in endings.items():
        p.ended(*who, exit_code=exit_code)
    yield
    if state == "Restarting":
        p.until_pods(*names(**types))
        p.same("Restarting")
    elif endings == TABLE["chief-done-workers-fail"][2]:
        p.apart("both", theirs="Succeeded Failed", ours="Succeeded")
    else:
        p.same(state)


# -- what we do otherwise (6.1)


@scenario(("worker", "worker-1"), ("ps", "ps-0"))
def taken_away(p, who):  # B1, G26
    p.create(job(PS=1, Worker=2, restart="OnFailure"))
    p.to_running(*names(PS=1, Worker=2))
    p.delete(who, linger=True)
    p.until("Failed", [p.theirs])
    p.gone(who)
    p.until_pods(who, worlds=[p.ours])
    p.apart(f"taken away {who[:-2]}")


@scenario()
def deleted_before_it_ran(p):
    p.create(job(PS=1, Worker=2))
    p.until_pods(*names(PS=1, Worker=2))
    p.delete("worker-1")
    p.until(lambda seen: seen["made.worker-1"] == "2")
    p.until_pods("worker-1")
    p.apart("deleted")


@scenario()
def evicted(p):
    p.create(job(PS=1, Worker=2))
    p.to_running(*names(PS=1, Worker=2))
    p.play(None, ["worker-1"], lambda world, name: world.kubelet.evicted(name))
    p.until_pods("worker-1", worlds=[p.ours])
    p.apart("evicted", theirs="Failed")


@scenario()
def saved_and_left(p):
    p.create(job(PS=1, Worker=2))
    p.to_running(*names(PS=1, Worker=2))
    p.ended("worker-1", exit_code=42)
    p.until_pods("worker-1", worlds=[p.ours])
    p.apart("exit 42", theirs="Failed")


@scenario()
def one_of_a_collective(p):
    p.create(job(Worker=3, restart="ExitCode"))
    p.to_running(*names(Worker=3))
    p.ended("worker-1", exit_code=130)
    p.until_pods("worker-1", worlds=[p.theirs])
    p.until_pods(*names(Worker=3), worlds=[p.ours])
    p.apart("gang")


@scenario()
def one_of_a_collective_alone(p):
    p.create(job(Worker=3, restart="ExitCode"), annotations={"trainyard.dev/restart-scope": "Replica"})
    p.to_running(*names(Worker=3))
    p.ended("worker-1", exit_code=130)
    p.until_pods("worker-1")
    p.same("Running")


@scenario()
def a_parameter_server(p):
    p.create(job(PS=2, Worker=2, restart="ExitCode"))
    p.to_running(*names(PS=2, Worker=2))
    p.ended("ps-1", exit_code=130)
    p.until_pods("ps-1", worlds=[p.theirs])
    p.until_pods("ps-1", "worker-0", worlds=[p.ours])
    p.apart("parameter server")


@scenario(("on-failure", "OnFailure", 1), ("always", "Always", 1), ("always-done", "Always", 0))
def in_place(p, restart, exit_code):  # O7
    p.create(job(PS=1, Worker=2, restart=restart))
    p.to_running(*names(PS=1, Worker=2))
    p.play([p.theirs], ["worker-1"], lambda world, name: world.kubelet.restarting(name, 1, exit_code))
    p.running("worker-1", worlds=[p.theirs], restarts=1)
    p.ended("worker-1", worlds=[p.ours], exit_code=exit_code)
    p.until_pods("worker-1", worlds=[p.ours])
    p.running("worker-1", worlds=[p.ours])
    p.apart("in place", theirs="Running", ours="Running")


@scenario()
def in_place_not_when_done(p):  # O7: OnFailure and exit 0
    p.create(job(PS=1, Worker=2, restart="OnFailure"))
    p.to_running(*names(PS=1, Worker=2))
    p.ended("worker-1", "ps-0")
    p.same(lambda seen: seen["count.Worker"] == "active=1 succeeded=1" and seen["count.PS"] == "succeeded=1")


@scenario()
def on_failure_of_the_whole_pod(p):
    p.create(job(PS=1, Worker=2, restart="OnFailure"))
    p.to_running(*names(PS=1, Worker=2))
    p.ended("worker-1", exit_code=1)
    p.until_pods("worker-1")
    p.same("Running")


@scenario()
def limit_of_restarts_in_place(p):  # G9
    p.create(job(PS=1, Worker=2, restart="OnFailure", run={"backoffLimit": 1}))
    p.to_running(*names(PS=1, Worker=2))
    p.running("worker-1", worlds=[p.theirs], restarts=1)
    p.ended("worker-1", exit_code=1, worlds=[p.ours])
    p.until_pods("worker-1", worlds=[p.ours])
    p.running("worker-1", worlds=[p.ours])
    p.until("Running", [p.ours])
    p.ended("worker-1", exit_code=1, worlds=[p.ours])
    p.until("Failed")
    p.apart("backoff in place")


@scenario()
def limit_of_restarts_by_exit_code(p):  # B4
    p.create(job(PS=1, Worker=2, restart="ExitCode", run={"backoffLimit": 1}))
    p.to_running(*names(PS=1, Worker=2))
    p.ended("worker-1", exit_code=130)
    p.until_pods("worker-1")
    p.running("worker-1")
    p.same("Running")
    p.ended("worker-1", exit_code=130)
    p.until_pods("worker-1", worlds=[p.theirs])
    p.apart("backoff by exit code", ours="Failed")


@scenario()
def none_of_a_type(p):  # B6
    try:
        p.create(job(PS=0, Worker=1))
        p.until_pods("worker-0")
        p.until(lambda seen: len(seen["made.ps-0"]) > 1 or seen["made.ps-0"] > "2", [p.theirs])
    finally:
        p.delete_job()  # theirs would keep the server busy
    p.apart("zero", *[lambda seen: seen["job"] == "gone" and not seen["pods"] and not seen["services"]] * 2)


@scenario()
def scaled_down(p):  # B7
    p.create(job(PS=1, Worker=3))
    p.to_running(*names(PS=1, Worker=3))
    p.linger("worker-2")
    p.edit({"tfReplicaSpecs": {"Worker": {"replicas": 2}}})
    p.until("Failed", [p.theirs])
    p.gone("worker-2")
    p.until_pods("worker-0", worlds=[p.ours])
    p.until(lambda seen: "worker-2" not in seen["pods"])
    p.apart("scaled down")


@scenario()
def scaled_up(p):  # 2.15
    p.create(job(PS=1, Worker=2))
    p.to_running(*names(PS=1, Worker=2))
    p.edit({"tfReplicaSpecs": {"Worker": {"replicas": 3}}})
    p.until_pods("worker-2")
    p.until_pods("worker-0", worlds=[p.ours])
    p.apart("scaled up")


@scenario()
def removed_after_it_was_done(p):  # B9
    p.create(job(PS=1, Worker=2))
    p.to_running(*names(PS=1, Worker=2))
    p.ended("worker-1")
    p.same(lambda seen: seen["count.Worker"] == "active=1 succeeded=1")
    p.delete("worker-1")
    p.until_pods("worker-1", worlds=[p.theirs])
    p.until(lambda seen: "worker-1" not in seen["pods"], [p.ours])
    p.apart("done and removed")


@scenario()
def owner_taken_off(p):
    p.create(job(PS=1, Worker=2))
    p.to_running(*names(PS=1, Worker=2))
    p.play(None, ["worker-1"], lambda world, name: world.api.patch(f"{world.core}/pods/{name}", {"metadata": {"ownerReferences": None}}))
    p.until(lambda seen: "event.TakenBackPod" in seen, [p.ours])
    p.ended("worker-1")
    p.until(lambda seen: seen["count.Worker"] == "active=1 succeeded=1", [p.ours])
    p.apart("edited")


@scenario()
def made_again_under_its_name(p):  # B14
    p.create(job(Worker=1))
    p.to_running("worker-0")
    p.linger("worker-0")
    p.delete_job()
    p.until(lambda seen: seen["job"] == "gone" and seen["pods"] == "worker-0:Running-deleting")
    p.create(p.job["spec"])
    p.until("Created", [p.ours])
    p.gone("worker-0")
    p.until_pods("worker-0")
    p.same("Created")  # but for the event


@scenario()
def chief_of_dynamic_workers(p):  # B15
    p.create(job(Chief=1, PS=1, Worker=2, enableDynamicWorker=True))
    p.until_pods(*names(Chief=1, PS=1, Worker=2))
    p.apart("dynamic chief")


@scenario()
def worker_of_dynamic_workers(p):
    p.create(job(PS=1, Worker=3, enableDynamicWorker=True))
    p.to_running(*names(PS=1, Worker=3))
    p.ended("worker-2", exit_code=1)
    p.same(lambda seen: "failed=1" in seen["count.Worker"])
    p.ended("worker-0", exit_code=1)
    p.apart("dynamic worker 0", ours="Failed", theirs=lambda seen: "failed=2" in seen["count.Worker"])


@scenario()
def fails_while_it_restarts(p):  # B17
    p.create(job(Worker=1, restart="ExitCode"))
    p.to_running("worker-0")
    p.ended("worker-0", exit_code=130)
    p.until_pods("worker-0")
    p.same("Restarting")
    p.ended("worker-0", exit_code=1)
    p.apart("completion", theirs="Failed", ours="Failed")


@scenario(("udp", [{"name": "u", "containerPort": 80, "protocol": "UDP"}], "udp"),
          ("unnamed", [{"containerPort": 80}, {"containerPort": 81}], "unnamed ports"))
def odd_ports(p, ports, key):
    p.create(job(Worker=1, template=pod({**TENSORFLOW, "ports": ports})))
    p.until_pods("worker-0")
    p.apart(key)


@scenario()
def refused_by_the_server(p):  # O8
    p.create(job(Worker=2, template=pod(TENSORFLOW, dnsPolicy="Sometimes")))
    p.apart("invalid", ours="Failed")
