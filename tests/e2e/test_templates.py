"""`run -f` and `render -f` of an OpenShift Template, with `--param`."""

import json
import os
import re

import pytest

from yard import ROOT

DATA = ROOT / "tests/data"
TEMPLATE = """
apiVersion: template.openshift.io/v1
kind: Template
labels: {made-from: template}
parameters:
  - {name: JOB_NAME, required: true}
  - {name: WORKERS, value: "2"}
  - {name: GREETING, value: hello}
  - {name: KEY, generate: expression, from: "key-[a-z0-9]{12}"}
objects:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: settings}
  - apiVersion: kubeflow.org/v1
    kind: TFJob
    metadata: {name: "${JOB_NAME}"}
    spec:
      tfReplicaSpecs:
        Worker:
          replicas: ${{WORKERS}}
          template:
            spec:
              containers:
                - name: tensorflow
                  image: a
                  command: [echo, "${GREETING}", "${KEY}", "${KEY}", "${HOME}"]
"""


def params(**values):
    return [word for name, value in values.items() for word in ("--param", f"{name}={value}")]


def test_a_template_is_rendered_with_its_parameters(yard):
    template = yard.script(TEMPLATE, "t.yaml")
    rendered = json.loads(yard.run("render", "--json", "-f", template, *params(JOB_NAME="mine", WORKERS=3)))["job"]
    assert rendered["metadata"]["name"] == "mine" and rendered["metadata"]["labels"] == {"made-from": "template"}
    assert rendered["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] == 3
    assert "ConfigMap settings: on this machine it is not made" in yard.err
    assert "${HOME}: stays as it is" in yard.err


def test_a_template_runs_with_values_that_are_given_written_and_generated(yard):
    template = yard.script(TEMPLATE, "t.yaml")
    yard.run("run", "-f", template, *params(JOB_NAME="mine"))
    assert yard.has("mine", "Succeeded") and len(list((yard.dir("mine") / "logs").glob("*.log"))) == 2
    greeting, key, again, home = yard.log("mine", "worker-0").splitlines()[-1].split()
    assert greeting == "hello" and key == again and home == "${HOME}"
    assert re.fullmatch("key-[a-z0-9]{12}", key)
    yard.run("run", "-f", template, *params(JOB_NAME="next"))
    assert key not in yard.log("next", "worker-0")


@pytest.mark.parametrize("value", ["a: b", "- x", '"', "'", "{}", "#", "*a", "&a", "a\nkind: Pod", "%", "ü", "$(x)", "${KEY}"])
def test_a_value_stays_one_text_whatever_is_in_it(yard, value):
    template = yard.script(TEMPLATE, "t.yaml")
    rendered = json.loads(yard.run("render", "--json", "-f", template, *params(JOB_NAME="mine", GREETING=value)))["job"]
    container = rendered["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    assert container["command"][1] == value


def test_the_example_template_is_rendered(yard):
    given = params(JOB_NAME="mnist-1", IMAGE_NAME="registry.example/training:7", WORKERS=3, TRAIN_STEPS=500)
    rendered = yard.run("render", "-f", ROOT / "examples/tfjob-template.yaml", *given)
    assert rendered.split("---\n")[0] == (DATA / "templates/tfjob-template.rendered.yaml").read_text()
    assert not yard.err


def test_a_template_is_refused_with_all_the_parameters_it_lacks(yard):
    template = yard.script(TEMPLATE.replace('WORKERS, value: "2"', "WORKERS, required: true"), "t.yaml")
    line = yard.refused("run", "-f", template)
    assert "t.yaml:6:3: parameters: JOB_NAME, WORKERS are required: give --param JOB_NAME=VALUE --param WORKERS=VALUE" in line


@pytest.mark.parametrize("command", ["run", "render"])
def test_parameters_that_cannot_be_meant_are_refused(yard, command):
    template, script = yard.script(TEMPLATE, "t.yaml"), yard.script("pass")
    manifest = yard.script((DATA / "manifests/simple.yaml").read_text(), "job.yaml")
    mine = params(JOB_NAME="mine")
    assert "did you mean WORKERS?" in yard.refused(command, "-f", template, *mine, *params(WORKER=1))
    assert "must be NAME=VALUE" in yard.refused(command, "-f", template, "--param", "WORKERS")
    assert "must be NAME=VALUE" in yard.refused(command, "-f", template, "--param", "=2")
    assert "is not UTF-8" in yard.refused(command, "-f", template, "--param", os.fsdecode(b"JOB_NAME=\xff"))
    assert "JOB_NAME: is given twice" in yard.refused(command, "-f", template, *mine, *mine)
    assert "--param is for a Template" in yard.refused(command, "-f", manifest, *mine)
    assert "--param is for a template" in yard.refused(command, script, *mine)


def test_an_error_in_a_parameter_is_told_where_it_is_used(yard):
    line = yard.refused("run", "-f", yard.script(TEMPLATE, "t.yaml"), *params(JOB_NAME="mine", WORKERS="many"))
    assert 't.yaml:20:21: spec.tfReplicaSpecs.Worker.replicas: must be a whole number, not "many"' in line


# The workshop's tf-serving-template: no job among its objects.
SERVING = """
apiVersion: v1
kind: Template
metadata: {name: tf-serving-template}
parameters:
  - {name: APPLICATION_NAME, value: tf-serving, required: true}
  - {name: BUCKET, required: true}
objects:
  - apiVersion: extensions/v1beta1
    kind: Deployment
    metadata: {name: "${APPLICATION_NAME}", labels: {app: "${APPLICATION_NAME}"}}
    spec:
      template:
        spec:
          containers:
            - {name: mnist, image: "tensorflow/serving:1.12.0",
               args: [--port=9000, "--model_base_path=s3://${BUCKET}/inception/export"]}
  - {apiVersion: v1, kind: Service, metadata: {name: "${APPLICATION_NAME}"}, spec: {ports: [{port: 9000}]}}
"""


def test_a_template_without_a_job_is_rendered_as_oc_process_does(yard):
    template = yard.script(SERVING, "serving.yaml")
    rendered = json.loads(yard.run("render", "--json", "-f", template, *params(BUCKET="user1")))
    deployment, service = rendered["items"]
    assert (deployment["kind"], deployment["metadata"]["name"], service["kind"]) == ("Deployment", "tf-serving", "Service")
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert container["args"][1] == "--model_base_path=s3://user1/inception/export"
    text = yard.run("render", "-f", template, *params(BUCKET="user1", APPLICATION_NAME="other"), env={"TRAINYARD_ON": "kubernetes"})
    assert text.count("name: other") == 2 and text.count("\n---\n") == 1


def test_a_template_without_a_job_needs_its_parameters_too(yard):
    template = yard.script(SERVING, "serving.yaml")
    assert "--param BUCKET=VALUE" in yard.refused("render", "-f", template)
    assert "holds no TFJob" in yard.refused("run", "-f", template, *params(BUCKET="b"))
