"""`sweep delete` of a sweep whose trials are jobs of a cluster."""

import contextlib

import pytest

from there import IMAGE, There, shared_volume

TRAIN = "import sys; print('loss=' + sys.argv[1].removeprefix('--lr='))"


@pytest.fixture
def there(operated, tmp_path):
    with contextlib.ExitStack() as volumes:
        for i in range(2):
            volumes.enter_context(shared_volume(operated, tmp_path / f"volume-{i}"))
        yard = There(tmp_path / "home", operated, "sweeping")
        yield yard
        yard.close()


def test_a_sweep_goes_with_its_jobs_and_their_claims_only_when_told(there):
    out = there.run("sweep", there.script(TRAIN), "-i", IMAGE, "-w", 1, "--param", "lr=0.1,0.2", "--name", "two", "--parallel", 2)
    assert "best    trial 0: loss 0.1" in out
    there.env["TRAINYARD_ON"] = "local"  # it knows where its trials are
    assert there.run("sweep", "delete", "two").splitlines() == [
        "two deleted", "  kept    claim two-t0-output", "  kept    claim two-t1-output"]
    assert there.objects() == ["persistentvolumeclaims/two-t0-output", "persistentvolumeclaims/two-t1-output"]
    assert "the output of a deleted sweep named two" in there.refused("sweep", "train.py", "--param", "lr=1,2", "--name", "two")
    assert there.run("sweep", "delete", "two", "--with-output") == "two deleted\n"
    there.cluster.wait(lambda: there.objects() == [], "nothing is left")
