"""Images, made on this machine out of what it has, as OCI archives that containerd imports. Nothing is downloaded.

    trainyard.test/pause:1            holds a pod's namespaces
    trainyard.test/small:1            busybox, with a shell
    trainyard.test/tensorflow:2.15    python is that of script/python-env 2.15; likewise 2.21

The last ones are almost empty: the machine's /usr and the Python environment are mounted into their containers,
read-only, by the OCI runtime (oci-runtime), so a pod need not say anything about it. Images have tags, because
Kubernetes tries to pull one without a tag each time.
"""

import pathlib
import shutil
import sys

from lab import Failure

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "script"))

from oci_image import Layer, archive  # noqa: E402

PAUSE = "trainyard.test/pause:1"
SMALL = "trainyard.test/small:1"
TENSORFLOW = "trainyard.test/tensorflow:"
SHARED = ("/usr", "/etc/ssl", "/etc/alternatives")  # of the machine, in the containers of TensorFlow images
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def write(target, reference, layer, path=PATH, **config):
    archive(target, reference, [layer.done()], {"Env": [f"PATH={path}"], **config})


def accounts(layer):
    layer.folder("etc", "root", "var")
    layer.file("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n")
    layer.file("etc/group", "root:x:0:\nnogroup:x:65534:\n")
    layer.file("etc/nsswitch.conf", "hosts: files dns\n")
    layer.folder("tmp", "var/tmp", mode=0o1777)


def write_pause(target, program):
    layer = Layer()
    layer.file("pause", pathlib.Path(program).read_bytes(), 0o755)
    write(target, PAUSE, layer, Entrypoint=["/pause"])


def write_small(target, reference=SMALL):
    busybox = shutil.which("busybox")
    if busybox is None:
        raise Failure("there is no busybox: script/setup cluster")
    layer = Layer()
    accounts(layer)
    layer.folder("bin")
    layer.file("bin/busybox", pathlib.Path(busybox).read_bytes(), 0o755)
    for name in ("awk", "cat", "dd", "echo", "env", "false", "hostname", "id", "kill", "ls", "mkdir", "nc", "nslookup",
                 "ps", "rm", "sh", "sleep", "tail", "test", "touch", "true", "wc"):
        layer.link(f"bin/{name}", "busybox")
    write(target, reference, layer, "/bin", Cmd=["sh"])


def write_tensorflow(target, reference, python):
    """An image in which `python` is the given one."""
    layer = Layer()
    accounts(layer)
    layer.folder("usr")
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        if pathlib.Path("/", name).is_symlink():
            layer.link(name, f"usr/{name}")
    layer.file("etc/ld.so.cache", pathlib.Path("/etc/ld.so.cache").read_bytes())
    write(target, reference, layer, f"{pathlib.Path(python).parent}:{PATH}", Cmd=["python"])


def shared_folders(python):
    """What the containers of a TensorFlow image see of the machine; also the Python that the environment is of."""
    environment = pathlib.Path(python).parents[1]
    lines = (environment / "pyvenv.cfg").read_text().splitlines()
    settings = dict(line.split(" = ", 1) for line in lines if " = " in line)
    base = pathlib.Path(settings["home"]).parent
    wanted = [*map(pathlib.Path, SHARED), environment, base]
    return [str(path) for path in wanted if path.is_dir() and not any(other in path.parents for other in wanted)]
