"""`elasticdl` as far as it needs no cluster: help, what it refuses, --yaml, zoo, and TRAINYARD_ON=local."""

import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import tempfile

import pytest
import yaml
from iris_tutorial import client_parts
from shards import needs_client
from yard import BINARY, ROOT, Yard, wait_for

HERE = {"TRAINYARD_ON": "local"}
NO_CLUSTER = {"KUBECONFIG": "/nonexistent/config", "TRAINYARD_ON": "kubernetes"}

namespaces = pytest.mark.skipif(subprocess.run(["unshare", "-Urm", "true"], capture_output=True).returncode != 0,
                                reason="this machine does not let anybody make namespaces")

# As the tutorial has it, but for the directory of the data.
TUTORIAL = [
    "--image_name=elasticdl:1.0.0", "--worker_image=elasticdl:iris_estimator", "--ps_image=elasticdl:iris_estimator",
    "--job_command=python -m model_zoo.iris.dnn_estimator", "--master_resource_request=cpu=0.2,memory=1024Mi",
    "--master_resource_limit=cpu=1,memory=2048Mi", "--num_ps=1", "--ps_resource_request=cpu=0.2,memory=1024Mi",
    "--ps_resource_limit=cpu=1,memory=2048Mi", "--num_workers=1", "--worker_resource_request=cpu=0.3,memory=1024Mi",
    "--worker_resource_limit=cpu=1,memory=2048Mi", "--chief_resource_request=cpu=0.3,memory=1024Mi",
    "--chief_resource_limit=cpu=1,memory=2048Mi", "--num_evaluator=1", "--evaluator_resource_request=cpu=0.3,memory=1024Mi",
    "--evaluator_resource_limit=cpu=1,memory=2048Mi", "--job_name=test-iris-estimator", "--image_pull_policy=Never",
    "--distribution_strategy=ParameterServerStrategy", "--need_tf_config=true", "--volume=host_path=/srv/data,mount_path=/data"]


def train(yard, command, *words, **options):
    """A job without shards, which needs no more than its processes."""
    return yard.run("elasticdl", "train", "--job_name=edl", f"--job_command={command}", "--need_task_manager=false",
                    *words, env=HERE, **options)


def refused(yard, *words, env=HERE):
    return yard.refused("elasticdl", "train", "--job_name=edl", "--job_command=true", *words, env=env)


def lines(yard, replica):
    return [line for line in yard.log("edl", replica).splitlines() if not line.startswith("---")]


def test_no_words_are_answered_with_help(yard):
    for words in ([], ["zoo"]):
        yard.run("elasticdl", *words, status=2)
        assert yard.err.startswith("usage: elasticdl COMMAND")
    assert "zoo build" in yard.run("elasticdl", "--help")
    assert "--num_ps_pods" in yard.run("elasticdl", "train", "--help")


def test_it_goes_by_its_own_name_too(yard):
    (yard.home / "elasticdl").symlink_to(BINARY)
    done = subprocess.run([yard.home / "elasticdl", "train", "-h"], env=yard.env, capture_output=True, text=True, check=True)
    assert done.stdout == yard.run("elasticdl", "train", "-h")


@pytest.mark.parametrize("command", ["evaluate", "predict"])
def test_what_needs_elasticdls_own_runtime_says_so(yard, command):
    assert f"elasticdl {command} needs ElasticDL's own runtime" in yard.refused("elasticdl", command, "--model_def=a.b")


@pytest.mark.parametrize("words, told", [
    (["--num_wokers=2"], "unknown option --num_wokers: did you mean --num_workers?"),
    (["--num=2"], "ambiguous option: --num could be --num_workers, --num_ps_pods, --num_evaluators, "
                  "--num_minibatches_per_task, --num_epochs"),
    (["--worker_resource_request=tpu=1"],
     "--worker_resource_request: tpu is not in the allowed list of resource types: memory, disk, ephemeral-storage, cpu, gpu"),
    (["--worker_resource_limit=memory=1024"], "--worker_resource_limit: invalid memory request spec: 1024: must be a whole number "
     "with one of the units E, P, T, G, M, K, Ei, Pi, Ti, Gi, Mi and Ki, like 1024Mi"),
    (["--volume=host_path=/a"], "--volume: a volume needs a mount_path, like mount_path=/data"),
    (["--envs=secret"], "--envs: no '=' in it: must be like A=1,B=2"),
    (["--worker_pod_priority=high=0.5"], "--worker_pod_priority: must be high, low, or which part of the workers is high, from 0 "
     "to 1 like 0.5, not 'high=0.5'"),
    (["--cluster_spec_json={"], "--cluster_spec_json: "),
    (["--num_workers=0"], "--num_workers: must be a whole number from 1 to 1000, not '0'"),
    (["--restart_policy=Maybe"], "--restart_policy: must be one of Never, OnFailure, Always, not 'Maybe'"),
    (["--distribution_strategy=AllreduceStrategy"], "--distribution_strategy=AllreduceStrategy: "),
    (["extra"], "unexpected word 'extra'"),
    (["--volume=claim_name=c,mount_path=/data"], "--volume: claim_name=c: there are no claims on this machine"),
    (["--volume=host_path=/nonexistent/d,mount_path=/data"], "--volume: /nonexistent/d is not there"),
    (["--volume=host_path=/usr,mount_path=/a;host_path=/etc,mount_path=/a/b"], "is inside mount_path=/a"),
    (["--volume=host_path=/etc,type=File,mount_path=/a"], "--volume: /etc is no file"),
])
def test_options_that_cannot_be(yard, words, told):
    assert refused(yard, *words).startswith(told) or told in refused(yard, *words)


def test_an_unknown_command(yard):
    assert yard.refused("elasticdl", "trian") == "unknown command trian: did you mean train?"
    assert yard.refused("elasticdl", "zoo", "buidl") == "unknown command zoo buidl: did you mean zoo build?"


def test_a_directory_that_would_be_missed_is_not_built_anew(yard):
    """Files that a program makes beside a mount would be gone with it."""
    place = yard.home / "not/there"
    told = refused(yard, f"--volume=host_path=/etc,mount_path={place}")
    assert told.endswith(f"mkdir -p {place}") and not place.parent.exists()


# -- the objects

def objects(yard, *words):
    yard.run("elasticdl", "train", *words, "--yaml=job.yaml", env=NO_CLUSTER)
    path = yard.home / "job.yaml"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    return {o["kind"]: o for o in yaml.safe_load_all(path.read_text())}


def test_the_tutorials_objects(yard):
    made = objects(yard, *TUTORIAL)
    assert list(made) == ["ConfigMap", "Service", "Pod"]
    labels = {"app": "elasticdl", "elasticdl-job-name": "test-iris-estimator", "elasticdl-replica-type": "edl-master",
              "elasticdl-replica-index": "0"}
    master = made["Pod"]
    assert master["metadata"]["name"] == made["Service"]["metadata"]["name"] == "elasticdl-test-iris-estimator-master"
    assert master["metadata"]["labels"] == made["Service"]["spec"]["selector"] == labels
    container = master["spec"]["containers"][0]
    assert container["image"] == "elasticdl:1.0.0" and container["imagePullPolicy"] == "Never"
    assert container["args"] == ["master", "test-iris-estimator", "--namespace=default", "--ledger=/var/lib/trainyard"]
    assert container["resources"] == {"requests": {"cpu": "0.2", "memory": "1024Mi"}, "limits": {"cpu": "1", "memory": "2048Mi"}}
    assert made["ConfigMap"]["metadata"]["name"] == "test-iris-estimator-job"
    roles = json.loads(made["ConfigMap"]["data"]["spec"])["tfReplicaSpecs"]
    assert {role: spec["replicas"] for role, spec in roles.items()} == {"Chief": 1, "Worker": 1, "PS": 1, "Evaluator": 1}
    assert made["ConfigMap"]["metadata"]["annotations"]["trainyard.dev/dialect"] == "ElasticDL"


def test_what_a_shell_would_read_stays_text(yard):
    """ElasticDL pastes values into a shell line; a quote in one breaks it there."""
    command = "echo 'it'\"'\"'s' $(date) && true: -"
    made = objects(yard, *TUTORIAL, f"--job_command={command}", "--envs=A=x,y: 'z'")
    worker = json.loads(made["ConfigMap"]["data"]["spec"])["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    assert worker["command"] == ["/bin/bash", "-c",
                                 "export PYTHONPATH=/trainyard/python${PYTHONPATH:+:$PYTHONPATH};set -o pipefail;" + command]
    assert worker["env"] == [{"name": "A", "value": "x,y: 'z'"}]


def test_the_pods_carry_the_hook_of_the_tutorial(yard):
    """No published client has it; the image is the user's."""
    roles = json.loads(objects(yard, *TUTORIAL)["ConfigMap"]["data"]["spec"])["tfReplicaSpecs"]
    for template in (spec["template"] for spec in roles.values()):
        text = template["metadata"]["annotations"]["trainyard.dev/sitecustomize"]
        assert text == (ROOT / "python/site/sitecustomize.py").read_text()
        [volume] = [volume for volume in template["spec"]["volumes"] if volume["name"] == "trainyard-python"]
        assert volume["downwardAPI"]["items"] == [
            {"path": "sitecustomize.py", "fieldRef": {"fieldPath": "metadata.annotations['trainyard.dev/sitecustomize']"}}]
        mounts = template["spec"]["containers"][0]["volumeMounts"]
        assert {"name": "trainyard-python", "mountPath": "/trainyard/python", "readOnly": True} in mounts


def test_without_a_cluster_there_is_a_way_out(yard):
    assert "TRAINYARD_ON=local" in refused(yard, "--image_name=a", env=NO_CLUSTER)
    assert refused(yard, env=NO_CLUSTER).startswith("--image_name is required")


def test_the_rights_are_those_that_a_master_uses():
    made = {o["kind"]: o for o in yaml.safe_load_all((ROOT / "deploy/elasticdl-rbac.yaml").read_text())}
    assert made["Role"]["metadata"]["name"] == made["RoleBinding"]["roleRef"]["name"] == "default-role"
    assert {r for rule in made["Role"]["rules"] for r in rule["resources"]} == {"configmaps", "pods", "services", "events"}


# -- zoo

def test_zoo_init_writes_a_dockerfile_and_only_over_its_own(yard):
    (yard.home / "model_zoo").mkdir()
    yard.run("elasticdl", "zoo", "init", "--model_zoo=model_zoo")
    text = (yard.home / "Dockerfile").read_text()
    assert 'COPY ["model_zoo","/model_zoo"]\n' in text and "FROM trainyard:latest\n" in text
    yard.run("elasticdl", "zoo", "init", "--model_zoo=model_zoo", "--base_image=tensorflow/tensorflow:2.15.0")
    assert '"pip","install"' in (yard.home / "Dockerfile").read_text()
    (yard.home / "Dockerfile").write_text("FROM mine\n")
    assert "not one of `zoo init`" in yard.refused("elasticdl", "zoo", "init", "--model_zoo=model_zoo")
    assert (yard.home / "Dockerfile").read_text() == "FROM mine\n"
    assert "below the current directory" in yard.refused("elasticdl", "zoo", "init", "--model_zoo=../x")


def test_zoo_build_and_push_call_the_builder(yard):
    bin = yard.home / "bin"
    bin.mkdir()
    (bin / "buildah").write_text('#!/bin/sh\n[ "$1" = info ] || echo "$@" >> "$CALLS"\n')
    (bin / "buildah").chmod(0o755)
    env = {"PATH": f"{bin}:/nonexistent", "CALLS": str(yard.home / "calls")}
    assert "zoo init writes one" in yard.refused("elasticdl", "zoo", "build", "--image=a:1", ".", env=env)
    (yard.home / "Dockerfile").write_text("FROM x\n")
    yard.run("elasticdl", "zoo", "build", "--image=a:1", ".", env=env)
    yard.run("elasticdl", "zoo", "push", "a:1", env=env)
    assert (yard.home / "calls").read_text() == "build -t a:1 -f ./Dockerfile .\npush a:1\n"


# -- on this machine

def test_every_replica_runs_the_command_by_bash(yard):
    command = 'echo $A; python3 -c "import os; print(os.environ[\'TF_CONFIG\'])"'
    out = train(yard, command, "--num_workers=2", "--num_ps=1", "--num_evaluators=1", "--need_tf_config", "--envs=A=x,y",
                "--image_name=i")
    assert "trainyard logs -f edl" in out
    assert "--image_name: no effect on this machine" in yard.err
    yard.run("wait", "edl")
    # Of the others it is not said how far they came: the chief ends the job.
    config = json.loads(lines(yard, "chief-0")[1])
    assert lines(yard, "chief-0")[0] == "x,y" and config["task"] == {"type": "chief", "index": 0}
    assert sorted(config["cluster"]) == ["chief", "ps", "worker"] and len(config["cluster"]["worker"]) == 2
    assert all(address.startswith("127.0.0.1:") for addresses in config["cluster"].values() for address in addresses)


def test_a_failure_in_a_pipe_is_one(yard):
    train(yard, "exit 3 | cat", "--num_workers=1", "--relaunch_on_worker_failure=0")
    yard.run("wait", "edl", status=3)


def test_no_tf_config_unless_asked(yard):
    train(yard, "echo config=$TF_CONFIG", "--num_workers=2")
    yard.run("wait", "edl")
    assert lines(yard, "worker-0") == ["config="]


def volumes(yard, path):
    """A directory with a file, and the option that shows it at a path."""
    data = yard.home / "data"
    data.mkdir()
    data.chmod(0o777)
    (data / "iris.data").write_text("5.1,3.5\n")
    return data, f"--volume=host_path={data},mount_path={path}"


def test_a_volume_is_where_the_option_says_and_nowhere_else(yard):
    data, volume = volumes(yard, "/trainyard-test/data")
    before = sorted(os.listdir("/"))
    train(yard, "cat /trainyard-test/data/iris.data; echo new > /trainyard-test/data/made; pwd; ls /proc/self/exe > /dev/null && echo ok",
          volume, "--num_workers=1")
    yard.run("wait", "edl")
    assert lines(yard, "worker-0") == ["5.1,3.5", str(yard.home), "ok"]
    assert (data / "made").read_text() == "new\n"
    assert sorted(os.listdir("/")) == before and not os.path.exists("/trainyard-test")
    assert "/trainyard-test" not in pathlib.Path("/proc/self/mountinfo").read_text()


def test_a_volume_over_what_is_there_hides_it_for_the_job_only(yard):
    data, _ = volumes(yard, "/x")
    there = yard.home / "there"
    there.mkdir()
    (there / "own").write_text("own\n")
    train(yard, f"ls {there}", f"--volume=host_path={data},mount_path={there}", "--num_workers=1")
    yard.run("wait", "edl")
    assert lines(yard, "worker-0") == ["iris.data"] and os.listdir(there) == ["own"]


@pytest.fixture
def open_yard():
    """A yard where everybody may work, with the program in it: others may not reach that of a checkout."""
    with tempfile.TemporaryDirectory(prefix="trainyard-test-", dir="/tmp") as home:
        yard = Yard(pathlib.Path(home))
        for path in (yard.home, yard.home / "run"):
            path.chmod(0o777)
        (yard.home / "bin/libexec").mkdir(parents=True)
        shutil.copy(BINARY, yard.home / "bin")
        shutil.copy(BINARY.parent / "libexec/trainyard-guard", yard.home / "bin/libexec")
        yield yard
        yard.close()


@namespaces
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_somebody_who_is_not_root_has_volumes_too(open_yard):
    """By a user namespace, in which they are who they are."""
    yard = open_yard
    data, volume = volumes(yard, "/trainyard-test")

    def run(*words):
        return subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", yard.home / "bin/trainyard", *words],
                              env={**yard.env, **HERE}, cwd=yard.home, capture_output=True, text=True, timeout=120)

    done = run("elasticdl", "train", "--job_name=edl", "--need_task_manager=false", "--num_workers=1", volume,
               "--job_command=cat /trainyard-test/iris.data; id -u; touch /trainyard-test/mine; touch /mine || echo refused")
    assert done.returncode == 0, done.stderr
    assert run("wait", "edl").returncode == 0, yard.log("edl", "worker-0")
    assert [line for line in lines(yard, "worker-0") if "touch:" not in line] == ["5.1,3.5", "65534", "refused"]
    assert (data / "mine").stat().st_uid == 65534
    assert not os.path.exists("/mine") and not os.path.exists("/trainyard-test")


@namespaces
def test_where_namespaces_are_forbidden_it_says_how_to_allow_them(yard):
    """As in a container that may not mount: its rights are taken away first."""
    data, volume = volumes(yard, "/trainyard-test")
    process = subprocess.run(
        ["unshare", "-Ur", "sh", "-c", "echo 0 > /proc/sys/user/max_mnt_namespaces; exec \"$@\"", "sh", str(BINARY), "elasticdl", "train",
         "--job_name=edl", "--job_command=true", "--need_task_manager=false", volume],
        env={**yard.env, **HERE}, cwd=yard.home, capture_output=True, text=True)
    assert process.returncode == 2, process.stderr
    assert "this machine does not let you mount" in process.stderr and "sysctl -w" in process.stderr
    assert process.stderr.count("\n") == 1 and not yard.listing()


def test_a_worker_that_fails_is_started_again_as_often_as_there(yard):
    train(yard, "echo once >> tries; exit 1", "--num_workers=1", "--relaunch_on_worker_failure=2")
    yard.run("wait", "edl", status=64)
    assert (yard.home / "tries").read_text() == "once\n" * 3


def test_a_volume_lives_as_long_as_its_job(yard):
    data, volume = volumes(yard, "/trainyard-test")
    train(yard, "echo up > /trainyard-test/up; while [ ! -e /trainyard-test/finish ]; do sleep 0.05; done", volume, "--num_workers=1")
    wait_for(lambda: (data / "up").exists(), "the worker runs")
    yard.run("stop", "edl")
    yard.run("wait", "edl", status=65)
    assert not os.path.exists("/trainyard-test")


def test_a_clone_whose_client_was_never_generated_is_refused(yard):
    """python -m would import it instead of the client that is installed."""
    client = yard.home / "elasticai_api"
    (client / "proto").mkdir(parents=True)
    (client / "__init__.py").touch()
    told = yard.refused("elasticdl", "train", "--job_name=edl", "--job_command=python -m model_zoo.iris.dnn_estimator", env=HERE)
    assert "elasticai_api/proto/elasticai_api_pb2.py was never generated" in told


# -- what the client needs

TUTORIAL_IMPORTS = """
from elasticai_api.common.data_shard_service import build_data_shard_service
from elasticai_api.tensorflow.hooks import ElasticDataShardReportHook
"""


@pytest.fixture
def bare_python(yard):
    """A Python without any package, first on PATH; and an environment for it with the parts of a published client that are asked for."""
    subprocess.run(["python3", "-m", "venv", "--without-pip", yard.home / "venv"], check=True)
    zoo = yard.home / "model_zoo/iris"
    zoo.mkdir(parents=True)
    (zoo / "dnn_estimator.py").write_text(TUTORIAL_IMPORTS)
    (zoo.parent / "lazy.py").write_text("try:\n    import elasticai_api\nexcept ImportError:\n    elasticai_api = None\nprint('alone')\n")
    (zoo.parent / "indirect.py").write_text("from model_zoo.iris import dnn_estimator\n")

    def environment(*parts):
        site = yard.home / "site"
        site.mkdir()
        for part in parts:
            (site / part.name).symlink_to(part)
        return {**HERE, "PATH": f"{yard.home}/venv/bin:{os.environ['PATH']}", "VIRTUAL_ENV": "", "PYTHONPATH": str(site)}
    return environment


@pytest.mark.parametrize("command", ["python -m model_zoo.iris.dnn_estimator", "python3 -u -m model_zoo.indirect --epochs=1",
                                     "python model_zoo/iris/dnn_estimator.py"])
def test_a_client_that_is_not_installed_is_named_before_the_start(yard, bare_python, command):
    told = yard.refused("elasticdl", "train", "--job_name=edl", f"--job_command={command}", env=bare_python())
    assert "for ElasticDL's client this Python lacks elasticai_api: " in told and "venv/bin/python" in told, told
    assert told.endswith(" -m pip install elasticai_api packaging grpcio") and not yard.listing(), told


@needs_client
def test_all_that_the_published_client_imports_and_lacks_is_named_at_once(yard, bare_python):
    """elasticai_api 1.4.2 needs packaging and grpcio and asks for neither."""
    env = bare_python(*(part for part in client_parts("edl-1.4") if part.name in ("elasticai_api", "easydl", "psutil")))
    told = yard.refused("elasticdl", "train", "--job_name=edl", "--job_command=python -m model_zoo.iris.dnn_estimator", env=env)
    for module in ("packaging", "grpc", "google", "tensorflow"):
        assert re.search(rf"lacks .*\b{module}\b.*: ", told), told
    assert set(told.split(" pip install ")[1].split()) == {"packaging", "grpcio", "protobuf", "tensorflow"}, told


@needs_client
def test_run_elastic_names_it_too(yard, bare_python):
    yard.script(TUTORIAL_IMPORTS)
    told = yard.refused("run", "--elastic", "1:2", "--python", yard.home / "venv/bin/python", yard.home / "train.py", env=bare_python())
    assert "this Python lacks elasticai_api" in told and not yard.listing()


@pytest.mark.parametrize("command", ["python -m model_zoo.lazy", "cd model_zoo && python lazy.py"])
def test_a_program_that_can_do_without_the_client_is_not_refused(yard, bare_python, command):
    train(yard, command, "--num_workers=1")
    yard.run("wait", "edl")
    assert lines(yard, "worker-0") == ["alone"]


def test_sources_of_the_client_that_were_never_generated_are_named_wherever_they_lie(yard, bare_python):
    env = bare_python()
    client = yard.home / "site/elasticai_api"
    (client / "common").mkdir(parents=True)
    (client / "proto").mkdir()
    for package in ("", "common", "proto"):
        (client / package / "__init__.py").touch()
    (client / "common/data_shard_service.py").write_text("from elasticai_api.proto import elasticai_api_pb2\n")
    (yard.home / "model_zoo/iris/dnn_estimator.py").write_text(TUTORIAL_IMPORTS.splitlines()[1])
    told = yard.refused("elasticdl", "train", "--job_name=edl", "--job_command=python -m model_zoo.iris.dnn_estimator", env=env)
    assert "elasticai_api/proto/elasticai_api_pb2.py was never generated" in told
