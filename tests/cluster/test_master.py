"""Jobs with a master of their own, where there is no operator: by somebody who has rights in one namespace only."""

import json
import os

import pytest

from there import IMAGE, There

STAYS = "import os, time\nprint('up', flush=True)\nwhile not os.path.exists('/tmp/finish'): time.sleep(0.05)\n"


@pytest.fixture
def there(with_image, tmp_path, request):
    """The namespace of somebody who is admin of it, and nobody elsewhere; TFJobs are not for them."""
    yard = There(tmp_path / "home", with_image, f"master-{abs(hash(request.node.name)) % 10**8}")
    user = f"user-of-{yard.namespace}"
    yard.kubectl("create", "rolebinding", "her", "--clusterrole=admin", f"--user={user}")
    yard.use(with_image.as_user(user))
    yield yard
    yard.close()


def objects(there):
    found = there.kubectl("get", "configmaps,secrets,pods,services,jobs,roles,rolebindings,serviceaccounts,pvc", "-o", "name").split()
    return sorted(set(found) - {"configmap/kube-root-ca.crt", "rolebinding.rbac.authorization.k8s.io/her",
                                "serviceaccount/default"})


def test_a_master_keeps_the_job_to_its_end(there):
    job = there.start("run", "-i", IMAGE, "--output", "none", "-w", 2, "--name", "mine", there.script(STAYS))
    first = there.wait_for_pods("mine", "worker-0", "worker-1")
    assert "mine  Running" in there.run("ps")
    there.kubectl("delete", "pod", "mine-worker-1", "--wait=false")
    there.wait_for_pods("mine", "worker-0", "worker-1", but=first.values())
    # The master dies: its container is started again, and nobody else notices.
    before = there.wait_for_pods("mine", "worker-0", "worker-1")
    [master] = there.cluster.pods(there.namespace, "app.kubernetes.io/name=trainyard-master")
    there.kubectl("delete", "pod", master["metadata"]["name"])
    assert there.run("scale", "worker=2") == "mine scaled to 2 worker\n"
    assert there.wait_for_pods("mine", "worker-0", "worker-1") == before
    there.touch("mine", "worker-0", "worker-1")
    out = there.end(job, seconds=60)
    assert "mine succeeded" in out
    assert f"/{there.namespace} by a master of its own · 2 workers" in out.splitlines()[0]
    assert ": the job gets a master of its own" in out.splitlines()[1]
    status = json.loads(there.run("get", "-o", "json"))["status"]
    assert status["disruptions"] == 1 and status["restarts"] == 0
    # It has ended with its job, well.
    there.cluster.wait(lambda: there.cluster.api.get(there.path("jobs", "mine-master", "apis/batch/v1"))["status"].get("succeeded"),
                       "the master has ended")
    there.run("delete")
    there.cluster.wait(lambda: objects(there) == [], "nothing is left")


@pytest.mark.skipif(os.environ.get("SOAK") != "1", reason="half a minute more; test_verbs has the same with an operator")
def test_stop_and_resume(there):
    job = there.start("run", "-i", IMAGE, "--output", "none", "-w", 1, "--name", "mine", there.script(STAYS))
    first = there.wait_for_pods("mine", "worker-0")
    assert there.run("stop") == "mine stopped\n"
    assert "mine stopped" in there.end(job, status=65)
    again = there.start("resume")
    there.wait_for_pods("mine", "worker-0", but=first.values())
    there.touch("mine", "worker-0")
    assert "mine succeeded" in there.end(again, seconds=60)
    there.run("delete")
    there.cluster.wait(lambda: objects(there) == [], "nothing is left")
