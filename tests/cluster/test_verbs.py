"""The daily verbs with jobs on a real cluster: what they say, how they exit, what they leave."""

import json
import signal

import pytest

from docs import run_page
from there import IMAGE, There
from yard import BINARY, wait_for

HELLO = "import os; print('hello from', os.environ['TRAINYARD_ROLE'], os.environ['TRAINYARD_INDEX'])"
# Stays until it may finish; SIGTERM ends it.
STAYS = "import os, time\nprint('up', flush=True)\nwhile not os.path.exists('/tmp/finish'): time.sleep(0.05)\n"


@pytest.fixture
def there(operated, tmp_path, request):
    yard = There(tmp_path / "home", operated, f"verbs-{abs(hash(request.node.name)) % 10**8}")
    yield yard
    yard.close()


def run(yard, *words, **options):
    return yard.run("run", "-i", IMAGE, "--output", "none", *words, **options)


def start(yard, *words, **options):
    return yard.start("run", "-i", IMAGE, "--output", "none", *words, **options)


def test_a_script_runs_to_its_end_and_nothing_is_left_after_delete(there):
    out = run(there, there.script(HELLO))
    lines = [line.split(maxsplit=1) for line in out.splitlines()]
    assert ["worker/0", "hello from worker 0"] in lines
    assert ["worker/1", "hello from worker 1"] in lines
    assert "train-1 succeeded" in out
    assert out.splitlines()[0].startswith("train-1 · kubernetes:") and " by the operator · 2 workers · code " in out
    assert there.status("train-1")["verdict"]["result"] == "succeeded"
    assert "train-1  Succeeded" in there.run("ps")
    assert there.run("wait").startswith("✓ train-1 succeeded")
    assert there.run("delete") == "train-1 deleted\n"
    there.cluster.wait(lambda: there.objects() == [], f"nothing is left: {there.objects()}")


def test_after_delete_the_name_is_free_at_once(there):
    (there.home / "env").write_text("A=b\n")
    for _ in range(3):
        run(there, there.script(HELLO), "--name", "again", "-e", "env")
        there.run("delete", "again")


def test_a_failure_has_the_status_and_the_words_that_it_has_on_one_machine(there):
    script = there.script("import os, time\n"
                          "if os.environ['TRAINYARD_INDEX'] == '1': raise ValueError('no such data')\n"
                          "while True: time.sleep(1)\n")
    here = there.run("run", script, status=1, env={"TRAINYARD_ON": "local"})
    out = run(there, script, status=1)
    failed = [text.split("train-1 failed")[1].split(" — ")[1].splitlines()[0] for text in (here, out)]
    assert failed[0] == failed[1] == "worker/1 exited with status 1: ValueError: no such data"
    assert "ValueError: no such data" in there.run("why")
    # What still ran was ended with the job, what had ended is still there to be read.
    assert set(there.pods("train-1")) == {"worker-1"}
    assert "ValueError: no such data" in there.run("logs")


def test_code_travels_byte_for_byte(there):
    code = there.home / "code"
    (code / "deep/er").mkdir(parents=True)
    (code / "__pycache__").mkdir()
    (code / "__pycache__/x.pyc").touch()
    (code / "deep/er/data.bin").write_bytes(bytes(range(256)))
    (code / "deep/__init__.py").write_text("WORD = 'naïve'\n")
    (code / "main.py").write_text("import deep, hashlib, pathlib\nroot = pathlib.Path(__file__).parent\n"
                                  "print(deep.WORD, hashlib.sha256((root / 'deep/er/data.bin').read_bytes()).hexdigest())\n"
                                  "print((root / '__pycache__').exists())\n")
    out = run(there, "-w", 1, "code")
    assert "naïve 40aff2e9d2d8922e47afd4648e6967497158785fbd1da870e7110266bf944880" in out
    assert "code-1 succeeded" in out


def test_every_verb_on_a_job_that_runs(there):
    job = start(there, "-w", 2, "--name", "stays", "--backoff-limit", 5, there.script(STAYS))
    first = there.wait_for_pods("stays", "worker-0", "worker-1")

    wait_for(lambda: there.run("ps").splitlines()[1].split()[:3] == ["stays", "Running", "2/2"], "the status says so")
    assert "stays" in there.run("ps", "-A") and there.namespace in there.run("ps", "-A")
    assert json.loads(there.run("get", "-o", "json"))["status"]["shape"] == {"Worker": 2}
    assert "TFJobCreated" in there.run("events") or "SuccessfulCreatePod" in there.run("events")
    assert wait_for(lambda: "up" in there.run("logs", "-i", "worker/1"), "a line of the log")
    assert there.run("why") == "stays is running\n"
    top = json.loads(there.run("top", "--json"))["replicas"]
    assert [row["replica"] for row in top] == ["worker/0", "worker/1"] and all(row["memoryBytes"] > 0 for row in top)
    assert "has no ps" in there.refused("scale", "ps=2")

    assert there.run("scale", "worker=1") == "stays scaled to 1 worker\n"
    second = there.wait_for_pods("stays", "worker-0", but=first.values())
    there.cluster.wait(lambda: len(there.pods("stays")) == 1, "one pod is left")

    assert there.run("suspend") == "stays suspended\n"
    assert job.communicate(timeout=150)[0].splitlines()[-3].startswith("✗ stays suspended")
    assert job.returncode == 65
    assert there.pods("stays") == {}

    again = there.start("resume")
    third = there.wait_for_pods("stays", "worker-0", but=second.values())
    assert there.run("stop") == "stays stopped\n"
    assert "stays stopped" in there.end(again, status=65)
    assert there.status("stays")["verdict"]["cause"].startswith("stopped by ")

    again = there.start("resume")
    there.wait_for_pods("stays", "worker-0", but=third.values())
    there.touch("stays", "worker-0")
    assert "stays succeeded" in there.end(again)
    assert "nothing to resume" in there.refused("resume")
    assert there.run("wait", "--timeout", "5s").startswith("✓ stays succeeded")
    there.run("delete")
    assert "no job named stays" in there.refused("get", "stays")


def test_ctrl_c_stops_the_job(there):
    job = start(there, "-w", 1, there.script(STAYS))
    there.wait_for_pods("train-1", "worker-0")
    job.send_signal(signal.SIGINT)
    assert "train-1 stopped" in there.end(job, status=130)
    assert there.status("train-1")["verdict"]["cause"] == "stopped by Ctrl-C"
    assert all(pod["status"]["phase"] in ("Succeeded", "Failed") for pod in there.pods("train-1").values())


def test_a_pod_that_somebody_deletes_is_no_failure(there):
    job = start(there, "-w", 2, "--name", "hit", there.script(STAYS))
    first = there.wait_for_pods("hit", "worker-0", "worker-1")
    there.kubectl("delete", "pod", "hit-worker-1", "--wait=false")
    there.wait_for_pods("hit", "worker-0", "worker-1", but=first.values())
    there.touch("hit", "worker-0", "worker-1")
    assert "hit succeeded" in there.end(job)
    assert there.status("hit")["disruptions"] == 1 and there.status("hit")["restarts"] == 0


def test_why_names_what_the_cluster_waits_for_and_what_helps(there):
    there.run("run", "-d", "-w", 1, "--name", "big", "-i", IMAGE, "--output", "none", "--worker-cpu", 999, there.script(HELLO))
    big = there.cluster.wait(lambda: "Unschedulable" in (words := there.run("why", "big")) and words, "it is told")
    assert "Insufficient cpu" in big and "ask for less" in big
    there.run("run", "-d", "-w", 1, "--name", "nowhere", "-i", "trainyard.test/no-such:1", "--output", "none", there.script(HELLO))
    nowhere = there.cluster.wait(lambda: "ImagePull" in (words := there.run("why", "nowhere")) and words, "it is told")
    assert "check the name of the image" in nowhere
    for job in ("big", "nowhere"):
        there.run("delete", "--force", job)


def test_values_of_an_env_file_are_never_shown(there):
    there.script("TOKEN=hunter2\n", "secrets.env")
    script = there.script("import os; print(len(os.environ['TOKEN']))")
    assert "hunter2" not in there.run("render", "-e", "secrets.env", script)
    out = run(there, "-w", 1, "-e", "secrets.env", script)
    assert "worker/0  7" in out
    assert "hunter2" not in out + there.run("get", "-o", "json") + json.dumps(there.cluster.pods(there.namespace))


def test_the_commands_of_the_guide(there, with_image):
    """As they stand, but for the image, which is not the one of the internet."""
    programs = there.home / "bin"
    programs.mkdir()
    (programs / "trainyard").write_text(f"""#!/bin/bash
case $1 in
  run|render) exec {BINARY} "$1" -i {IMAGE} "${{@:2}}" ;;
  *) exec {BINARY} "$@" ;;
esac
""")
    (programs / "trainyard").chmod(0o755)
    there.cluster.kubectl("apply", "-f", "-", input=VOLUME % there.home)
    (there.home / "volume").mkdir(mode=0o777)
    (there.home / "volume").chmod(0o777)
    assert run_page("kubernetes.md", there.home, {**there.env, "PATH": f"{programs}:{there.env['PATH']}"}) >= 14
    there.cluster.kubectl("delete", "pv", "guide", "--wait=false")
    there.cluster.kubectl("delete", "deployment", "-n", "trainyard-system", "trainyard-operator")


VOLUME = """
apiVersion: v1
kind: PersistentVolume
metadata: {name: guide}
spec:
  capacity: {storage: 10Gi}
  accessModes: [ReadWriteMany]
  hostPath: {path: %s/volume}
"""
