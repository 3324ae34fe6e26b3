"""The certificates of a cluster and the kubeconfigs made of them, with openssl."""

import base64
import json
import subprocess

DAYS = "30"  # no test cluster lives as long


def openssl(*words, **options):
    return subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, **options)


def new_key(path):
    openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", path)


def make_authority(folder, days=DAYS):
    """The authority that signs all others, and the pair that signs tokens of service accounts."""
    folder.mkdir(mode=0o700)
    new_key(folder / "ca.key")
    openssl("req", "-x509", "-new", "-key", folder / "ca.key", "-subj", "/CN=test-cluster", "-days", days,
            "-out", folder / "ca.crt")
    new_key(folder / "tokens.key")
    openssl("pkey", "-in", folder / "tokens.key", "-pubout", "-out", folder / "tokens.pub")


def escaped(text):
    return "".join(f"\\{letter}" if letter in "/\\+=" else letter for letter in text)


def sign(folder, file, user, groups=(), names=(), days=DAYS):
    """FILE.crt and FILE.key for a user of some groups; `names` ("DNS:…", "IP:…") for one that serves."""
    key, request = folder / f"{file}.key", folder / f"{file}.csr"
    new_key(key)
    subject = "".join(f"/O={escaped(group)}" for group in groups) + f"/CN={escaped(user)}"
    openssl("req", "-new", "-utf8", "-key", key, "-subj", subject, "-out", request)
    extensions = "keyUsage=digitalSignature,keyEncipherment\nextendedKeyUsage=serverAuth,clientAuth\n"
    if names:
        extensions += f"subjectAltName={','.join(names)}\n"
    extra = folder / f"{file}.ext"
    extra.write_text(extensions)
    openssl("x509", "-req", "-in", request, "-CA", folder / "ca.crt", "-CAkey", folder / "ca.key", "-days", days,
            "-extfile", extra, "-out", folder / f"{file}.crt")
    request.unlink()
    extra.unlink()


def encoded(path):
    return base64.b64encode(path.read_bytes()).decode()


def write_kubeconfig(folder, file, server, target):
    """A kubeconfig with everything in it (JSON is YAML), for the user whose certificate is FILE.crt."""
    target.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": server,
                                                  "certificate-authority-data": encoded(folder / "ca.crt")}}],
        "users": [{"name": file, "user": {"client-certificate-data": encoded(folder / f"{file}.crt"),
                                          "client-key-data": encoded(folder / f"{file}.key")}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": file}}]}, indent=1) + "\n")
    target.chmod(0o600)
