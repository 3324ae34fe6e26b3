"""Trials: lives of a workload that something disturbs, and that must come to the same as an undisturbed one.

What runs follows from FAULT_SEED, which is printed; SOAK=1 runs ten times as many. FAULT='…', as a failing trial prints it,
runs that one alone.
"""

import collections
import concurrent.futures
import os
import random
import time

from workloads import WORKLOADS

SOAK = os.environ.get("SOAK") == "1"
SEED = int(os.environ.get("FAULT_SEED") or random.randrange(10**6))
AT_ONCE = 6
QUIET = 0.8  # seconds without a word, with all watches open, until a life counts as over


def in_parallel(work, items):
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(work, items))


class Reference:
    """What a workload comes to, and how: the labels of the writes that every life of it has, and how many there are."""

    def __init__(self, name, lives):
        (self.outcome, _), (other, _) = lives
        differences = other.differences(self.outcome)
        assert not differences, f"{name} ends in two ways without any fault:\n" + "\n".join(differences)
        labels = [[write.label for write in life.proxy.writes] for _, life in lives]
        self.labels = [label for label in labels[0] if label in set(labels[1])]
        self.writes = max(map(len, labels))
        self.events = {resource: min(life.proxy.stream(resource).events for _, life in lives)
                       for resource in ("pods", "services", "tfjobs")}


def make_references(stage):
    def live(name):
        with stage.life() as life:
            WORKLOADS[name](life)
            outcome = life.settle(QUIET)
            assert not life.violations(), life.violations()
            return outcome, life
    lives = in_parallel(live, [name for name in WORKLOADS for _ in range(2)])
    return {name: Reference(name, pair) for name, pair in zip(WORKLOADS, zip(lives[::2], lives[1::2]))}


def story(life):
    logs = [line for operator in life.operators for line in operator.log.read_text().splitlines()[-12:]]
    return ["writes:", *life.told(), "the operator said:", *logs]


def judge(life, name, reference):
    """Lives it through. Nothing, or what is wrong with how it ended: lines. How a life ends that the server itself disturbed is not judged."""
    try:
        WORKLOADS[name](life)
        wrong = life.becomes(reference.outcome, QUIET).differences(reference.outcome) + life.violations()
    except AssertionError as error:
        wrong = [str(error)]
    if life.namespace in life.witness.robbed:
        wrong = life.violations()
    return wrong and wrong + story(life)


def choose(count, references, kinds):
    """`count` times a workload and a kind, evenly, and what else a choice needs: [(workload, kind, random numbers)]."""
    rng = random.Random(SEED)
    names, kinds = rng.sample(list(references), len(references)), rng.sample(list(kinds), len(kinds))
    return [(names[i % len(names)], kinds[(i + i // len(names)) % len(kinds)], rng) for i in range(count)]


def run(trials, trial, test, least=0.8):
    """`trial(*one)` says whether the fault was made, and what is wrong. A trial is a tuple of texts.
    `least` is the part of the faults that must have been made: not every life has every write."""
    if os.environ.get("FAULT"):
        trials = [tuple(os.environ["FAULT"].split(" / "))]
    began = time.monotonic()
    results = in_parallel(lambda one: trial(*one), trials)
    made = collections.Counter(one[1] for one, (reached, _) in zip(trials, results) if reached)
    failed = [(f"FAULT='{' / '.join(one)}' $(script/python-env tests) -m pytest {test}", wrong)
              for one, (_, wrong) in zip(trials, results) if wrong]
    print(f"FAULT_SEED={SEED}: {len(trials)} trials in {time.monotonic() - began:.0f} s, {made.total()} faults made, "
          f"{len(failed)} wrong: {dict(made)}")
    assert not failed, "\n\n".join("\n".join([line, *wrong]) for line, wrong in failed)
    assert made.total() >= least * len(trials), "too many of the faults were never made"
