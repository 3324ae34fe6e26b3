"""`run -f`: every form of manifest runs here, or is refused with the path of the field."""

import json

import pytest

from yard import ROOT

DATA = ROOT / "tests/data/manifests"
COMMAND = """command: [python3, -c, "import os; print(os.environ.get('TF_CONFIG', 'alone'))"]"""
POD = "{spec: {containers: [{name: tensorflow, image: a, COMMAND}]}}".replace("COMMAND", COMMAND)

FORMS = {
    "v1": """
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: form}
spec:
  tfReplicaSpecs:
    Worker: {replicas: 2, template: POD}
""",
    "v1 with top-level policies": """
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: form}
spec:
  cleanPodPolicy: Running
  backoffLimit: 1
  tfReplicaSpecs:
    Worker: {replicas: 2, template: POD}
""",
    "any letter case": """
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: form}
spec:
  tfReplicaSpecs:
    MASTER: {template: POD}
    wOrker: {replicas: 2, template: POD}
""",
    "v1beta2": """
apiVersion: kubeflow.org/v1beta2
kind: TFJob
metadata: {name: form}
spec:
  cleanPodPolicy: All
  tfReplicaSpecs:
    Chief: {replicas: 1, template: POD}
    Worker: {replicas: 2, template: POD}
""",
    "v1beta1": """
apiVersion: kubeflow.org/v1beta1
kind: TFJob
metadata: {name: form}
spec:
  cleanPodPolicy: None
  tfReplicaSpecs:
    Chief: {replicas: 1, template: POD}
    Ps: {replicas: 1, template: POD}
    Worker: {replicas: 2, template: POD}
""",
    "v1alpha2": """
apiVersion: kubeflow.org/v1alpha2
kind: TFJob
metadata: {name: form}
spec:
  tfReplicaSpecs:
    Worker: {replicas: 2, template: POD}
""",
    "v1alpha1, a list": """
apiVersion: kubeflow.org/v1alpha1
kind: TFJob
metadata: {name: form}
spec:
  replicaSpecs:
    - {replicas: 1, tfReplicaType: MASTER, template: POD}
    - {replicas: 2, tfReplicaType: WORKER, template: POD}
    - {replicas: 1, tfReplicaType: PS, template: POD}
""",
    "the first of all": """
apiVersion: tensorflow.org/v1alpha1
kind: TfJob
metadata: {name: form}
spec:
  ReplicaSpecs:
    - {Replicas: 1, TfReplicaType: MASTER, Template: POD}
    - {Replicas: 1, TfReplicaType: WORKER, Template: POD}
""",
    "JSON": json.dumps({"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "form"}, "spec": {
        "tfReplicaSpecs": {"Worker": {"replicas": 2, "template": {"spec": {"containers": [
            {"name": "tensorflow", "image": "a", "command": ["true"]}]}}}}}}),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_runs(yard, form):
    yard.run("run", "-f", yard.script(FORMS[form].replace("POD", POD), "job.yaml"))
    assert yard.has("form", "Succeeded")
    got = json.loads(yard.run("get", "form", "-o", "json"))
    assert got["apiVersion"] == "kubeflow.org/v1" and "tfReplicaSpecs" in got["spec"]


def job(specs, more="", name="made"):
    return f"""
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {{name: {name}}}
spec:
  {more}
  tfReplicaSpecs:
    {specs}
""".replace("POD", POD)


def test_replicas_0_makes_none(yard):
    yard.run("run", "-f", yard.script(job("PS: {replicas: 0, template: POD}\n    Worker: {template: POD}"), "job.yaml"))
    assert [p.name for p in (yard.dir("made") / "logs").glob("*.log")] == ["worker-0.log"]
    assert "alone" in yard.log("made", "worker-0")


def test_several_chiefs_run(yard):
    yard.run("run", "-f", yard.script(job("Chief: {replicas: 2, template: POD}\n    Worker: {template: POD}"), "job.yaml"))
    config = json.loads(yard.log("made", "chief-1").splitlines()[-1])
    assert len(config["cluster"]["chief"]) == 2 and config["task"] == {"type": "chief", "index": 1}


def test_a_job_of_parameter_servers_only_is_refused(yard):
    line = yard.refused("run", "-f", yard.script(job("PS: {template: POD}"), "job.yaml"))
    assert "nothing to train" in line


def test_a_container_without_a_command_is_refused_with_its_path(yard):
    text = job("Worker: {template: {spec: {containers: [{name: tensorflow, image: a}]}}}")
    assert "spec.tfReplicaSpecs.Worker.template.spec.containers" in yard.refused("run", "-f", yard.script(text, "job.yaml"))


def test_suspend_in_a_manifest_starts_nothing_until_resumed(yard):
    manifest = yard.script(job("Worker: {template: POD}", more="runPolicy: {suspend: true}"), "job.yaml")
    yard.run("run", "-f", manifest, status=65)
    assert "Suspended" in yard.run("ps") and not yard.log("made", "worker-0")
    yard.run("resume")
    assert yard.has("made", "Succeeded")


def test_ports_of_a_manifest_are_kept_as_they_are(yard):
    ports = "[{containerPort: 6006}, {name: stats, containerPort: 8125, protocol: UDP}]"
    text = job("Worker: {template: {spec: {containers: [{name: tensorflow, image: a, command: ['true'], ports: PORTS}]}}}")
    yard.run("run", "-f", yard.script(text.replace("PORTS", ports), "job.yaml"))
    got = json.loads(yard.run("get", "-o", "json"))
    container = got["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    assert [port["containerPort"] for port in container["ports"]][:2] == [6006, 8125]
    assert container["ports"][1]["protocol"] == "UDP" and "name" not in container["ports"][0]


def test_variables_of_a_manifest_are_expanded(yard):
    container = ("{name: tensorflow, image: a, command: [echo], args: [\"$(GREETING) $(TRAINYARD_ROLE) $$(GREETING) $(NOBODY)\"],"
                 " env: [{name: GREETING, value: hello}]}")
    text = job("Worker: {template: {spec: {containers: [CONTAINER]}}}").replace("CONTAINER", container)
    yard.run("run", "-f", yard.script(text, "job.yaml"))
    assert yard.log("made", "worker-0").splitlines()[-1] == "hello worker $(GREETING) $(NOBODY)"


@pytest.mark.parametrize("file", sorted(p.name for p in (DATA / "bad").iterdir() if p.suffix != ".err"))
def test_every_bad_manifest_is_refused_and_starts_nothing(yard, file):
    yard.run("run", "-f", DATA / "bad" / file, status=2)
    assert not yard.listing() and not yard.processes()
    for line in (DATA / "bad" / file).with_suffix(".err").read_text().splitlines():
        assert line.split(": ", 1)[1] in yard.err


@pytest.mark.parametrize("file", sorted(p.name for p in DATA.iterdir() if p.is_file()))
def test_every_good_manifest_is_rendered_or_lacks_only_a_command(yard, file):
    process = yard.start("render", "-f", DATA / file)
    out, err = process.communicate(timeout=150)
    assert process.returncode == 0 or "has no command" in err, err
    assert not yard.listing()


BOMB = "a: &a [x, x, x, x, x, x, x, x]\n" + "".join(
    f"{c}: &{c} [{', '.join(['*' + p] * 8)}]\n" for p, c in zip("abcdefghijk", "bcdefghijkl"))


@pytest.mark.parametrize("text", [BOMB, "[" * 100000, "{a: " * 5000, "x" * (2 << 20), "\0\1\2", "- - - - -\n" * 1000],
                         ids=["aliases", "brackets", "maps", "size", "control", "dashes"])
def test_a_bomb_is_refused(yard, text):
    assert yard.refused("run", "-f", yard.script(text, "job.yaml"), seconds=10)


def test_flags_for_scripts_are_refused_beside_a_manifest(yard):
    manifest = yard.script(job("Worker: {template: POD}"), "job.yaml")
    assert "--workers is for scripts" in yard.refused("run", "-f", manifest, "-w", 3)
    assert "not both" in yard.refused("run", "-f", manifest, yard.script("pass"))
    assert "after --" in yard.refused("run", "-f", manifest, "--", "x")


CONFIG_MAP = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}"
SERVICE = "{apiVersion: v1, kind: Service, metadata: {name: board}}"
PLAIN_JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: plain}
spec:
  backoffLimit: 2
  template:
    spec:
      restartPolicy: POLICY
      containers: [{name: main, image: a, command: [bash, -c, COMMAND]}]
"""


def plain_job(command="exit 0", policy="OnFailure"):
    return PLAIN_JOB.replace("POLICY", policy).replace("COMMAND", f"'{command}'")


@pytest.mark.parametrize("form", ["list", "documents"])
def test_what_stands_beside_a_job_is_named_and_the_job_runs(yard, form):
    objects = [CONFIG_MAP, json.dumps(json.loads(FORMS["JSON"])), SERVICE]
    text = "\n---\n".join(objects)
    if form == "list":
        text = "apiVersion: v1\nkind: List\nitems: [" + ", ".join(objects) + "]"
    yard.run("run", "-f", yard.script(text, "job.yaml"))
    assert yard.has("form", "Succeeded")
    assert "warning: ConfigMap settings, Service board: on this machine they are not made" in yard.err


def test_a_plain_job_runs_as_one_worker(yard):
    yard.run("run", "-f", yard.script(plain_job("echo ${TF_CONFIG:-alone}"), "job.yaml"))
    assert yard.has("plain", "Succeeded") and "alone" in yard.log("plain", "worker-0")
    got = json.loads(yard.run("get", "plain", "-o", "json"))
    assert got["kind"] == "TFJob" and got["spec"]["runPolicy"]["backoffLimit"] == 2


@pytest.mark.parametrize("policy", ["OnFailure", "Never"])
def test_a_plain_job_that_fails_is_tried_again(yard, policy):
    yard.run("run", "-f", yard.script(plain_job("test $TRAINYARD_ATTEMPT -gt 0", policy), "job.yaml"))
    assert yard.has("plain", "Succeeded") and yard.status("plain")["restarts"]


def test_several_jobs_in_a_file_are_refused_with_their_names(yard):
    text = job("Worker: {template: POD}", name="first") + "---" + plain_job()
    assert "holds 2 jobs (first, plain): run them one at a time" in yard.refused("run", "-f", yard.script(text, "job.yaml"))


def test_a_file_without_a_job_is_refused_with_the_kinds_in_it(yard):
    line = yard.refused("run", "-f", yard.script(CONFIG_MAP + "\n---\n" + SERVICE, "job.yaml"))
    assert "holds no TFJob and no Job, only ConfigMap, Service" in line
