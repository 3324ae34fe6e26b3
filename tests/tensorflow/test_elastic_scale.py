"""Scaling under real TensorFlow: workers come and go while a model on parameter servers is trained, and nobody else is restarted."""

import json
import re
import statistics

import pytest
from conftest import SOAK
from yard import ROOT, alive, wait_for

STAY = ("chief-0", "ps-0", "worker-0")
WORKERS = [f"worker-{index}" for index in range(4)]
FAST, SLOW = 0.02, 0.2  # Seconds to a step: slow while somebody is awaited, since the data has to last.


class Scaled:
    """A training of tests/scripts, with records of 16 a step."""

    def __init__(self, yard, train, script, version, workers, *args):
        self.yard = yard
        yard.env["PYTHONPATH"] = str(ROOT / "python")
        self.pace(SLOW)
        self.run = train(version, ROOT / "tests/scripts" / script, "--ps", 1, "-w", workers, "--elastic", "1:4", job="points", args=args)
        self.wait_for_steps(*WORKERS[:workers], more=1)
        self.stay = self.run.pids(*STAY)
        self.marks, self.shares = [0], []

    def pace(self, seconds):
        (self.yard.home / "pace.part").write_text(str(seconds))
        (self.yard.home / "pace.part").replace(self.yard.home / "pace")

    def steps(self, replica):
        path = self.yard.home / f"steps-{replica}"
        if path.exists():
            return int(path.read_text())
        return self.run.log(replica).count("\nsteps on")

    def wait_for_steps(self, *replicas, more):
        have = {replica: self.steps(replica) for replica in replicas}
        wait_for(lambda: self.run.check() and all(self.steps(replica) >= have[replica] + more for replica in replicas),
                 f"{replicas} step on", 180)

    def train_on(self, count, more=60):
        """So many steps of each worker, and how many each of them made meanwhile."""
        self.pace(FAST)
        have = {name: self.steps(name) for name in WORKERS}
        self.wait_for_steps(*WORKERS[:count], more=more)
        self.shares.append(f"with {count}: " + ", ".join(str(self.steps(name) - have[name]) for name in WORKERS))
        self.marks.append(self.losses()[-1][0])
        self.pace(SLOW)

    def scale(self, count):
        too_many = [pid for pids in self.run.pids(*WORKERS[count:]).values() for pid in pids]
        self.yard.run("scale", f"worker={count}")
        wait_for(lambda: self.run.check() and not any(map(alive, too_many)), "those are gone who are too many", 120)
        self.wait_for_steps(*WORKERS[:count], more=1)

    def losses(self):
        """(step, loss) as they were logged, by all who do."""
        logs = "".join(self.run.log(replica) for replica in ("chief-0", *WORKERS))
        return sorted((int(step), float(loss)) for loss, step in re.findall(r"loss = ([\d.e-]+), step = (\d+)", logs))

    def finish(self, name):
        """To the end of the data, every record of which was trained once; and the loss never ceased to fall."""
        assert self.run.pids(*STAY) == self.stay, "nobody else was restarted"
        self.pace(0)
        self.run.finish()
        total = ", ".join(f"{name} {self.steps(name)}" for name in ("chief-0", *WORKERS))
        print(f"{name}: steps of workers 0 to 3 {'; '.join(self.shares)}; in all {total}")
        status = self.yard.status("points")
        assert (status["restarts"], status["disruptions"]) == (0, 0)
        (audit,) = json.loads(self.yard.run("audit", "points", "--json"))["sets"]
        assert audit["complete"] and all(epoch["once"] == 1600 for epoch in audit["epochs"]), audit
        ends = [*self.marks[1:], 1 << 30]
        means = [statistics.mean(loss for step, loss in self.losses() if first < step <= last) for first, last in zip(self.marks, ends)]
        print(f"{name}: loss after step " + ", ".join(f"{mark}: {mean:.3f}" for mark, mean in zip(self.marks, means)))
        assert means == sorted(means, reverse=True)


@pytest.mark.parametrize("model", ["dnn", pytest.param("keras", marks=pytest.mark.skipif(
    not SOAK, reason="a minute more for the same by another kind of model: script/soak"))])
def test_an_estimator_is_trained_by_1_then_4_then_2_workers(yard, train, model):
    job = Scaled(yard, train, "elastic_estimator.py", "2.15", 1, model)
    job.train_on(1)
    job.scale(4)
    job.train_on(4)
    job.scale(2)
    job.train_on(2)
    job.finish(f"Estimator, {model}")


@pytest.mark.skipif(not SOAK, reason="a minute and a half for each version: script/soak")
def test_keras_by_the_coordinator_is_trained_by_4_then_2_then_4_workers(yard, train, version):
    # Whom the coordinator knows is settled when the chief begins: so it begins with all, and they go and come back.
    job = Scaled(yard, train, "elastic_coordinator.py", version, 4)
    job.train_on(4)
    job.scale(2)
    job.train_on(2)
    job.scale(4)
    job.train_on(4)
    job.finish(f"coordinator, TensorFlow {version}")
