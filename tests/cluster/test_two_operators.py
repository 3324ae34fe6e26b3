"""Two operators at work on the same jobs at once, neither with a lease: nothing rests on there being only one."""

import threading

from trials import SOAK, choose, judge, run
from workloads import WORKLOADS

LIVES = 120 if SOAK else 12
VIEWS = ("alike", "one sees pods late", "one sees jobs late", "one is killed")


def test_two_operators_come_to_what_one_does(stage, references):
    def trial(name, kind, label):
        with stage.life(operators=2) as life:
            second = life.proxies[1]
            streams = {"one sees pods late": "pods", "one sees jobs late": "tfjobs"}

            def disturb(write):
                if write.label != label:
                    return
                if kind in streams:
                    stream = second.stream(streams[kind])
                    stream.held = True
                    threading.Timer(1.5, setattr, (stream, "held", False)).start()
                elif kind == "one is killed":
                    threading.Thread(target=life.operators[1].kill_and_start).start()
            life.proxy.on_write = disturb
            wrong = judge(life, name, references[name])
            labels = {write.label for write in life.proxy.writes}
            return kind == "alike" or label in labels, wrong

    trials = [(name, kind, rng.choice(references[name].labels)) for name, kind, rng in choose(LIVES, references, VIEWS)]
    assert {name for name, _, _ in trials} == set(WORKLOADS)
    run(trials, trial, "tests/cluster/test_two_operators.py", least=0.5)
