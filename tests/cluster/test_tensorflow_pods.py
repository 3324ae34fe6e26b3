"""`trainyard operator` and real TensorFlow in real pods: it trains, and what befalls pods on the way is made good, counted and
told as what it was."""

import os

import pytest

from training import Training, upload_scripts

pytestmark = pytest.mark.trains

SOAK = os.environ.get("SOAK") == "1"
TIMES = range(5 if SOAK else 1)
# Some 10 s on two cores: long enough to be struck on the way.
MNIST = ["/scripts/mnist.py", "--epochs", 1, "--steps-per-epoch", 300, "--checkpoint-every", 20]
MNIST_PS = ["/scripts/mnist_ps.py", *MNIST[1:]]
ESTIMATOR = ["/scripts/estimator.py", "--max-steps", 400, "--checkpoint-every", 50]
WITH_PS = {"Chief": 1, "PS": 1, "Worker": 2}


def versions(first, other):
    """The gate tries one version of TensorFlow, a soak both."""
    return pytest.mark.parametrize("version", [first, other] if SOAK else [first])


@pytest.fixture(scope="module")
def lab(operated):
    upload_scripts(operated)
    return operated


@pytest.fixture
def train(lab, tmp_path):
    """Starts trainings; at the end each is deleted, and nothing may be left of it."""
    started = []

    def start(name, *args, **options):
        started.append(Training(lab, tmp_path / name, *args, **options))
        return started[-1]
    yield start
    for run in started:
        run.delete()


def told(status):
    """Who failed or was taken away, and how, oldest first."""
    return [(one["replica"], one["what"]) for one in status["incidents"]]


def counted(status):
    return {"restarts": status["restarts"], "disruptions": status["disruptions"]}


def check_model(run, replica):
    """The one that leads has resumed from a checkpoint at its last start, and exported a model that knows something."""
    log = run.log(replica)
    assert "resuming from step" in log or "Restoring parameters from" in log
    assert float(log.split("test accuracy: ")[1].split()[0]) >= 0.9
    assert list(run.folder.glob("output/*/saved_model.pb"))


@pytest.mark.parametrize("i", TIMES)
@versions("2.15", "2.21")
def test_a_collective_is_started_again_when_a_pod_is_deleted_and_when_a_process_is_killed(train, version, i):
    run = train(f"mirrored-{i}", version, *MNIST, Worker=2)
    run.wait_for_checkpoint()
    first = run.uids()
    run.delete_pod("worker-1")
    run.wait_for_restart(first, "worker-0", "worker-1")
    run.wait_for_checkpoint()
    second = run.uids()
    run.kill("worker-0")
    run.wait_for_restart(second, "worker-0", "worker-1")

    status = run.finish()
    assert counted(status) == {"restarts": 1, "disruptions": 1}
    assert told(status) == [("worker-1", "was taken away: its pod was deleted"),
                            ("worker-0", "was killed by SIGKILL from outside")]
    assert status["verdict"] == {"result": "succeeded", "exitStatus": 0, "advice": "",
                                 "cause": "started again 2 times on the way; the last time worker/0 was killed by SIGKILL "
                                          "from outside"}
    check_model(run, "worker-0")


@pytest.mark.parametrize("i", TIMES)
@versions("2.21", "2.15")
def test_a_collective_is_started_again_when_a_worker_runs_out_of_memory(train, version, i):
    run = train(f"eats-{i}", version, "/scripts/eats.py", *MNIST, memory="2Gi", Worker=2)
    run.wait_for_checkpoint()
    first = run.uids()
    (run.folder / "eat").touch()
    run.wait_for_restart(first, "worker-0", "worker-1")

    status = run.finish()
    assert counted(status) == {"restarts": 1, "disruptions": 0}
    assert told(status) == [("worker-1", "ran out of memory (killed at its limit of 2048Mi, by the kubelet)")]
    check_model(run, "worker-0")


@pytest.mark.skipif(not SOAK, reason="a minute more; the gate has a lost parameter server with every role beside it, SOAK=1 both")
@pytest.mark.parametrize("i", TIMES)
@versions("2.21", "2.15")
def test_a_lost_parameter_server_takes_the_chief_along_and_a_worker_comes_back_alone(train, version, i):
    run = train(f"ps-{i}", version, *MNIST_PS, **WITH_PS)
    run.wait_for_checkpoint()
    first = run.uids()
    run.delete_pod("worker-1")
    run.wait_for_restart(first, "worker-1")
    run.wait_for_checkpoint()
    second = run.uids()
    run.kill("ps-0")
    run.wait_for_restart(second, "ps-0", "chief-0")

    status = run.finish()
    assert counted(status) == {"restarts": 1, "disruptions": 1}
    assert told(status) == [("worker-1", "was taken away: its pod was deleted"),
                            ("ps-0", "was killed by SIGKILL from outside")]
    check_model(run, "chief-0")


@pytest.mark.parametrize("i", TIMES)
def test_an_estimator_with_every_role_survives_the_same(train, i):
    run = train(f"estimator-{i}", "2.15", *ESTIMATOR, Evaluator=1, **WITH_PS)
    run.wait_for_checkpoint()
    first = run.uids()
    run.kill("worker-0")
    run.wait_for_restart(first, "worker-0")
    run.wait_for_checkpoint()
    second = run.uids()
    run.delete_pod("ps-0")
    run.wait_for_restart(second, "ps-0", "chief-0")

    status = run.finish()
    assert counted(status) == {"restarts": 1, "disruptions": 1}
    assert told(status) == [("worker-0", "was killed by SIGKILL from outside"),
                            ("ps-0", "was taken away: its pod was deleted")]
    check_model(run, "chief-0")
    # Parameter servers never end by themselves: cleanPodPolicy has ended this one.
    assert "ps-0" not in run.uids()


@versions("2.15", "2.21")
def test_an_exception_in_one_worker_is_the_cause_and_its_peer_a_consequence(train, version):
    run = train("fails", version, "/scripts/collective_fails.py", restarts="ExitCode", Worker=2)
    status = run.finish("Failed")
    assert counted(status) == {"restarts": 0, "disruptions": 0}
    assert status["verdict"]["cause"] == "worker/1 exited with status 1: RuntimeError: the data of worker 1 is bad"
