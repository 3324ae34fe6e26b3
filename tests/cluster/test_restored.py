"""etcd is restored to an earlier copy of its data while the operator runs."""

import shutil
import urllib.error

from cluster import Cluster, holds
from jobs import create, namespace, path, worker
from play_kubelet import PlayKubelet
from trainyard_operator import install_crd, operator

CLEAN = {"runPolicy": {"cleanPodPolicy": "None"}}
LATER = 40  # jobs that the copy does not have: with their pods and services, hundreds of versions


def stop_servers(cluster):
    for component in ("apiserver", "etcd"):
        cluster.kill(component)


def start_servers(cluster):
    for component in ("etcd", "apiserver"):
        cluster.restart(component)


def readiness(it):
    """What /readyz answers."""
    try:
        return it.get("health", "/readyz")
    except urllib.error.HTTPError as error:
        return error.read().decode()


def test_the_operator_recovers_from_an_etcd_that_was_restored():
    with Cluster.up() as cluster:
        install_crd(cluster)
        where = namespace(cluster, "team")
        kubelet = PlayKubelet(cluster.api, where)

        def pods():
            return {pod["metadata"]["name"] for pod in cluster.pods(where)}

        def status(name):
            return cluster.api.get(path(where, name)).get("status", {})

        def shows(name, condition):
            return holds({"status": status(name)}, condition)
        with operator(cluster) as it:
            pid = it.pid
            for name in ("ended-later", "scaled-later", "deleted-later"):
                create(cluster, where, name, worker(**CLEAN))
            first = {"ended-later-worker-0", "scaled-later-worker-0", "deleted-later-worker-0"}
            cluster.wait(lambda: pods() == first, "the first pods")
            for name in sorted(first):
                kubelet.running(name)
            cluster.wait(lambda: all(shows(name, "Running") for name in ("ended-later", "scaled-later", "deleted-later")), "all run")

            stop_servers(cluster)
            shutil.copytree(cluster.dir / "etcd", cluster.dir / "etcd-copy")
            start_servers(cluster)

            kubelet.ended("ended-later-worker-0")
            cluster.wait(lambda: shows("ended-later", "Succeeded"), "it has ended")
            cluster.kubectl("-n", where, "patch", "tfjob", "scaled-later", "--type=merge",
                            "-p", '{"spec":{"tfReplicaSpecs":{"Worker":{"replicas":2}}}}')
            cluster.wait(lambda: "scaled-later-worker-1" in pods(), "it has grown")
            cluster.api.delete(path(where, "deleted-later"))
            for number in range(LATER):
                create(cluster, where, f"forgotten-{number}", worker(**CLEAN))
            cluster.wait(lambda: sum(name.startswith("forgotten-") for name in pods()) == LATER, "the pods of later jobs")
            cluster.wait(lambda: it.metrics()["trainyard_jobs"] == LATER + 2, "the operator knows all jobs")

            stop_servers(cluster)
            shutil.rmtree(cluster.dir / "etcd")
            (cluster.dir / "etcd-copy").rename(cluster.dir / "etcd")
            start_servers(cluster)

            # The operator is not ready until it has listed the restored data.
            cluster.wait(lambda: "restored from a backup" in readiness(it), "the operator is not ready", 180)
            cluster.wait(lambda: readiness(it) == "ok", "the operator is ready", 180)
            assert it.process.poll() is None and it.pid == pid
            assert it.metrics()["trainyard_jobs"] == 3
            assert pods() == first, "what the copy does not have is not made again"

            # It acts on the restored jobs, in their restored state.
            create(cluster, where, "made-after", worker(**CLEAN))
            cluster.wait(lambda: "made-after-worker-0" in pods(), "the pod of a new job")
            for name in ("ended-later", "scaled-later", "deleted-later"):
                assert shows(name, "Running") and not shows(name, "Succeeded")
                kubelet.ended(f"{name}-worker-0")
                cluster.wait(lambda: shows(name, "Succeeded"), f"{name} has ended")
                assert status(name).get("restarts", 0) == 0
