"""Container images, written without an engine: the same files give the same bytes.

    layer = Layer()
    layer.file("hello", program, 0o755)
    archive("hello.tar", "docker.io/library/hello:1", [layer.done()], {"Entrypoint": ["/hello"]})
"""

import gzip
import hashlib
import io
import json
import platform
import tarfile

KIND = "application/vnd.oci.image."


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


def blob(data):
    """Where a piece of an image lies in its archive."""
    return f"blobs/{digest(data).replace(':', '/')}"


def described(data, media_type, **more):
    return {"mediaType": KIND + media_type, "digest": digest(data), "size": len(data), **more}


def json_bytes(value):
    return json.dumps(value).encode()


def archive(target, reference, layers, config, compress=0):
    """Writes an OCI image archive: for containerd, podman and buildah, and by its manifest.json for any docker.

    Later layers lie over earlier ones; `compress` is gzip's level, 0 for none."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    about = json_bytes({"architecture": machine, "os": "linux", "config": config,
                        "rootfs": {"type": "layers", "diff_ids": [digest(layer) for layer in layers]}})
    packed = [gzip.compress(layer, compresslevel=compress, mtime=0) if compress else layer for layer in layers]
    kind = "layer.v1.tar" + ("+gzip" if compress else "")
    manifest = json_bytes({"schemaVersion": 2, "mediaType": KIND + "manifest.v1+json",
                           "config": described(about, "config.v1+json"),
                           "layers": [described(layer, kind) for layer in packed]})
    # containerd goes by the first of these names, the others by the second.
    names = {"io.containerd.image.name": reference, "org.opencontainers.image.ref.name": reference}
    index = json_bytes({"schemaVersion": 2, "manifests": [described(manifest, "manifest.v1+json", annotations=names)]})
    for_docker = json_bytes([{"Config": blob(about), "RepoTags": [reference], "Layers": [blob(layer) for layer in packed]}])
    with tarfile.open(target, "w") as tar:
        for name, data in [("oci-layout", b'{"imageLayoutVersion":"1.0.0"}'), ("index.json", index),
                           ("manifest.json", for_docker), *((blob(data), data) for data in (*packed, about, manifest))]:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
