"""What the verbs print, what `render` says, what a replica's environment holds, and what is kept secret."""

import json
import os
import stat

SECRET = "hunter2-very-secret"
SHOWS = "import json, os; print('env', json.dumps(dict(os.environ)))"


def environment(yard, replica="worker-0", job="train-1"):
    (line,) = [line for line in yard.log(job, replica).splitlines() if line.startswith("env ")]
    return json.loads(line[4:])


def test_a_replica_has_the_environment_of_the_design(yard):
    yard.run("run", yard.script(SHOWS), "--", "--lr", "0.1")
    env = environment(yard, "worker-1")
    directory = str(yard.dir("train-1"))
    wanted = {"WORKER_NUMBER": "1", "TOT_WORKERS": "2", "TRAINYARD_JOB": "train-1", "TRAINYARD_ROLE": "worker",
              "TRAINYARD_INDEX": "1", "TRAINYARD_ATTEMPT": "0", "TRAINYARD_OUTPUT_DIR": directory + "/output",
              "TRAINYARD_CHECKPOINT_DIR": directory + "/checkpoints", "TRAINYARD_LOG_DIR": directory + "/tensorboard",
              "PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"}
    assert {name: env.get(name) for name in wanted} == wanted
    config = json.loads(env["TF_CONFIG"])
    assert config["task"] == {"type": "worker", "index": 1} and len(config["cluster"]["worker"]) == 2


def test_the_script_gets_its_arguments_as_they_were_given(yard):
    yard.run("run", "-w", 1, yard.script("import sys; print(sys.argv[1:])"), "--", "--lr", "0.1", "a b", "", "-w", "$HOME")
    assert yard.log("train-1", "worker-0").splitlines()[-1] == str(["--lr", "0.1", "a b", "", "-w", "$HOME"])


def test_a_script_finds_the_modules_beside_it(yard):
    yard.script("value = 17", "beside.py")
    yard.run("run", "-w", 1, yard.script("import beside; print('beside', beside.value)"))
    assert "beside 17" in yard.log("train-1", "worker-0")


def test_a_command_file_runs_instead_of_python(yard):
    command = yard.script('echo "command for" "$@"\nexec python3 "$@"\n', "command.sh")
    script = yard.script("import sys; print('argument', sys.argv[1])")
    yard.run("run", "-w", 1, "-c", command, script, "--", "one")
    assert f"command for {script} one" in yard.log("train-1", "worker-0")
    assert "argument one" in yard.log("train-1", "worker-0")


def test_an_env_file_is_kept_whole_and_wins(yard):
    env = yard.script(f"# a comment\n\nA=x=y c\n  \nEMPTY=\nTF_CONFIG={{}}\nPYTHONUNBUFFERED=0\nPASSWORD={SECRET}\n", "my.env")
    yard.run("run", "-w", 1, "-e", env, yard.script(SHOWS))
    got = environment(yard)
    assert [got[name] for name in ("A", "EMPTY", "TF_CONFIG", "PYTHONUNBUFFERED", "PASSWORD")] == [
        "x=y c", "", "{}", "0", SECRET]


def test_secrets_of_an_env_file_are_nowhere_but_in_its_own_file(yard):
    env = yard.script(f"PASSWORD={SECRET}\n", "my.env")
    script = yard.script("import os; assert os.environ['PASSWORD']")
    rendered = yard.run("render", "-e", env, script)
    assert SECRET not in rendered and "PASSWORD" in rendered
    assert not yard.listing()
    out = yard.run("run", "-e", env, script)
    for words in (["get"], ["get", "-o", "json"], ["events"], ["why"], ["ps", "--json"], ["logs", "--raw"]):
        out += yard.run(*words)
    assert SECRET not in out + yard.err
    holders = [p for p in yard.dir("train-1").rglob("*") if p.is_file() and SECRET in p.read_text(errors="replace")]
    assert holders == [yard.dir("train-1") / "env"]
    assert stat.S_IMODE(os.stat(holders[0]).st_mode) == 0o600


def test_render_prints_each_replica_and_creates_nothing(yard):
    out = json.loads(yard.run("render", "--json", "--ps", 1, yard.script("pass"), "--", "x"))
    assert {replica["replica"] for replica in out["replicas"]} == {"chief/0", "ps/0", "worker/0", "worker/1"}
    assert all("TF_CONFIG" in replica["env"] and replica["command"][-1] == "x" for replica in out["replicas"])
    assert not (yard.home / "state").exists()


def test_json_outputs_parse(yard):
    run = yard.start("run", "--json", yard.staying("print('hello', flush=True)"))
    yard.up("worker-0", "worker-1")
    top = json.loads(yard.run("top", "--json"))
    assert {row["replica"] for row in top["replicas"]} == {"worker/0", "worker/1"}
    json.loads(yard.run("scale", "--json", "worker=2"))
    yard.finish()
    for line in yard.end(run).splitlines():
        assert isinstance(json.loads(line), dict)
    (listed,) = json.loads(yard.run("ps", "--json"))
    assert (listed["name"], listed["state"]) == ("train-1", "Succeeded")
    got = json.loads(yard.run("get", "-o", "json"))
    assert got["kind"] == "TFJob" and got["status"]["verdict"]["result"] == "succeeded"
    assert json.loads(yard.run("why", "--json"))["state"] == "Succeeded"
    for line in yard.run("events", "--json").splitlines():
        assert {"time", "type", "reason", "message"} <= json.loads(line).keys()
    json.loads(yard.run("delete", "--json"))


def test_events_tell_the_life_of_a_job(yard):
    yard.run("run", "-w", 1, yard.script("import os; os._exit(137 if os.environ['TRAINYARD_ATTEMPT'] == '0' else 0)"))
    events = yard.run("events")
    assert events.index("TFJobRestarting") < events.index("TFJobSucceeded")
    assert "exited with code 137" in events


def test_no_escape_codes_where_no_terminal_is(yard):
    out = yard.run("run", yard.script("raise ValueError('x')"), status=1)
    for words in (["ps"], ["why"], ["logs"], ["events"]):
        out += yard.run(*words)
    assert "\x1b" not in out and "\r" not in out


def test_detach_says_how_to_follow_and_returns_the_name(yard):
    out = yard.run("run", "--detach", yard.script("pass"))
    assert "trainyard logs -f train-1" in out
    yard.run("wait", "train-1")
    answer = json.loads(yard.run("run", "--detach", "--json", yard.script("pass")))
    assert answer == {"job": "train-2"}
    yard.run("wait", "train-2")


def test_help_man_and_completion_are_there(yard):
    assert "--worker-memory" in yard.run("run", "--help")
    assert "usage: trainyard" in yard.run("--help")
    assert yard.run("man").startswith((".TH", ".\\\"", "'\\\""))
    for shell in ("bash", "zsh", "fish"):
        assert "trainyard" in yard.run("completion", shell)
    yard.refused("completion", "tcsh")


def test_doctor_answers(yard):
    process = yard.start("doctor")
    out, err = process.communicate(timeout=150)
    assert process.returncode in (0, 1, 2), err
    assert "Python" in out or "python" in out
