"""Our operator beside the training-operator in Go, as shipped and tuned: figures and ratios of one run.

    python bench/operators.py TRAINYARD [--check]

Each works for an API server of its own, fresh, and alike: etcd writes through to the disk, every request is logged, the
controllers of Kubernetes run, there is no node. The quick ones take turns and the median of their rounds counts; the one as
shipped has one round. All of it takes some twenty minutes, and at most half an hour.

    making     100 jobs of 10 workers at once, and one job of 500: from the first job sent to the last pod, or service, seen
    memory     at rest, with those 1,000 replicas, and with 10,000 pods besides that are none of the operator's
    reaction   20 workers that end with 137 or 130: from the failed pod seen to the next one seen
    writes     whole lives of 5 jobs of 10 workers: requests of the operator that change something, its events among them
    running    100 jobs of 10 workers at once on nodes of kwok: from the first job sent until every job reads Running, and of each job from
               its first running pod to its condition. Not of the one as shipped, which takes minutes. Ours also with 1,000 jobs
    recovery   the API server and its store are gone for 20 s, then each is restarted: from the first job that the server takes again to
               the job's pod

With --check it fails where a figure of trainyard misses the goal in CHECKED.
"""

import collections
import contextlib
import functools
import itertools
import math
import pathlib
import signal
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/support"))

from go_operator import go_operator  # noqa: E402
from lab import control  # noqa: E402
from lab.up import answers  # noqa: E402
from operator_loads import burst, foreign_pods, lives, reactions, recovery, running  # noqa: E402
from operator_world import world  # noqa: E402
from trainyard_operator import install_crd  # noqa: E402

SECONDS = 30 * 60
ROUNDS = 3
LAST_ROUND = 20 * 60  # seconds, after which no round begins but the first of each
TUNED = {"kube_api_qps": 10000, "kube_api_burst": 10000, "controller_threads": 16}

# (figure, text, unit, how it is written, whether more is better, the goal)
ROWS = [
    ("pods", "pods made, 100 jobs of 10", "/s", ".1f", True, "29x, 1.2x"),
    ("replicas", "  pods with their services", "/s", ".1f", True, ""),
    ("500 pods", "pods made, one job of 500", "/s", ".1f", True, ""),
    ("500 replicas", "  pods with their services", "/s", ".1f", True, ""),
    ("wait", "a job of 10 to its last pod, median", "s", ".2f", False, ""),
    ("wait p99", "  99 of 100 jobs", "s", ".2f", False, ""),
    ("all running", "100 jobs of 10 read Running", "s", ".1f", False, "as soon"),
    ("whole", "  all pods of a job run, median", "s", ".1f", False, ""),
    ("delay p99", "  first running pod to Running, p99", "s", ".2f", False, "3 s"),
    ("1000 delay p99", "  the same of 1,000 jobs", "s", ".2f", False, "3 s"),
    ("recovery", "after an outage, job taken to its pod", "s", ".2f", False, "3 s"),
    ("recovery restart", "  after two restarts", "s", ".2f", False, "3 s"),
    ("reaction", "failed worker to the next, median of 20", "ms", ".0f", False, ""),
    ("reaction max", "  the slowest", "ms", ".0f", False, ""),
    ("idle", "memory at rest", "MB", ".1f", False, "3x"),
    ("full", "  with 1,000 replicas", "MB", ".1f", False, "3x"),
    ("full share", "  the same, proportional", "MB", ".1f", False, ""),
    ("foreign", "  and 10,000 pods of others", "MB", ".1f", False, "3x"),
    ("growth", "  what those cost", "MB", "+.1f", False, "nothing"),
    ("cpu", "processor for 1,000 replicas", "s", ".2f", False, ""),
    ("writes", "writes for a job of 10", "", ".1f", False, ""),
    ("writes status", "  of these, of its status", "", ".1f", False, ""),
    ("writes events", "  of these, events", "", ".1f", False, ""),
]
IN_MILLISECONDS = {"reaction", "reaction max"}
# Until the last job runs, API server, store, scheduler, kwok and the controllers of endpoints keep two cores busy with the same work,
# whoever asked for it; an operator's own part is a twentieth of that. Hence "as soon", which allows for noise.
CHECKED = [
    ("all jobs read Running as soon as by the tuned one", lambda own, tuned: own["all running"] <= 1.1 * tuned["all running"]),
    ("p99 from the first running pod to Running is at most 3 s", lambda own, tuned: own["delay p99"] <= 3),
    ("the same of 1,000 jobs", lambda own, tuned: own["1000 delay p99"] <= 3),
    ("a job has its pod 3 s after an outage", lambda own, tuned: own["recovery"] <= 3),
    ("and after restarts of the API server and of its store", lambda own, tuned: own["recovery restart"] <= 3)]


class TimeUp(BaseException):
    """Nobody on the way out takes it for something else."""


def say(text):
    print(f"operators: {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def ours(binary, cluster, kubeconfig):
    """Where theirs runs too, as a component of the cluster: the machine has no reason to favour one."""
    install_crd(cluster)
    address = cluster.state.address
    control.start(cluster.state, "trainyard", [binary, "operator", f"--kubeconfig={kubeconfig}",
                                               f"--metrics-bind-address={address}:8080",
                                               f"--health-probe-bind-address={address}:8081"])
    try:
        cluster.wait(lambda: answers(f"http://{address}:8081/readyz"), "the operator is ready")
        yield control.components(cluster.state)["trainyard"]["pid"]
    finally:
        control.kill(cluster.state, "trainyard")


@contextlib.contextmanager
def theirs(flags, cluster, kubeconfig):
    with go_operator(cluster, kubeconfig=kubeconfig, **flags) as operator:
        yield operator.pid


def measure(start, everything, played, large):
    """One round, figures as they come: the loads on several clusters, so that one meets nothing of what another has left."""
    with world(start) as here:
        yield {"idle": here.memory()[0]}
        yield burst(here, jobs=100, replicas=10)
        if everything:
            yield foreign_pods(here)
    with world(start) as here:
        one = burst(here, jobs=1, replicas=500)
        yield {"500 pods": one["pods"], "500 replicas": one["replicas"]}
        if everything:
            yield reactions(here)
            yield lives(here)
    if played:
        with world(start) as here:
            yield running(here)
            yield recovery(here)
    if large:
        with world(start) as here:
            yield {"1000 delay p99": running(here, jobs=1000, limit=900)["delay p99"]}


def rounds(rivals):
    """The figures of each, by name. What is not found when the time is up is not a number."""
    found = {name: collections.defaultdict(list) for name in rivals}
    first = time.monotonic()
    try:
        for number, (name, (start, how_often)) in itertools.product(range(ROUNDS), rivals.items()):
            if number >= how_often or (number > 0 and time.monotonic() - first > LAST_ROUND):
                continue
            with contextlib.closing(measure(start, number == 0, how_often > 1, number == 0 and name == "trainyard")) as steps:
                for figures in steps:
                    say(f"{time.monotonic() - first:4.0f} s: {name}, round {number + 1}: "
                        + ", ".join(f"{figure} {value:.4g}" for figure, value in figures.items()))
                    for figure, value in figures.items():
                        found[name][figure].append(value)
    except TimeUp:
        say(f"{SECONDS} s are over: what is missing was not measured")
    return {name: {row[0]: statistics.median(figures[row[0]] or [math.nan]) for row in ROWS}
            for name, figures in found.items()}


def ratio(figure, one, other, more_is_better):
    """How many times better `one` is; nothing where that has no meaning."""
    if figure == "growth" or not all(map(math.isfinite, (one, other))):
        return "–"
    times = one / other if more_is_better else other / one
    return f"{times:.2f}x" if times < 10 else f"{times:.0f}x"


def table(found):
    shipped, tuned, own = found.values()
    print(f"{'what':<42}{'as shipped':>12}{'tuned':>12}{'trainyard':>12}{'to shipped':>12}{'to tuned':>10}  goal")
    for figure, text, unit, form, more_is_better, goal in ROWS:
        values = [rival[figure] * (1000 if figure in IN_MILLISECONDS else 1) for rival in (shipped, tuned, own)]
        cells = "".join(f"{'–' if math.isnan(value) else format(value, form) + ' ' + unit:>12}" for value in values)
        ratios = [ratio(figure, own[figure], rival[figure], more_is_better) for rival in (shipped, tuned)]
        print(f"{text:<42}{cells}{ratios[0]:>12}{ratios[1]:>10}  {goal}")
    flags = " ".join(f"--{name.replace('_', '-')}={value}" for name, value in TUNED.items())
    print(f"tuned: {flags}; as shipped one round, the others the median of up to {ROUNDS}")
    print("ratios: how many times better trainyard is")


def missed(found):
    """The goals that were missed, or could not be checked."""
    _, tuned, own = found.values()
    return [goal for goal, holds in CHECKED if not holds(own, tuned)]  # not a number holds nothing


def stop(number, _):
    raise TimeUp if number == signal.SIGALRM else SystemExit(128 + number)


def main():
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):  # clusters are taken down on the way out
        signal.signal(number, stop)
    signal.alarm(SECONDS)
    binary = pathlib.Path(sys.argv[1]).resolve()
    found = rounds({"as shipped": (functools.partial(theirs, {}), 1), "tuned": (functools.partial(theirs, TUNED), ROUNDS),
                    "trainyard": (functools.partial(ours, binary), ROUNDS)})
    table(found)
    if "--check" in sys.argv[2:] and (goals := missed(found)):
        raise SystemExit("missed: " + "; ".join(goals))


if __name__ == "__main__":
    main()
