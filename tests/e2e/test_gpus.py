"""Who gets which GPU. There is none here: /proc/driver/nvidia is made up, in a mount namespace of the program's own."""

import os
import uuid

import pytest
from yard import BINARY, wait_for

SHOWS = "import os; print('sees', os.environ.get('CUDA_VISIBLE_DEVICES'), flush=True)"


@pytest.fixture
def gpus(yard):
    """The UUIDs of four GPUs, and what to pass to yard.start for a program that finds them."""
    fake, uuids = yard.home / "driver", [f"GPU-{uuid.uuid4()}" for _ in range(4)]
    for number, name in enumerate(uuids):
        # The address is the name of the lease: other tests have others.
        directory = fake / "nvidia/gpus" / f"{number}{name[4:12]}:01:00.0"
        directory.mkdir(parents=True)
        (directory / "information").write_text(f"Model: \t\t Fake\nGPU UUID: \t {name}\n")
    enter = yard.home / "enter"
    enter.write_text(f"""#!/bin/sh
exec unshare {"-m" if os.geteuid() == 0 else "-rm"} sh -c '
  mount -t tmpfs none /proc/driver && cp -r {fake}/. /proc/driver && exec "$0" "$@"' {BINARY} "$@"
""")
    enter.chmod(0o755)
    return uuids, {"executable": str(enter)}


def seen(yard, job, replica):
    """What a replica saw last."""
    lines = [line for line in yard.log(job, replica).splitlines() if line.startswith("sees ")]
    return lines[-1].removeprefix("sees ") if lines else None


def test_chief_and_workers_get_gpus_that_no_other_job_gets(yard, gpus):
    (a, b, c, d), found = gpus
    script = yard.staying(SHOWS)
    first = yard.start("run", "--ps", 1, "--evaluator", script, **found)
    yard.up("chief-0", "worker-0", "worker-1", "ps-0", "evaluator-0")
    assert {name: seen(yard, "train-1", name) for name in ("chief-0", "worker-0", "worker-1", "ps-0", "evaluator-0")} == {
        "chief-0": a, "worker-0": b, "worker-1": c, "ps-0": "-1", "evaluator-0": "-1"}
    second = yard.start("run", "-w", 1, "--name", "second", script, **found)
    wait_for(lambda: seen(yard, "second", "worker-0"), "the second job")
    assert seen(yard, "second", "worker-0") == d
    assert "the job asks for 1 GPU and 0 GPUs are free" in yard.refused("run", "--gpus", 1, "-w", 1, script, **found)
    yard.finish()
    yard.end(first)
    yard.end(second)
    yard.run("run", "-w", 1, "--name", "third", script, **found)
    assert seen(yard, "third", "worker-0") == ",".join([a, b, c, d])


def test_a_list_of_gpus_is_respected(yard, gpus):
    (a, _, c, _), found = gpus
    script = yard.script(SHOWS)
    for value, worker in ((f"{c},{a}", f"{c},{a}"), ("3,1", "3,1"), ("", ""), ("-1", "-1")):
        yard.run("run", "-w", 1, "--name", "one", script, env={"CUDA_VISIBLE_DEVICES": value}, **found)
        assert seen(yard, "one", "worker-0") == worker
        yard.run("delete", "one")
    yard.run("run", "--name", "file", "-e", yard.script("CUDA_VISIBLE_DEVICES=2,1\n", "my.env"), script, **found)
    assert [seen(yard, "file", f"worker-{i}") for i in range(2)] == ["2", "1"]


def test_a_gang_that_is_too_large_for_the_gpus_says_that_it_trains_on_the_cpu(yard, gpus):
    out = yard.run("run", "-w", 2, yard.script(SHOWS), env={"CUDA_VISIBLE_DEVICES": "1"}, **gpus[1])
    notice = "2 replicas train and 1 GPU is free: all of them train on the CPU; -w 1 uses the GPU"
    assert notice in out and notice in yard.run("events")
    assert [seen(yard, "train-1", f"worker-{i}") for i in range(2)] == ["-1", "-1"]
