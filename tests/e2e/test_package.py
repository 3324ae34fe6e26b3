"""`trainyard package`: an image of a directory of code, by the builder that the machine has."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile

import pytest
from yard import ROOT, wait_for

sys.path.insert(0, str(ROOT / "script"))

from oci_image import Layer, archive  # noqa: E402

# Writes down how it was called and what there was to build, and ends as DOCKER_build=3 and the like say.
BUILDER = """#!/usr/bin/python3
import json, os, pathlib, sys, time
name, verb = pathlib.Path(sys.argv[0]).name, sys.argv[1]
call = {'argv': [name, *sys.argv[1:]]}
if verb == 'build':
    context = pathlib.Path(sys.argv[-1])
    call['files'] = sorted(str(p.relative_to(context)) for p in context.rglob('*') if p.is_file())
    call['dockerfile'] = pathlib.Path(sys.argv[sys.argv.index('-f') + 1]).read_text()
    call['scratch'] = str(context)
    print('built by', name)
with open(os.environ['CALLS'], 'a') as calls: calls.write(json.dumps(call) + '\\n')
ending = os.environ.get(f'{name.upper()}_{verb}', '0')
if ending == 'never': time.sleep(1000)
if ending != '0': print('first\\nit cannot', file=sys.stderr)
sys.exit(int(ending))
"""


class Builders:
    """Builders of these names and no others on PATH."""

    def __init__(self, yard, names):
        self.yard, self.log, bin = yard, yard.home / "calls", yard.home / "bin"
        bin.mkdir()
        for name in names:
            (bin / name).write_text(BUILDER)
            (bin / name).chmod(0o755)
        self.env = {"PATH": str(bin), "CALLS": str(self.log)}

    def calls(self):
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [call for call in map(json.loads, lines) if call["argv"][1] != "info"]

    def run(self, *words, **options):
        env = {**self.env, **options.pop("env", {})}
        return self.yard.run("package", *words, env=env, **options)

    def refused(self, *words, **env):
        return self.yard.refused("package", *words, env={**self.env, **env})


@pytest.fixture
def builders(yard):
    return lambda *names: Builders(yard, names)


@pytest.fixture
def code(yard):
    folder = yard.home / "code"
    for name in ("train.py", "helpers/data.py", "requirements.txt", ".env", ".git/config", "__pycache__/train.pyc",
                 "helpers/__pycache__/data.pyc"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"# {name}\n")
    return folder


def test_it_builds_what_belongs_into_the_image_and_says_how_to_use_it(yard, builders, code):
    here = builders("docker", "podman")
    said = here.run(code, "-t", "team/mnist:1")
    [call] = here.calls()
    assert call["argv"][:4] == ["docker", "build", "-t", "team/mnist:1"]
    assert call["files"] == ["helpers/data.py", "requirements.txt", "train.py"]
    assert call["dockerfile"] == here.run(code, "-t", "team/mnist:1", "--dry-run")
    assert f"{yard.home}/bin/docker build" in said and "built by docker" in said
    assert said.endswith(f"team/mnist:1 is built. To train with it:\n  trainyard run {code} -i team/mnist:1 --on kubernetes\n")
    assert not os.path.exists(call["scratch"]) and not list((yard.home / "tmp").iterdir())


@pytest.mark.parametrize("broken, chosen", [({}, "docker"), ({"DOCKER_info": "1"}, "podman"),
                                            ({"DOCKER_info": "1", "PODMAN_info": "1"}, "buildah")])
def test_the_first_builder_that_works_is_taken(builders, code, broken, chosen):
    here = builders("docker", "podman", "buildah")
    here.run(code, "-t", "a", env=broken)
    assert [call["argv"][0] for call in here.calls()] == [chosen]


def test_without_a_builder_it_says_what_to_install(builders, code):
    assert builders().refused(code, "-t", "a") == "no docker, podman or buildah to build with; install one: apt-get install buildah"


def test_a_docker_without_its_engine_is_told(yard, builders, code):
    line = builders("docker").refused(code, "-t", "a", DOCKER_info="1")
    assert f"`{yard.home}/bin/docker info` says: it cannot; install one" in line


def test_a_build_that_fails_is_told_with_its_status_and_nothing_is_pushed(yard, builders, code):
    here = builders("docker")
    here.run(code, "-t", "a", "--push", status=1, env={"DOCKER_build": "3"})
    assert yard.err.endswith(f"it cannot\ntrainyard: {yard.home}/bin/docker build failed with exit status 3\n")
    assert [call["argv"][1] for call in here.calls()] == ["build"]


def test_push(yard, builders, code):
    here = builders("podman")
    assert "a:1 is pushed" in here.run(code, "-t", "a:1", "--push")
    assert here.calls()[1]["argv"] == ["podman", "push", "a:1"]
    here.run(code, "-t", "a:1", "--push", status=1, env={"PODMAN_push": "125"})
    assert "podman push failed with exit status 125" in yard.err


def test_a_dockerfile_of_ones_own_is_used_where_it_is(builders, code):
    (code / "Dockerfile").write_text("FROM scratch\n")
    here = builders("docker")
    here.run(code, "-t", "a")
    assert here.calls()[0]["argv"] == ["docker", "build", "-t", "a", "-f", f"{code}/Dockerfile", str(code)]
    assert "Dockerfile says what the image begins with" in here.refused(code, "-t", "a", "--base", "b")


def test_a_dry_run_needs_no_builder(builders, code):
    assert builders().run(code, "-t", "a", "--base", "b:2", "--dry-run").startswith("FROM b:2\n")


def test_refusals(yard, builders, code):
    here = builders("docker")
    assert "which directory?" in here.refused("-t", "a")
    assert "not a directory" in here.refused(code / "train.py", "-t", "a")
    assert "-t IMAGE" in here.refused(code)
    assert "-t: must be an image's name" in here.refused(code, "-t", "a b")
    assert "--base: must be an image's name" in here.refused(code, "-t", "a", "--base", "a b")
    (code / "link").symlink_to("/etc/passwd")
    assert "leads out of" in here.refused(code, "-t", "a")
    assert here.calls() == []


def test_an_interrupt_ends_the_builder_and_leaves_nothing(yard, builders, code):
    here = builders("docker")
    process = yard.start("package", code, "-t", "a", env={**here.env, "DOCKER_build": "never"})
    wait_for(here.calls, "it builds")
    process.send_signal(signal.SIGINT)
    yard.end(process, status=130)
    assert not list((yard.home / "tmp").iterdir())


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("buildah"), reason="needs root and buildah")
def test_buildah_builds_it(yard, code):
    """From an image that is made here, with a script as its Python."""
    layer = Layer()
    layer.folder("usr", "usr/bin", "tmp")
    layer.file("usr/bin/busybox", pathlib.Path(shutil.which("busybox")).read_bytes(), 0o755)
    layer.file("usr/bin/python3", '#!/usr/bin/busybox sh\necho "$@" > /trainyard/pip\n', 0o755)
    archive(yard.home / "base.tar", "base.test/python:1", [layer.done()], {"Env": ["PATH=/usr/bin"]})
    (yard.home / "storage.conf").write_text(
        f'[storage]\ndriver = "vfs"\ngraphroot = "{yard.home}/graph"\nrunroot = "{yard.home}/runroot"\n')
    (yard.home / "bin").mkdir()
    (yard.home / "bin/buildah").symlink_to(shutil.which("buildah"))
    env = {"CONTAINERS_STORAGE_CONF": str(yard.home / "storage.conf"), "BUILDAH_ISOLATION": "chroot",
           "PATH": f"{yard.home}/bin"}

    def buildah(*words):
        subprocess.run(["buildah", *words], env={**yard.env, **env, "PATH": os.environ["PATH"]}, check=True, capture_output=True)
    buildah("pull", f"oci-archive:{yard.home}/base.tar")
    yard.run("package", code, "-t", "mnist.test/mnist:1", "--base", "base.test/python:1", env=env)
    buildah("push", "mnist.test/mnist:1", f"docker-archive:{yard.home}/made.tar")
    with tarfile.open(yard.home / "made.tar") as made:
        [about] = json.load(made.extractfile("manifest.json"))
        config = json.load(made.extractfile(about["Config"]))["config"]
        layers = [tarfile.open(fileobj=made.extractfile(name)) for name in about["Layers"]]
        files = {member.name: (member.uid, layer.extractfile(member).read())
                 for layer in layers for member in layer if member.isfile()}
    assert (config["User"], config["Entrypoint"]) == ("1000:1000", ["python3", "/trainyard/code/train.py"])
    assert files["trainyard/code/helpers/data.py"] == (1000, b"# helpers/data.py\n")
    assert files["trainyard/pip"][1] == b"-m pip install --no-cache-dir -r /trainyard/requirements.txt\n"
    assert not any(".env" in name or "__pycache__" in name for name in files)
