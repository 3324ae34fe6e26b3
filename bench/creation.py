"""How soon the objects of 500 workers exist: `tf-spawner -w 500` beside a plain client that sends the same requests.

    python bench/creation.py TRAINYARD [--check]

The API server is fresh, writes through to the disk, and has no node. The plain client has its requests ready, sends them over 16, 32 or
64 connections (curl), and looks at no answer but its status: what it takes is what the server takes. They take turns, each in a
namespace of its own, after the controllers have finished with what was created before. With --check it fails where trainyard takes more
than GOAL times as long as the quickest of the plain clients, and more than SECONDS.
"""

import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests/support"), str(ROOT / "tests/cluster")]

from cluster import Cluster  # noqa: E402

WORKERS = 500
ROUNDS = 3
CONNECTIONS = (16, 32, 64)
GOAL = 1.2
SECONDS = 3
KINDS = ("configmaps", "services", "pods")  # in the order of creation
OF_SERVER = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "ownerReferences")


def namespace(cluster, name):
    cluster.api.post("/api/v1/namespaces", {"metadata": {"name": name}})
    cluster.wait(lambda: cluster.api.get(f"/api/v1/namespaces/{name}/serviceaccounts/default"), "the service account")
    return f"/api/v1/namespaces/{name}"


def rest(cluster, path, workers):
    """Returns when the controllers have finished with the objects of this namespace."""
    slices = path.replace("/api/v1", "/apis/discovery.k8s.io/v1")
    cluster.wait(lambda: len(cluster.api.get(f"{slices}/endpointslices")["items"]) >= workers
                 and len(cluster.api.get(f"{path}/endpoints")["items"]) >= workers, "the endpoints of all services", 120)
    time.sleep(1)  # for what has no object to wait for, such as the compaction of the store's log


def ours(program, script, cluster, name):
    path = namespace(cluster, name)
    begin = time.monotonic()
    subprocess.run([program, "tf-spawner", "-w", str(WORKERS), "-t", "bench", "-n", name, script], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, cwd=pathlib.Path(script).parent, env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig)})
    took = time.monotonic() - begin
    rest(cluster, path, WORKERS)
    return took


def requests_of(cluster, name):
    """The bodies of the requests that create what there is in the namespace, by kind."""
    out = {}
    for kind in KINDS:
        items = cluster.api.get(f"/api/v1/namespaces/{name}/{kind}")["items"]
        for item in items:
            item.pop("status", None)
            item["metadata"] = {key: value for key, value in item["metadata"].items() if key not in (*OF_SERVER, "namespace")}
            for given in ("clusterIP", "clusterIPs"):
                if item.get("spec", {}).get(given) not in (None, "None", ["None"]):
                    item["spec"].pop(given)
        out[kind] = [json.dumps(item).encode() for item in items if item["metadata"]["name"] != "kube-root-ca.crt"]
    return out


def plain(bodies, connections, cluster, name, folder):
    """curl, which gets its requests as files."""
    path, pki = namespace(cluster, name), cluster.dir / "pki"
    always = [f'cacert = "{pki}/ca.crt"', f'cert = "{pki}/admin.crt"', f'key = "{pki}/admin.key"', "http1.1", "fail",
              'header = "Content-Type: application/json"', 'output = "/dev/null"']
    configs = []
    for kind in KINDS:
        requests = []
        for number, body in enumerate(bodies[kind]):
            file = pathlib.Path(folder, f"{kind}-{number}.json")
            file.write_bytes(body)
            requests.append("\n".join([*always, f'url = "{cluster.server}{path}/{kind}"', f'data-binary = "@{file}"']))
        configs.append(pathlib.Path(folder, f"{kind}.curl"))
        configs[-1].write_text("\nnext\n".join(requests))
    begin = time.monotonic()
    for config in configs:
        subprocess.run(["curl", "--parallel", "--parallel-max", str(connections), "--config", config], check=True, stderr=subprocess.DEVNULL)
    took = time.monotonic() - begin
    assert len(cluster.api.get(f"{path}/pods")["items"]) == WORKERS
    rest(cluster, path, WORKERS)
    return took


def stop(number, _):
    raise SystemExit(128 + number)


def main(program, check):
    for number in (signal.SIGTERM, signal.SIGHUP):  # the cluster is taken down on the way out
        signal.signal(number, stop)
    found = {"trainyard": [], **{f"plain, {count} connections": [] for count in CONNECTIONS}}
    with Cluster.up(fsync=True) as cluster, tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder, "train.py")
        script.write_text("print('nothing')\n")
        ours(program, str(script), cluster, "warm")
        bodies = requests_of(cluster, "warm")
        for number in range(ROUNDS):
            found["trainyard"].append(ours(program, str(script), cluster, f"ours-{number}"))
            for count in CONNECTIONS:
                found[f"plain, {count} connections"].append(plain(bodies, count, cluster, f"plain-{count}-{number}", folder))
            print(f"creation: round {number + 1}: " + ", ".join(f"{who} {times[-1]:.2f} s" for who, times in found.items()),
                  file=sys.stderr, flush=True)
    objects = sum(map(len, bodies.values()))
    for who, times in found.items():
        print(f"{who:<24}{objects} objects in {statistics.median(times):5.2f} s ({min(times):.2f} to {max(times):.2f}), "
              f"{objects / statistics.median(times):4.0f}/s")
    own, *others = (statistics.median(times) for times in found.values())
    ratio = own / min(others)
    print(f"trainyard takes {ratio:.2f} times as long as the quickest plain client (goal: {GOAL}, or {SECONDS} s), medians of {ROUNDS}")
    if check and ratio > GOAL and own > SECONDS:
        raise SystemExit("missed: creation of the objects of 500 workers")


if __name__ == "__main__":
    main(str(pathlib.Path(sys.argv[1]).resolve()), "--check" in sys.argv[2:])
