"""The operator on a real API server with a fault at each of its writes: every job ends as if nothing had happened.

A trial is a workload, a write and a kind of fault. It must come to the same objects, owners, specs, conditions and counters as
the workload without faults, with as many creations and deletions of each object: a right end that was reached by a needless
restart is wrong. A failing trial prints the line that runs it alone.

Which trials run follows from FAULT_SEED, which is printed; SOAK=1 runs ten times as many.
"""

import collections
import concurrent.futures
import os
import random

import pytest

from fault_proxy import KINDS
from lives import Stage
from workloads import WORKLOADS

SOAK = os.environ.get("SOAK") == "1"
SEED = int(os.environ.get("FAULT_SEED") or random.randrange(10**6))
TRIALS = int(os.environ.get("FAULT_TRIALS") or (360 if SOAK else 36))
AT_ONCE = 6
QUIET = 0.8  # seconds without a word, with all watches open, until a life counts as over


@pytest.fixture(scope="module")
def stage(tfjobs, tmp_path_factory):
    stage = Stage(tfjobs, tmp_path_factory.mktemp("lives"))
    yield stage
    stage.close()


def in_parallel(work, items):
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(work, items))


def live(stage, name):
    """A life without faults: what it came to, and its writes."""
    with stage.life() as life:
        WORKLOADS[name](life)
        outcome = life.settle(QUIET)
        assert not life.violations()
        return outcome, [write.label for write in life.proxy.writes]


@pytest.fixture(scope="module")
def references(stage):
    """Of each workload: what it comes to, and the writes that every life of it has. Two lives must agree."""
    names = [name for name in WORKLOADS for _ in range(2)]
    lives = in_parallel(lambda name: live(stage, name), names)
    out = {}
    for name, (one, its), (other, others) in zip(WORKLOADS, lives[::2], lives[1::2]):
        differences = other.differences(one)
        assert not differences, f"{name} ends in two ways without any fault:\n" + "\n".join(differences)
        out[name] = one, [label for label in its if label in set(others)]
    return out


def judge(life, expected):
    """Nothing, or what is wrong with how it ended."""
    differences = life.becomes(expected, QUIET).differences(expected) + life.violations()
    if not differences:
        return ""
    return "\n".join([*differences, "writes:", *life.told(), "the operator said:", life.operator.log.read_text()[-2000:]])


def trial(stage, references, name, label, kind):
    """(whether the fault was made, what is wrong)."""
    with stage.life() as life:
        life.proxy.fault(label, kind, kill=life.operator.kill_and_start)
        try:
            WORKLOADS[name](life)
            wrong = judge(life, references[name][0])
        except AssertionError as error:
            wrong = "\n".join([str(error), "writes:", *life.told(), "the operator said:", life.operator.log.read_text()[-2000:]])
        return label not in life.proxy.faults, wrong


def chosen(references):
    if os.environ.get("FAULT"):
        return [tuple(os.environ["FAULT"].split(" / "))]
    rng, out = random.Random(SEED), []
    names, kinds = list(references), list(KINDS)
    rng.shuffle(names)
    rng.shuffle(kinds)
    for number in range(TRIALS):
        name = names[number % len(names)]
        out.append((name, rng.choice(references[name][1]), kinds[(number + number // len(names)) % len(kinds)]))
    return out


def test_a_fault_at_any_write_changes_nothing_in_the_end(stage, references):
    trials = chosen(references)
    print(f"FAULT_SEED={SEED}: {len(trials)} trials")
    results = in_parallel(lambda one: trial(stage, references, *one), trials)
    made, failed = collections.Counter(), []
    for one, (reached, wrong) in zip(trials, results):
        made[one[2]] += reached
        if wrong:
            failed.append(f"FAULT='{' / '.join(one)}' python -m pytest {os.path.relpath(__file__)} -k any_write\n{wrong}")
    print(f"{sum(made.values())} of {len(trials)} faults made, {len(failed)} wrong: {dict(made)}")
    assert not failed, "\n\n".join(failed)
    assert sum(made.values()) >= 0.7 * len(trials), "too many writes were never made"
