"""Parameter servers and Estimators on real TensorFlow: who is restarted with whom."""

from yard import wait_for

# What TensorFlow's own log says when a worker becomes part of the chief's cluster.
JOINED = "Creating sync eager service context"
EVERYONE = ("chief-0", "ps-0", "worker-0", "worker-1")


def test_each_kind_of_replica_is_killed_in_turn_and_training_goes_on(yard, train, version):
    run = train(version, "mnist_ps.py", "--ps", 1, "-w", 2, "--backoff-limit", 9, job="ps", args=["--epochs", 5])
    run.wait_for_steps("chief-0", more=4)

    # A worker: restarted alone, the others keep stepping.
    before = run.pids(*EVERYONE)
    joined = run.log("worker-1").count(JOINED)
    run.kill("worker-1")
    run.wait_for_restart("worker-1", before["worker-1"])
    run.wait_for_steps("chief-0", more=2)
    # Chiefs of TensorFlow 2.15 do not get over losing a second worker while they take the first one back in.
    wait_for(lambda: run.check() and run.log("worker-1").count(JOINED) > joined, "worker-1 is back in", 60)
    assert run.pids("chief-0", "ps-0", "worker-0") == {r: before[r] for r in ("chief-0", "ps-0", "worker-0")}

    # All workers: all come back, and the chief goes on.
    before = run.pids(*EVERYONE)
    run.kill("worker-0", "worker-1")
    for worker in ("worker-0", "worker-1"):
        run.wait_for_restart(worker, before[worker])
    run.wait_for_steps("chief-0", more=2)
    assert run.pids("chief-0", "ps-0") == {r: before[r] for r in ("chief-0", "ps-0")}

    # The chief: alone; it finds the living and goes on from the checkpoint.
    before = run.pids(*EVERYONE)
    run.kill("chief-0")
    run.wait_for_restart("chief-0", before["chief-0"])
    run.wait_for_steps("chief-0", more=2)
    others = ("ps-0", "worker-0", "worker-1")
    assert run.pids(*others) == {r: before[r] for r in others}

    # A parameter server: its variables are gone, so the chief starts again with it.
    before = run.pids(*EVERYONE)
    run.kill("ps-0")
    run.wait_for_restart("ps-0", before["ps-0"])
    run.wait_for_restart("chief-0", before["chief-0"])
    run.wait_for_steps("chief-0", more=2)
    assert run.pids("worker-0", "worker-1") == {r: before[r] for r in ("worker-0", "worker-1")}

    out = run.finish()
    assert float(out.split("test accuracy: ")[1].split()[0]) >= 0.96
    # Beside those that were killed: a chief may give up over a parameter server that is just back, and is started again.
    status = yard.status("ps")
    aftershocks = [one["replica"] for one in status["incidents"] if "exited with status 1" in one["what"]]
    assert set(aftershocks) <= {"chief-0"} and status["restarts"] == 5 + len(aftershocks)
    assert run.log("chief-0").count("resuming from step") == 2 + len(aftershocks)
    assert (yard.dir("ps") / "output/1/saved_model.pb").exists()


def test_an_estimator_with_every_role_survives_the_same(yard, train):
    run = train("2.15", "estimator.py", "--ps", 1, "-w", 1, "--evaluator", "--backoff-limit", 9, job="est",
                args=["--max-steps", 3000, "--checkpoint-every", 100])
    steps = lambda: run.log("chief-0").count(", step = ")  # noqa: E731
    on = lambda more: wait_for(lambda have=steps(): run.check() and steps() >= have + more, "the chief steps on", 120)  # noqa: E731
    on(2)
    before = run.pids("chief-0", "ps-0", "worker-0", "evaluator-0")

    run.kill("worker-0")
    run.wait_for_restart("worker-0", before["worker-0"])
    on(1)
    assert run.pids("chief-0", "ps-0") == {r: before[r] for r in ("chief-0", "ps-0")}

    run.kill("chief-0")
    chief = run.wait_for_restart("chief-0", before["chief-0"])
    on(1)

    run.kill("ps-0")
    run.wait_for_restart("ps-0", before["ps-0"])
    run.wait_for_restart("chief-0", chief)
    on(1)
    assert run.pids("evaluator-0") == {"evaluator-0": before["evaluator-0"]}

    out = run.finish()
    assert "est succeeded" in out
    assert yard.status("est")["restarts"] == 3
    assert list((yard.dir("est") / "output").glob("*/saved_model.pb"))
