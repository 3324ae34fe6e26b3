"""`sweep` with conditional parameters: a trial has a value for a parameter only where its condition holds."""

import csv
import io
import json

import pytest

from yard import wait_for

# What it got, and a loss that both optimizers can reach; with a gate it waits in the middle.
TRAIN = """
import argparse, json, os, sys, time
parser = argparse.ArgumentParser()
parser.add_argument('--optimizer', required=True)
parser.add_argument('--momentum', type=float)
parser.add_argument('--decay', type=float)
parser.add_argument('--gate', default='')
a = parser.parse_args()
assert (a.momentum is not None) == (a.optimizer == 'sgd'), sys.argv
assert (a.decay is not None) == (a.optimizer == 'adam'), sys.argv
names = sorted(n for n in os.environ if n.startswith('TRAINYARD_PARAM_'))
print('variables', names, sorted(json.loads(os.environ.get('TRAINYARD_PARAMS', '{}'))))
for epoch in range(1, 4):
    print(f'step {epoch} loss={abs((a.momentum or 0) - 0.5) + abs((a.decay or 0) - 0.1)}')
    while a.gate and epoch == 2 and not os.path.exists(a.gate): time.sleep(0.01)
"""
SPACE = ["--param", "optimizer=sgd,adam", "--param", "momentum=0.0..0.99 when optimizer=sgd",
         "--param", "decay=0.0..0.5 when optimizer=adam", "-w", "1"]
VARIABLES = {"sgd": "['TRAINYARD_PARAM_MOMENTUM', 'TRAINYARD_PARAM_OPTIMIZER'] ['momentum', 'optimizer']",
             "adam": "['TRAINYARD_PARAM_DECAY', 'TRAINYARD_PARAM_OPTIMIZER'] ['decay', 'optimizer']"}


def table(yard, name):
    return (yard.home / "state/.sweeps/default" / name / "trials.csv").read_text()


def rows(yard, name):
    return list(csv.DictReader(io.StringIO(table(yard, name))))


@pytest.mark.parametrize("algorithm", ["random", "tpe", "gp"])
def test_a_trial_gets_only_the_parameters_that_are_active(yard, algorithm):
    yard.script(TRAIN)
    out = yard.run("sweep", "train.py", *SPACE, "--name", "some", "--trials", "14", "--window", "2", "--parallel", "2", "--prune", "none",
                   "--algorithm", algorithm)
    assert "search  momentum 0..0.99 when optimizer=sgd" in out
    assert "14 complete" in out
    assert {row["optimizer"] for row in rows(yard, "some")} == {"sgd", "adam"}
    shown = {t["trial"]: t["params"] for t in map(json.loads, yard.run("sweep", "show", "some", "--json").splitlines())}
    for row in rows(yard, "some"):
        number = int(row["trial"])
        own, other = ("momentum", "decay") if row["optimizer"] == "sgd" else ("decay", "momentum")
        assert row[own] and not row[other], row
        assert set(shown[number]) == {"optimizer", own}
        assert f"variables {VARIABLES[row['optimizer']]}" in yard.log(f"some-t{number}", "worker-0")
        directory = next((yard.home / "state/.sweeps/default/some").glob(f"{number:03}-*")).name
        assert directory == f"{number:03}-optimizer={row['optimizer']},{own}={row[own]}"
    # The command line of the best can be typed as it stands.
    command = out.split("run     trainyard ")[1].splitlines()[0]
    assert command.count(" --") == 4, command
    yard.run(*command.split())


def test_a_killed_sweep_with_inactive_values_resumes_with_the_same_table(yard):
    yard.script(TRAIN)
    words = [*SPACE, "--trials", "14", "--window", "2", "--parallel", "2", "--prune", "none"]
    yard.run("sweep", "train.py", *words, "--name", "whole")
    gate = yard.home / "gate"
    process = yard.start("sweep", "train.py", *words, "--name", "cut", "--", "--gate", gate)
    wait_for(lambda: all("step 2" in yard.log(f"cut-t{i}", "worker-0") for i in (0, 1)), "two trials at the gate")
    process.kill()
    process.communicate()
    asked = (yard.home / "state/.sweeps/default/cut/trials.log").read_text()
    assert '"momentum"' in asked or '"decay"' in asked
    assert "optimizer=" in yard.run("sweep", "show", "cut")
    gate.touch()
    yard.run("sweep", "resume", "cut")
    assert table(yard, "cut") == table(yard, "whole")


def test_a_grid_leaves_out_what_does_not_exist(yard):
    yard.script(TRAIN)
    yard.run("sweep", "train.py", "--param", "optimizer=sgd,adam", "--param", "momentum=0.5,0.9 when optimizer=sgd",
             "--param", "decay=0.1 when optimizer=adam", "-w", "1", "--name", "grid", "--prune", "none")
    assert sorted((row["optimizer"], row["momentum"], row["decay"]) for row in rows(yard, "grid")) == [
        ("adam", "", "0.1"), ("sgd", "0.5", ""), ("sgd", "0.9", "")]


MANIFEST = """
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: trial}
spec:
  tfReplicaSpecs:
    Worker:
      replicas: 1
      template:
        spec:
          containers:
            - name: tensorflow
              image: a
              command: [python3, train.py, "--optimizer=${optimizer}", --momentum, "${momentum}", "--decay=${decay}"]
              env: [{name: MOMENTUM, value: "${momentum}"}, {name: ALWAYS, value: "${optimizer}"}]
"""


def test_a_sweep_file_has_conditions_and_a_manifest_leaves_inactive_parameters_out(yard):
    yard.script(TRAIN + "\nprint('env', os.environ.get('MOMENTUM'), os.environ['ALWAYS'])\n")
    yard.script(MANIFEST, "tfjob.yaml")
    yard.script("""
manifest: tfjob.yaml
parameters:
  optimizer: [sgd, adam]
  momentum: {values: 0.0..0.99, when: {optimizer: sgd}}
  decay: {values: [0.1, 0.2], when: {optimizer: [adam]}}
name: filed
trials: 6
prune: none
""", "sweep.yaml")
    out = yard.run("sweep", "sweep.yaml")
    assert "6 complete" in out
    assert {row["optimizer"] for row in rows(yard, "filed")} == {"sgd", "adam"}
    for row in rows(yard, "filed"):
        assert bool(row["momentum"]) == (row["optimizer"] == "sgd")
        assert f"env {row['momentum'] or None} {row['optimizer']}" in yard.log(f"filed-t{row['trial']}", "worker-0")


def test_a_manifest_that_cannot_leave_an_inactive_parameter_out_is_refused(yard):
    yard.script(MANIFEST.replace("--momentum, ", '"rate ${momentum}", '), "tfjob.yaml")
    assert yard.refused("sweep", "-f", "tfjob.yaml", *SPACE[:-2]) == (
        "tfjob.yaml: ${momentum} has no value in some trials: make it an argument of its own, such as --momentum=${momentum}, "
        "or the value of a variable in env")


def test_ask_names_only_what_is_active(yard):
    lines = [yard.run("sweep", "ask", "mine", *(SPACE[:-2] if n == 0 else [])) for n in range(8)]
    for line in lines:
        assert ("--momentum=" in line) == ("--optimizer=sgd" in line) != ("--decay=" in line)
    assert {"--optimizer=sgd" in line for line in lines} == {True, False}


REFUSALS = [
    (["x=1,2", "m=0.1..0.9 when optimizr=sgd", "optimizer=sgd,adam"],
     "m: when: there is no parameter optimizr: did you mean optimizer?"),
    (["optimizer=sgd,adam", "m=0.1..0.9 when optimizer=sdg"], "m: when: optimizer: sdg is none of sgd,adam"),
    (["n=1..4", "m=0.1..0.9 when n=5"], "m: when: n: 5 is none of 1..4"),
    (["n=1..4", "m=0.1..0.9 when n="], "m: when n: a value is empty"),
    (["lr=0.1..0.9", "m=0.1..0.9 when lr=0.5"],
     "m: when: lr is a range of numbers that are not whole: a condition needs a choice or whole numbers"),
    (["m=1,2 when m=1"], "m: when: a parameter cannot depend on itself"),
    (["a=1,2 when b=1", "b=1,2 when c=1", "c=1,2 when a=1"], "a: when: the conditions of a and c depend on each other"),
    (["o=a,b", "m=1,2 when o=a and o=b"], "m: when: o is given twice"),
    (["o=a,b", "m=1,2 when o"], 'm: "o" is no condition: when NAME=VALUE, such as when optimizer=sgd'),
]


@pytest.mark.parametrize("parameters, refusal", REFUSALS, ids=[r[1][:40] for r in REFUSALS])
def test_a_bad_condition_is_refused_in_one_line_and_changes_nothing(yard, parameters, refusal):
    yard.script(TRAIN)
    words = [word for parameter in parameters for word in ("--param", parameter)]
    assert yard.refused("sweep", "train.py", "-w", "1", *words) == f"--param: {refusal}"
    assert yard.refused("sweep", "ask", "mine", *words) == f"--param: {refusal}"


FILES = [
    ("m: {values: 1..2, wen: {o: a}}", "sweep.yaml:4:21: parameters.m.wen: unknown field, did you mean when?"),
    ("m: {when: {o: a}}", "sweep.yaml:4:6: parameters.m.values: is missing"),
    ("m: {values: 1..2, when: o}", "sweep.yaml:4:27: parameters.m.when: must be a map"),
    ("m: {values: 1..2, when: {}}", "sweep.yaml:4:27: parameters.m.when: names no parameter"),
    ("m: {values: 2..1, when: {o: a}}", "sweep.yaml:4:15: parameters.m: 2..1 is empty: the low end comes first"),
    ('m: ["x when o=a", y]', 'sweep.yaml:4:6: parameters.m: a value cannot have a comma or " when "'),
    ("m: {values: 1..2, when: {x: c}}", "sweep.yaml:4:27: parameters.m.when: there is no parameter x"),
    ("m: {values: 1..2, when: {o: c}}", "sweep.yaml:4:27: parameters.m.when: o: c is none of a,b"),
]


@pytest.mark.parametrize("line, refusal", FILES, ids=[f[1][:60] for f in FILES])
def test_a_bad_condition_in_a_sweep_file_is_refused(yard, line, refusal):
    yard.script(TRAIN)
    yard.script(f"script: train.py\nparameters:\n  o: [a, b]\n  {line}\n", "sweep.yaml")
    assert yard.refused("sweep", "sweep.yaml").startswith(refusal)
