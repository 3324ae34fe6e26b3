"""`sweep`: trials as jobs, the same table for any number of slots and after a kill, and everything that is refused."""

import contextlib
import json
import os
import pathlib
import pty
import random
import shutil
import signal
import struct
import subprocess

import pytest

from yard import BINARY, wait_for

SOAK = os.environ.get("SOAK") == "1"

# Nine reports that the parameters alone decide; with --gate a trial waits in the middle until there is that file.
CURVE = """
import argparse, math, os, time
parser = argparse.ArgumentParser()
parser.add_argument('--lr', type=float, required=True)
parser.add_argument('--layers', type=int, default=1)
parser.add_argument('--gate', default='')
a = parser.parse_args()
for epoch in range(1, 10):
    loss = (math.log10(a.lr) + 2) ** 2 + abs(a.layers - 2) + 1 / epoch
    print(f'Epoch {epoch}/9')
    print(f'10/10 - 0s - loss: {loss:.4f} - 0s/epoch - 9ms/step')
    while a.gate and epoch == 5 and not os.path.exists(a.gate): time.sleep(0.01)
"""
SEARCH = ["--param", "lr=log:1e-4..1", "--param", "layers=1,2,3", "-w", "1"]


def table(yard, name):
    return (yard.home / "state/.sweeps/default" / name / "trials.csv").read_text()


def sweep(yard, name, *words, **options):
    return yard.run("sweep", "train.py", *SEARCH, "--name", name, *words, **options)


def forget(yard, name):
    """Makes room for a sweep of the same name."""
    state = yard.home / "state"
    shutil.rmtree(state / ".sweeps/default" / name)
    for job in (state / "default").glob(f"{name}-t*"):
        shutil.rmtree(job)


def test_a_grid_of_nine_names_the_best_and_its_command_line(yard):
    yard.script(CURVE)
    out = yard.run("sweep", "train.py", "--param", "lr=0.1,0.01,0.001", "--param", "layers=1,2,3", "-w", "1",
                   "--name", "nine", "--parallel", "2", "--prune", "none")
    assert "grid, 9 trials" in out.splitlines()[3]
    assert "best    trial 4: loss 0.1111  lr=0.01 layers=2" in out
    command = out.split("run     trainyard ")[1].splitlines()[0]
    assert command.endswith("train.py -- --lr=0.01 --layers=2")
    assert "matters " in out and "trainyard serve nine-t4" in out and "trainyard board nine" in out
    rows = table(yard, "nine").splitlines()
    assert rows[0] == "trial,state,value,reports,lr,layers,reason" and len(rows) == 10
    assert [row.split(",")[4:6] for row in rows[1:4]] == [["0.1", "1"], ["0.1", "2"], ["0.1", "3"]]
    trial = yard.home / "state/.sweeps/default/nine/004-lr=0.01,layers=2"
    assert (trial / "logs/worker-0.log").exists() and (trial / "output").is_dir() and (trial / "tensorboard").is_dir()
    # It can be typed as it stands.
    yard.run(*command.split())


@pytest.mark.parametrize("algorithm", ["tpe", "gp"])
def test_the_table_is_the_same_for_any_number_of_slots(yard, algorithm):
    yard.script(CURVE)
    tables = set()
    for slots in (1, 2, 8):
        sweep(yard, "same", "--trials", "12", "--algorithm", algorithm, "--parallel", slots, "--seed", "3")
        tables.add(table(yard, "same"))
        forget(yard, "same")
    assert len(tables) == 1
    assert "pruned" in tables.pop()


def test_a_killed_sweep_goes_on_with_the_same_table(yard):
    yard.script(CURVE)
    sweep(yard, "killed", "--trials", "9", "--parallel", "2")
    expected = table(yard, "killed")
    forget(yard, "killed")
    log = yard.home / "state/.sweeps/default/killed/trials.log"
    process = yard.start("sweep", "train.py", *SEARCH, "--name", "killed", "--trials", "9", "--parallel", "2")
    for decided in (1, 3, 6):
        wait_for(lambda: log.exists() and log.read_text().count('"decided"') >= decided, f"{decided} trials decided")
        process.kill()
        process.communicate()
        # As if the last line had been cut in the middle.
        log.write_bytes(log.read_bytes() + b'0123abcd {"decided":')
        process = yard.start("sweep", "resume", "killed", "--parallel", decided)
    yard.end(process)
    assert table(yard, "killed") == expected


def test_a_sweep_may_be_killed_at_any_time(yard):
    """At moments drawn by chance, again and again until it is through."""
    yard.script(CURVE)
    sweep(yard, "often", "--trials", "8", "--parallel", "4")
    expected = table(yard, "often")
    for seed in range(20 if SOAK else 1):
        chance = random.Random(seed)
        forget(yard, "often")
        process = yard.start("sweep", "train.py", *SEARCH, "--name", "often", "--trials", "8", "--parallel", "4")
        wait_for((yard.home / "state/.sweeps/default/often/sweep.json").exists, "a sweep to go on with")
        kills = 0
        while True:
            try:
                _, err = process.communicate(timeout=chance.uniform(0.01, 0.25))
                break
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                kills += 1
                process = yard.start("sweep", "resume", "often")
        assert process.returncode == 0 and kills > 0, (seed, kills, process.returncode, err)
        assert table(yard, "often") == expected, seed


def test_ctrl_c_stops_the_trials_and_leaves_a_sweep_that_resumes(yard):
    yard.script(CURVE)
    sweep(yard, "broken", "--trials", "3", "--parallel", "2", "--prune", "none", "--", "--gate", yard.home / "train.py")
    expected = table(yard, "broken")
    forget(yard, "broken")
    gate = yard.home / "gate"
    yard.script("import os\nopen(os.environ['TRAINYARD_OUTPUT_DIR'] + '/begun-' + str(os.getpid()), 'w').close()\n" + CURVE)
    process = yard.start("sweep", "train.py", *SEARCH, "--name", "broken", "--trials", "3", "--parallel", "2",
                         "--prune", "none", "--", "--gate", gate)
    wait_for(lambda: all("Epoch 5" in yard.log(f"broken-t{i}", "worker-0") for i in (0, 1)), "two trials at the gate")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=150)
    assert process.returncode == 130
    assert "trainyard sweep resume broken" in err
    assert not yard.processes()
    assert "interrupted" in yard.run("sweep", "ps")
    gate.touch()
    yard.run("sweep", "resume", "broken")
    assert table(yard, "broken") == expected
    # Nothing is left of what was stopped.
    assert [len(list(d.iterdir())) for d in (yard.home / "state/.sweeps/default/broken").glob("*/output")] == [1, 1, 1]


def test_a_pruned_trial_is_stopped_with_a_reason_and_has_not_failed(yard):
    yard.script(CURVE.replace("epoch == 5", "a.lr > 0.05 and epoch == 5"))
    # The second is worse at its first report, and would wait for ever at its fifth.
    out = yard.run("sweep", "train.py", "--param", "lr=0.01,0.1", "-w", "1", "--name", "poor", "--parallel", "1",
                   "--", "--gate", yard.home / "never")
    assert "1 complete, 1 pruned, 0 failed" in out
    assert "sweep poor: pruned at report 1" in yard.status("poor-t1")["verdict"]["cause"]


def test_every_role_has_the_parameters_as_arguments_and_variables(yard):
    yard.script("""
import json, os, sys, time
role = os.environ['TRAINYARD_ROLE']
print(role, sys.argv[1:], os.environ['TRAINYARD_PARAM_BATCH_SIZE'], os.environ['SAID'],
      json.loads(os.environ['TRAINYARD_PARAMS']))
print('step 1 loss=0.5')
open('told-' + role, 'w').close()
while role == 'chief' and not all(os.path.exists('told-' + r) for r in ('worker', 'ps')): time.sleep(0.01)
""")
    (yard.home / "said.env").write_text("SAID=yes\n")
    yard.run("sweep", "train.py", "--param", "batch-size=64", "-w", "1", "--ps", "1", "-e", "said.env", "--name", "all",
             "--", "--fast")
    for replica in ("chief-0", "worker-0", "ps-0"):
        assert f"{replica[:-2]} ['--fast', '--batch-size=64'] 64 yes {{'batch-size': 64}}" in yard.log("all-t0", replica)


def record(step, tag, value):
    """One record of an event file; the reader checks the checksums."""
    def crc(data):
        table = [0] * 256
        for i in range(256):
            c = i
            for _ in range(8):
                c = c >> 1 ^ (0x82F63B78 if c & 1 else 0)
            table[i] = c
        c = 0xFFFFFFFF
        for byte in data:
            c = table[(c ^ byte) & 255] ^ c >> 8
        c ^= 0xFFFFFFFF
        return struct.pack("<I", ((c >> 15 | c << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    scalar = b"\n" + bytes([len(tag)]) + tag.encode() + b"\x15" + struct.pack("<f", value)
    value_field = b"\n" + bytes([len(scalar)]) + scalar
    event = b"\x09" + struct.pack("<d", 1.7e9 + step) + b"\x10" + bytes([step]) + b"*" + bytes([len(value_field)]) + value_field
    length = struct.pack("<Q", len(event))
    return length + crc(length) + event + crc(event)


def test_a_metric_can_come_from_event_files(yard):
    files = {lr: b"".join(record(step, "quality", value / step) for step in (1, 2, 3)) for lr, value in (("0.1", 4.0), ("0.2", 8.0))}
    for lr, data in files.items():
        (yard.home / f"events-{lr}").write_bytes(data)
    yard.script("""
import os, shutil
lr = os.environ['TRAINYARD_PARAM_LR']
run = os.path.join(os.environ['TRAINYARD_LOG_DIR'], 'eval'); os.makedirs(run)
shutil.copy(f'events-{lr}', os.path.join(run, 'events.out.tfevents.1700000000.host'))
""")
    out = yard.run("sweep", "train.py", "--param", "lr=0.1,0.2", "-w", "1", "--metric", "quality", "--goal", "max",
                   "--name", "scalars", "--prune", "none")
    assert "best    trial 1: quality 2.66667  lr=0.2" in out
    assert table(yard, "scalars").splitlines()[1].split(",")[3] == "3"
    directory = yard.home / "state/.sweeps/default/scalars"
    runs = {str(p.parent.relative_to(directory)).split("/")[0] for d in directory.iterdir() if d.is_dir()
            for p in pathlib.Path(d / "tensorboard").rglob("*tfevents*")}
    assert runs == {"000-lr=0.1", "001-lr=0.2"}, "one TensorBoard over the sweep shows a run for each trial"


def test_a_sweep_file_with_a_manifest_fills_in_the_parameters(yard):
    yard.script("import sys; print('step 1 loss=' + sys.argv[1])")
    yard.script("""
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: trial}
spec:
  tfReplicaSpecs:
    Chief:
      replicas: 1
      template: {spec: {containers: [{name: tensorflow, image: a, command: [python3, train.py, "${lr}"]}]}}
    Worker:
      replicas: ${{workers}}
      template: {spec: {containers: [{name: tensorflow, image: a, command: [python3, train.py, "${lr}"]}]}}
""", "tfjob.yaml")
    yard.script("manifest: tfjob.yaml\nparameters:\n  lr: [0.5, 0.25]\n  workers: [1, 2]\nname: filled\nparallel: 2\nprune: none\n",
                "sweep.yaml")
    out = yard.run("sweep", "sweep.yaml")
    assert "best    trial 2: loss 0.25  lr=0.25 workers=1" in out
    assert len(list((yard.dir("filled-t3") / "logs").glob("worker-*.log"))) == 2


def test_a_template_gets_its_parameters_from_the_sweep(yard):
    yard.script("import sys; print(f'step 1 loss={sys.argv[1]}'); print('trial', sys.argv[2])")
    yard.script("""
apiVersion: template.openshift.io/v1
kind: Template
parameters: [{name: RATE, required: true}, {name: WORKERS, value: "1"}]
objects:
  - apiVersion: kubeflow.org/v1
    kind: TFJob
    metadata: {name: job}
    spec:
      tfReplicaSpecs:
        Worker:
          replicas: ${{WORKERS}}
          template: {spec: {containers: [{name: tensorflow, image: a, command: [python3, train.py, "${RATE}", "${trial}"]}]}}
""", "template.yaml")
    out = yard.run("sweep", "-f", "template.yaml", "--param", "RATE=0.5,0.25", "--name", "declared", "--prune", "none")
    assert "best    trial 1: loss 0.25  RATE=0.25" in out
    assert "trial declared-t1" in yard.log("declared-t1", "worker-0")


def test_a_sweep_file_says_what_a_command_line_would(yard):
    yard.script(CURVE)
    yard.script("script: train.py\nparameters:\n  lr: log:1e-4..1\n  layers: [1, 2, 3]\ntrials: 4\nseed: 3\nparallel: 2\nrun: {workers: 1}\n",
                "sweep.yaml")
    yard.run("sweep", "sweep.yaml", "--name", "filed", "--trials", "5")
    sweep(yard, "typed", "--trials", "5", "--seed", "3", "--parallel", "2")
    assert table(yard, "filed") == table(yard, "typed")


def test_ask_and_tell_for_other_launchers(yard):
    words = yard.run("sweep", "ask", "mine", "--param", "lr=log:1e-4..1", "--param", "n=1..4").split()
    assert words[0] == "0" and words[1].startswith("--lr=") and words[2].startswith("--n=")
    asked = json.loads(yard.run("sweep", "ask", "mine", "--json"))
    assert asked["trial"] == 1 and set(asked["params"]) == {"lr", "n"}
    assert yard.run("sweep", "tell", "mine", "0", "0.5", "--report") == "continue\n"
    yard.run("sweep", "tell", "mine", "0", "0.4")
    yard.run("sweep", "tell", "mine", "1", "--failed")
    shown = [json.loads(line) for line in yard.run("sweep", "show", "mine", "--json").splitlines()]
    assert [(trial["state"], trial["value"]) for trial in shown] == [("complete", 0.4), ("failed", None)]
    assert yard.refused("sweep", "tell", "mine", "0", "1") == "trial 0 is over: complete"
    assert yard.refused("sweep", "tell", "mine", "7", "1") == "there is no trial 7: 2 were asked for"
    assert yard.refused("sweep", "tell", "mine", "1x", "1") == "there is no trial 1x: 2 were asked for"
    yard.run("sweep", "ask", "mine")
    assert yard.refused("sweep", "tell", "mine", "2", "much") == "much is no number"
    assert yard.refused("sweep", "tell", "mine", "2") == "give a value, or --failed"
    assert yard.refused("sweep", "resume", "mine") == "mine is driven by ask and tell: there is nothing to resume"


def test_ask_ends_with_the_last_trial(yard):
    for n in range(2):
        assert yard.run("sweep", "ask", "two", *(["--param", "a=x,y"] if n == 0 else [])).startswith(f"{n} ")
    yard.run("sweep", "ask", "two", status=1)


def test_a_metric_that_is_never_seen_is_an_error_with_the_names_that_are(yard):
    yard.script(CURVE)
    sweep(yard, "unseen", "--metric", "val_accuracy", "--trials", "4", "--parallel", "1", status=1)
    assert yard.err == ("trainyard: unseen: the first 3 trials failed alike, the others were not tried: "
                        "no metric val_accuracy: it reported loss; name one with --metric\n")
    assert table(yard, "unseen").count("\n") == 4


def test_one_trial_without_the_metric_fails_and_the_sweep_goes_on(yard):
    yard.script(CURVE.replace("    loss =", "    if a.lr == 0.1: continue\n    loss ="))
    out = yard.run("sweep", "train.py", "--param", "lr=0.1,0.01,0.001", "-w", "1", "--name", "mute", "--prune", "none")
    assert "2 complete, 0 pruned, 1 failed" in out and "best    trial 1" in out
    assert "no metric loss" in table(yard, "mute").splitlines()[1]


def test_diverged_trials_do_not_end_the_sweep(yard):
    yard.script("import os\nlr = float(os.environ['TRAINYARD_PARAM_LR'])\nprint('step 1 loss=' + ('nan' if lr > 0.05 else str(lr)))")
    out = yard.run("sweep", "train.py", "--param", "lr=0.4,0.3,0.2,0.1,0.01", "-w", "1", "--name", "nans", "--parallel", "1")
    assert "1 complete, 0 pruned, 4 failed" in out and "best    trial 4" in out


def test_the_metric_comes_from_the_same_source_however_late_a_trial_prints_it(yard):
    """It is in event files first and in the log at the end: once after the sweep has read the files, and once before."""
    for step in (1, 2, 3):
        (yard.home / f"events-{step}").write_bytes(record(step, "loss", 10.0 - step))
    yard.script("""
import os, time
run = os.path.join(os.environ['TRAINYARD_LOG_DIR'], 'eval'); os.makedirs(run)
for step in (1, 2, 3):
    with open(os.path.join(run, 'events.out.tfevents.1700000000.host'), 'ab') as out: out.write(open(f'events-{step}', 'rb').read())
while not os.path.exists('go'): time.sleep(0.01)
print('step 9 loss=0.5')
""")
    rows = []
    for name, late in (("late", True), ("soon", False)):
        (yard.home / "go").unlink(missing_ok=True)
        if not late:
            (yard.home / "go").touch()
        terminal, end = pty.openpty()
        process = subprocess.Popen([str(BINARY), "sweep", "train.py", "--param", "lr=1", "-w", "1", "--name", name], cwd=yard.home,
                                   env={**os.environ, **yard.env}, stdout=end, stderr=end)
        os.close(end)
        shown = b""
        with contextlib.suppress(OSError):  # what a terminal says when nobody is left at its other end
            while chunk := os.read(terminal, 4096):
                shown += chunk
                if late and b"loss 7" in shown:
                    (yard.home / "go").touch()
        os.close(terminal)
        assert process.wait(timeout=120) == 0, shown.decode()
        rows.append(table(yard, name).splitlines()[1])
    assert rows[0] == rows[1] == "0,complete,0.5,1,1,"


def test_trials_that_fail_alike_end_the_sweep(yard):
    yard.script("import sys; raise ValueError('no data for ' + sys.argv[1])")
    yard.run("sweep", "train.py", "--param", "lr=log:1e-4..1", "-w", "1", "--name", "alike", "--parallel", "1", status=1)
    assert "the first 3 trials failed alike, the others were not tried" in yard.err
    assert "ValueError: no data for --lr=" in yard.err
    assert table(yard, "alike").count("failed") == 3


def test_a_parameter_that_the_script_does_not_take_is_told_as_such(yard):
    yard.script(CURVE)
    yard.run("sweep", "train.py", "--param", "lr=0.1,0.2", "--param", "depth=1,2", "-w", "1", "--name", "strange",
             "--parallel", "1", status=2)
    assert yard.err == ("trainyard: strange: the script does not take --depth: train.py: error: unrecognized arguments: "
                        "--depth=1; let it take the argument, or leave it out of the sweep\n")
    assert table(yard, "strange").count("failed") == 1


def test_a_sweep_without_a_good_trial_exits_as_the_last_of_them(yard):
    yard.script("raise SystemExit(7)")
    out = yard.run("sweep", "train.py", "--param", "lr=1,2", "-w", "1", "--name", "all-bad", status=7)
    assert "0 complete, 0 pruned, 2 failed" in out


def test_the_name_of_a_sweep_stands_for_its_best_trial_where_a_model_is_meant(yard):
    yard.script(CURVE)
    yard.run("sweep", "train.py", "--param", "lr=0.1,0.01", "-w", "1", "--name", "two", "--prune", "none", "-n", "team")
    out = yard.run("sweep", "show", "two", "-n", "team")
    assert "  serve   trainyard serve two-t1 -n team\n" in out
    assert yard.refused("serve", "two", "-n", "team").startswith("two-t1 has exported no SavedModel to ")
    assert yard.refused("serve", "two") == "no job named two in namespace default"


def test_a_job_that_has_the_name_of_a_trial_is_not_taken_for_it(yard):
    yard.script(CURVE)
    sweep(yard, "before", "--trials", "1")
    yard.run("run", "train.py", "-w", "1", "--name", "taken-t0", "--", "--lr", "1")
    assert yard.refused("sweep", "train.py", "--param", "lr=0.1,0.01", "-w", "1", "--name", "taken").startswith("trial 0: ")
    assert "taken" not in yard.run("sweep", "ps")


def test_one_trial_that_fails_does_not_end_the_sweep(yard):
    yard.script(CURVE + "\nif a.lr == 0.1: raise SystemExit('diverged')\n")
    out = yard.run("sweep", "train.py", "--param", "lr=0.1,0.01", "-w", "1", "--name", "one", "--prune", "none")
    assert "1 complete, 0 pruned, 1 failed" in out and "best    trial 1" in out


REFUSALS = [
    (["train.py"], "what is to be searched? --param lr=log:1e-4..1e-1"),
    (["--param", "lr=1,2"], "which script? usage: trainyard sweep SCRIPT --param lr=log:1e-4..1e-1"),
    (["train.py", "--param", "lr"], "--param: lr: must be NAME=VALUES, such as lr=log:1e-4..1e-1 or layers=1,2,3"),
    (["train.py", "--param", "lr=2..1"], "--param: lr: 2..1 is empty: the low end comes first"),
    (["train.py", "--param", "lr=log:0..1"], "--param: lr: log: needs a low end above 0, not 0"),
    (["train.py", "--param", "lr=1,2", "--param", "lr=3,4"], "--param: lr is given twice"),
    (["train.py", "--param", "lr=0.1..0.2", "--algorithm", "grid"],
     "lr: a grid needs values, not a range of numbers: --param lr=0.1,0.01, or another --algorithm"),
    (["train.py", "--param", "o=" + ",".join(f"v{i}" for i in range(51)), "--algorithm", "gp"],
     "a Gaussian process is for 50 values of choices at most, not 51: use --algorithm tpe"),
    (["train.py", "--param", "lr=1,2", "--algorithm", "tp"], "--algorithm: must be one of grid, random, tpe, gp, not 'tp'"),
    (["train.py", "--param", "lr=1,2", "--metric", "latency"],
     "--metric latency: its name does not say whether less or more of it is better: add --goal min or --goal max"),
    (["train.py", "--param", "lr=1,2", "--goal", "more"], "--goal: must be one of min, max, not 'more'"),
    (["train.py", "--param", "lr=1,2", "--trials", "0"], "--trials: must be a whole number from 1 to 100000, not '0'"),
    (["train.py", "--param", "lr=1,2", "--parallel", "9"], "--parallel 9 is more than the window of 8: --window 9, or --async"),
    (["train.py", "--param", "lr=1,2", "--name", "A b"],
     "--name A b: small letters, digits and '-', at most 40, beginning with a letter"),
    (["train.py", "other.py", "--param", "lr=1,2"], "unexpected 'other.py': arguments of the script come after --"),
    (["gone.py", "--param", "lr=1,2"], "script: read {home}/gone.py: No such file or directory"),
    (["train.py", "--param", "lr=1,2", "-w", "0"], "--workers: must be a whole number from 1 to 1000, not '0'"),
    (["train.py", "--param", "lr=1,2", "-n", "../x"], "--namespace ../x: no such name can be"),
    (["train.py", "--param", "lr=1,2", "--window", "1", "--parallel", "2"],
     "--parallel 2 is more than the window of 1: --window 2, or --async"),
    (["resume", "x"], "no sweep named x: see trainyard sweep ps"),
    (["show"], "there are no sweeps yet: trainyard sweep SCRIPT --param lr=log:1e-4..1e-1"),
    (["ask", "../x", "--param", "a=1,2"], "../x: letters, digits, '_', '-' and '.' only"),
]


@pytest.mark.parametrize("words, refusal", REFUSALS, ids=[r[1][:40] for r in REFUSALS])
def test_bad_input_is_refused_in_one_line_and_changes_nothing(yard, words, refusal):
    yard.script(CURVE)
    assert yard.refused("sweep", *words) == refusal.format(home=yard.home)


FILES = [
    ("script: train.py\nparameters: {lr: 2..1}\n", "sweep.yaml:2:18: parameters.lr: 2..1 is empty: the low end comes first"),
    ("script: train.py\nparameters: {lr: [1, 2]}\ntrails: 3\n", "sweep.yaml:3:1: trails: unknown field, did you mean trials?"),
    ("script: train.py\nparameters: {lr: [1, 2]}\ngoal: up\n", 'sweep.yaml:3:7: goal: must be one of min, max, not "up"'),
    ("script: train.py\nparameters: {lr: [1, 2]}\ntrials: many\n", "sweep.yaml:3:9: trials: must be a whole number"),
    ("script: train.py\n", "sweep.yaml:1:1: parameters: what is to be searched?"),
    ("parameters: {lr: [1, 2]}\n", "sweep.yaml:1:1: script: give a script or a manifest, one of them"),
    ("script: train.py\nparameters: {lr: [1, 2]}\nrun: {wokers: 1}\n", "sweep.yaml:3:7: run.wokers: unknown field, did you mean workers?"),
    ("apiVersion: kubeflow.org/v1\nkind: TFJob\n", "sweep.yaml: is a manifest, not a sweep: give it with -f"),
    ("script: [\n", "sweep.yaml:"),
    ("", "sweep.yaml: must be a map"),
]


@pytest.mark.parametrize("text, refusal", FILES)
def test_errors_of_a_sweep_file_name_line_and_field(yard, text, refusal):
    yard.script(CURVE)
    yard.script(text, "sweep.yaml")
    assert yard.refused("sweep", "sweep.yaml").startswith(refusal)


def test_a_manifest_without_the_parameter_is_refused(yard):
    yard.script("apiVersion: kubeflow.org/v1\nkind: TFJob\n", "tfjob.yaml")
    assert yard.refused("sweep", "-f", "tfjob.yaml", "--param", "lr=1,2") == "tfjob.yaml: lr: the manifest has no ${lr} in it"


def test_a_name_that_is_taken_is_refused(yard):
    yard.script(CURVE)
    sweep(yard, "once", "--trials", "1")
    assert yard.refused("sweep", "train.py", *SEARCH, "--name", "once") == (
        "there is a sweep named once: choose another --name, or go on with it: trainyard sweep resume once")
