"""Images, made on this machine out of what it has, as OCI archives that containerd imports. Nothing is downloaded.

    trainyard.test/pause:1            holds a pod's namespaces
    trainyard.test/small:1            busybox, with a shell
    trainyard.test/tensorflow:2.15    python is that of script/python-env 2.15; likewise 2.21

The last ones are almost empty: the machine's /usr and the Python environment are mounted into their containers,
read-only, by the OCI runtime (oci-runtime), so a pod need not say anything about it. Images have tags, because
Kubernetes tries to pull one without a tag each time.
"""

import hashlib
import io
import json
import pathlib
import platform
import shutil
import tarfile

from lab import Failure

PAUSE = "trainyard.test/pause:1"
SMALL = "trainyard.test/small:1"
TENSORFLOW = "trainyard.test/tensorflow:"
SHARED = ("/usr", "/etc/ssl", "/etc/alternatives")  # of the machine, in the containers of TensorFlow images
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Layer:
    """A root file system, as the archive that an image's layer is."""

    def __init__(self):
        self.bytes = io.BytesIO()
        self.tar = tarfile.open(fileobj=self.bytes, mode="w", format=tarfile.PAX_FORMAT)

    def entry(self, name, kind, mode, content=b"", target=""):
        info = tarfile.TarInfo(name.strip("/"))
        info.type, info.mode, info.size, info.linkname = kind, mode, len(content), target
        self.tar.addfile(info, io.BytesIO(content))

    def folder(self, *names, mode=0o755):
        for name in names:
            self.entry(name, tarfile.DIRTYPE, mode)

    def file(self, name, content, mode=0o644):
        self.entry(name, tarfile.REGTYPE, mode, content if isinstance(content, bytes) else content.encode())

    def link(self, name, target):
        self.entry(name, tarfile.SYMTYPE, 0o777, target=target)

    def done(self):
        self.tar.close()
        return self.bytes.getvalue()


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def archive(target, reference, layer, entrypoint=(), command=(), path=PATH):
    """Writes an OCI image archive of one layer."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    config = json.dumps({
        "architecture": machine, "os": "linux", "rootfs": {"type": "layers", "diff_ids": [digest(layer)]},
        "config": {"Env": [f"PATH={path}"], "Entrypoint": list(entrypoint), "Cmd": list(command)}}).encode()
    kind = "application/vnd.oci.image."

    def described(data, media_type, **more):
        return {"mediaType": kind + media_type, "digest": digest(data), "size": len(data), **more}

    manifest = json.dumps({"schemaVersion": 2, "mediaType": kind + "manifest.v1+json",
                           "config": described(config, "config.v1+json"),
                           "layers": [described(layer, "layer.v1.tar")]}).encode()
    index = json.dumps({"schemaVersion": 2, "manifests": [
        described(manifest, "manifest.v1+json", annotations={"io.containerd.image.name": reference})]}).encode()
    with tarfile.open(target, "w") as tar:
        for name, data in [("oci-layout", b'{"imageLayoutVersion":"1.0.0"}'), ("index.json", index),
                           *((f"blobs/{digest(data).replace(':', '/')}", data) for data in (layer, config, manifest))]:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


def accounts(layer):
    layer.folder("etc", "root", "var")
    layer.file("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n")
    layer.file("etc/group", "root:x:0:\nnogroup:x:65534:\n")
    layer.file("etc/nsswitch.conf", "hosts: files dns\n")
    layer.folder("tmp", "var/tmp", mode=0o1777)


def write_pause(target, program):
    layer = Layer()
    layer.file("pause", pathlib.Path(program).read_bytes(), 0o755)
    archive(target, PAUSE, layer.done(), ["/pause"])


def write_small(target):
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
    archive(target, SMALL, layer.done(), command=["sh"], path="/bin")


def write_tensorflow(target, version, python):
    """An image in which `python` is the given one."""
    layer = Layer()
    accounts(layer)
    layer.folder("usr")
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        if pathlib.Path("/", name).is_symlink():
            layer.link(name, f"usr/{name}")
    layer.file("etc/ld.so.cache", pathlib.Path("/etc/ld.so.cache").read_bytes())
    path = f"{pathlib.Path(python).parent}:{PATH}"
    archive(target, TENSORFLOW + version, layer.done(), command=["python"], path=path)


def shared_folders(python):
    """What the containers of a TensorFlow image see of the machine; also the Python that the environment is of."""
    environment = pathlib.Path(python).parents[1]
    lines = (environment / "pyvenv.cfg").read_text().splitlines()
    settings = dict(line.split(" = ", 1) for line in lines if " = " in line)
    base = pathlib.Path(settings["home"]).parent
    wanted = [*map(pathlib.Path, SHARED), environment, base]
    return [str(path) for path in wanted if path.is_dir() and not any(other in path.parents for other in wanted)]
