"""examples/learnk8s on a cluster of the tests: its images, as its Dockerfile and Docker Hub have them, made of what the machine has.

A node of the tests can pull nothing. `learnk8s/mnist:1.0.0` is main.py in /app over the TensorFlow 2.15 of script/python-env, with
MNIST; `tensorflow/tensorflow:2.15.0` is that TensorFlow alone. So the manifests run as they are, but for TensorFlow's own server.
"""

import json
import pathlib

from cluster import node
from lab import images
from lab.components import write_json
from training import mnist
from yard import ROOT

EXAMPLE = ROOT / "examples/learnk8s"
MNIST, TENSORFLOW = "docker.io/learnk8s/mnist:1.0.0", "docker.io/tensorflow/tensorflow:2.15.0"


def write_mnist(target, python, data):
    layer = images.Layer()
    images.accounts(layer)
    layer.folder("usr")
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        if pathlib.Path("/", name).is_symlink():
            layer.link(name, f"usr/{name}")
    layer.file("etc/ld.so.cache", pathlib.Path("/etc/ld.so.cache").read_bytes())
    layer.folder("app", mode=0o1777)
    layer.file("app/main.py", (EXAMPLE / "src/main.py").read_bytes())
    images.archive(target, MNIST, [layer.done()], {
        "Env": [f"PATH={pathlib.Path(python).parent}:{images.PATH}", f"MNIST_DATA={data}"], "WorkingDir": "/app",
        "Entrypoint": ["python", "main.py"], "User": "1000"})


def load_images(cluster):
    python, data = node.python_of("2.15"), mnist()
    folder, table = cluster.dir / "images", cluster.dir / "image-mounts.json"
    shared = images.shared_folders(python)
    write_json(table, {**json.loads(table.read_text()), MNIST: [*shared, data], TENSORFLOW: shared})
    write_mnist(folder / "4-mnist.tar", python, data)
    images.write_tensorflow(folder / "5-tensorflow.tar", TENSORFLOW, python)
    for name in ("4-mnist.tar", "5-tensorflow.tar"):
        cluster.load_image(folder / name)
