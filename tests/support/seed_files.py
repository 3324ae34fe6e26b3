"""The original files of the four seed projects, and images for what they name. The files are not part of this repository.

SEED_FILES is a folder with checkouts of them:

    tf-spawner   cerndb/tf-spawner                         learnk8s   learnk8s/distributed-tensorflow-on-k8s (486da66)
    workshop     AICoE/openshift_kubeflow_workshop (35fd669)   elasticdl  sql-machine-learning/elasticdl

A node of the tests can pull nothing. In each image TensorFlow 2.15 takes the place of the version that its Dockerfile names, and
tests/support/tensorflow1 gives the scripts the interface of TensorFlow 1. /buckets is a folder of the node in place of MinIO.
"""

import json
import os
import pathlib
import shutil
import subprocess

from cluster import node
from iris_tutorial import client_parts
from lab import images
from lab.components import write_json
from training import mnist
from yard import BINARY, ROOT, write_image

FILES = pathlib.Path(os.environ.get("SEED_FILES", "/nonexistent"))
SPAWNER, LEARNK8S, WORKSHOP, ELASTICDL = (FILES / name for name in ("tf-spawner", "learnk8s", "workshop", "elasticdl"))
TENSORFLOW_1 = ROOT / "tests/support/tensorflow1/sitecustomize.py"
HUB, LIBRARY = "docker.io/", "docker.io/library/"
SERVERS = [HUB + "tensorflow/serving:1.12.0", "gcr.io/kubeflow-images-public/tf-model-server-cpu:v20180614-f6377404"]
# In place of tensorflow_model_server, with its flags.
MODEL_SERVER = """#!/bin/sh
for word; do
  case $word in
    --port=*) port=${word#*=} ;;
    --rest_api_port=*) rest=${word#*=} ;;
    --model_name=*) name=${word#*=} ;;
    --model_base_path=s3://*) path=/buckets/${word#*=s3://} ;;
    --model_base_path=*) path=${word#*=} ;;
    *) echo "unknown flag: $word"; exit 1 ;;
  esac
done
exec /usr/bin/trainyard serve "$path" --name "$name" --port "$port" --rest-port "${rest:-8501}" --host 0.0.0.0 --open
"""


def add(layer, path, name):
    if path.is_dir():
        layer.folder(name)
        for each in sorted(path.iterdir()):
            if each.name != "__pycache__":
                add(layer, each, f"{name}/{each.name}")
    else:
        layer.file(name, path.read_bytes(), path.stat().st_mode & 0o777)


def write_over_tensorflow(target, reference, python, files=None, **config):
    """An image with the TensorFlow of `python`, and with these files: {path: where it is on this machine}."""
    layer = images.Layer()
    images.accounts(layer)
    layer.folder("usr", "opt", "opt/tensorflow1")
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        if pathlib.Path("/", name).is_symlink():
            layer.link(name, f"usr/{name}")
    layer.file("etc/ld.so.cache", pathlib.Path("/etc/ld.so.cache").read_bytes())
    add(layer, TENSORFLOW_1, "opt/tensorflow1/sitecustomize.py")
    for path, source in (files or {}).items():
        for parent in reversed(pathlib.Path(path).parents[:-1]):
            layer.folder(str(parent))
        add(layer, source, path)
    env = {"PATH": f"{pathlib.Path(python).parent}:{images.PATH}", "PYTHONPATH": "/opt/tensorflow1", "MNIST_DATA": mnist(),
           "PYTHONDONTWRITEBYTECODE": "1", **config.pop("env", {})}
    images.archive(target, reference, [layer.done()], {"Env": [f"{name}={value}" for name, value in env.items()], **config})


def write_server(target, reference, python):
    """The image that script/image makes for serving, with a tensorflow_model_server."""
    root = target.with_suffix("")
    subprocess.run([ROOT / "script/image", "--serving", python, "--root", root], check=True,
                   env={**os.environ, "TRAINYARD_BINARY": str(BINARY)})
    layer = images.Layer()
    for each in sorted(root.iterdir()):
        add(layer, each, each.name)
    layer.file("bin/sh", pathlib.Path(shutil.which("busybox")).read_bytes(), 0o755)
    layer.file("usr/bin/tensorflow_model_server", MODEL_SERVER, 0o755)
    layer.folder("tmp", mode=0o1777)
    images.archive(target, reference, [layer.done()], {
        "Env": ["PATH=/usr/bin:/bin", "HOME=/tmp", "TRAINYARD_TENSORFLOW=/usr/lib/tensorflow"]})
    shutil.rmtree(root)


def load_images(cluster, buckets):
    """Gives the node all images; /buckets is the folder."""
    folder, table, python = cluster.dir / "images", cluster.dir / "image-mounts.json", node.python_of("2.15")
    shared = [*images.shared_folders(python), mnist()]
    bucket = {"destination": "/buckets", "source": str(buckets), "type": "bind", "options": ["rbind", "rw"]}
    old, client = {"TENSORFLOW_1": "1"}, {f"opt/client/{part.name}": part for part in client_parts("edl-1.4")}
    trainers = {
        HUB + "tensorflow/tensorflow:2.1.0-py3": {},
        HUB + "tensorflow/tensorflow:2.15.0": {},
        HUB + "learnk8s/mnist:1.0.0": {"files": {"app/main.py": LEARNK8S / "src/main.py"}, "env": old, "WorkingDir": "/app",
                                       "Entrypoint": ["python", "/app/main.py"]},
        LIBRARY + "training-user1:1": {"files": {"home/tensorflow/model.py": WORKSHOP / "containers/training/model.py"}, "env": old,
                                       "WorkingDir": "/home/tensorflow",
                                       "Entrypoint": ["/bin/sh", "-c", "python /home/tensorflow/model.py"]},
        LIBRARY + "elasticdl:iris_estimator": {"files": {"model_zoo": ELASTICDL / "model_zoo", **client},
                                               "env": {**old, "PYTHONUNBUFFERED": "0", "PYTHONPATH": "/opt/tensorflow1:/opt/client"},
                                               "WorkingDir": "/"}}
    mounts = {**json.loads(table.read_text()), **{reference: [*shared, bucket] for reference in trainers},
              **{reference: [bucket] for reference in SERVERS}}
    write_json(table, mounts)
    for number, (reference, config) in enumerate(trainers.items()):
        write_over_tensorflow(folder / f"seed-{number}.tar", reference, python, **config)
        cluster.load_image(folder / f"seed-{number}.tar")
    for number, reference in enumerate(SERVERS):
        write_server(folder / f"seed-server-{number}.tar", reference, python)
        cluster.load_image(folder / f"seed-server-{number}.tar")
    master = folder / "seed-master.tar"
    write_image(master, "--tag", LIBRARY + "elasticdl:1.0.0")
    cluster.load_image(master)
