"""The operator on a real API server, disturbed at its writes and in what it sees: every job ends as if nothing had happened.

A trial must come to the same objects, owners, specs, conditions and counters as the workload without faults, with as many
creations and deletions of each object: a right end that was reached by a needless restart is wrong.
"""

import threading

from fault_proxy import KINDS
from trials import SOAK, choose, judge, run


def test_a_fault_at_any_write_changes_nothing_in_the_end(stage, references):
    def trial(name, kind, label):
        with stage.life() as life:
            life.proxy.fault(label, kind, kill=life.operator.kill_and_start)
            wrong = judge(life, name, references[name])
            return label not in life.proxy.faults, wrong

    trials = [(name, kind, rng.choice(references[name].labels))
              for name, kind, rng in choose(360 if SOAK else 36, references, KINDS)]
    run(trials, trial, "tests/cluster/test_faults.py -k any_write")


VIEWS = ("held", "cut", "gone", "doubled", "as it was")


def disturb(life, kind, resource, number, label):
    """Makes one view wrong. `number` says how far into the stream, or back; `label` when."""
    stream = life.proxy.stream(resource)
    if kind == "cut":
        stream.cut_after = number
    elif kind == "gone":
        stream.gone_after = number
    elif kind == "doubled":
        stream.doubled, stream.bookmarks = True, False
    elif kind == "held":
        def hold(write):
            if write.label == label:
                stream.held = True
                threading.Timer(0.2 * (number + 1), setattr, (stream, "held", False)).start()
        life.proxy.on_write = hold
    else:
        life.proxy.fault(label, "kill answered", kill=lambda: travel(life, stream, number))


def travel(life, stream, number):
    """A new operator sees one resource as it was before the last writes, and for a second nothing since."""
    versions = [write.version for write in life.proxy.writes if write.version]
    stream.list_version, stream.held = versions[-min(number + 1, len(versions))], True

    def back():
        stream.list_version, stream.held = None, False
    threading.Timer(1.0, back).start()
    life.operator.kill_and_start()


def test_a_view_that_is_old_or_broken_changes_nothing_in_the_end(stage, references):
    def trial(name, kind, resource, number, label):
        with stage.life() as life:
            disturb(life, kind, resource, int(number), label)
            wrong = judge(life, name, references[name])
            stream = life.proxy.stream(resource)
            done = {"cut": stream.cut_after is None, "gone": stream.gone_after is None}
            reached = done.get(kind, kind == "doubled" or label in {write.label for write in life.proxy.writes})
            return reached, wrong

    def details(name, kind, rng):
        resource = rng.choice(("pods", "tfjobs", "services"))
        return (name, kind, resource, str(rng.randrange(references[name].events[resource])), rng.choice(references[name].labels))

    trials = [details(*one) for one in choose(150 if SOAK else 15, references, VIEWS)]
    run(trials, trial, "tests/cluster/test_faults.py -k a_view")
