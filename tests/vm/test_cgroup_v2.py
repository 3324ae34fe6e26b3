"""Limits where cgroup v2 is all there is: in an emulated machine, booted once for all tests of this file."""

import os

import pytest

import machine

# How often a supervisor is killed; what goes wrong there does so once in a while.
KILLS = 200 if os.environ.get("SOAK") else 10

# What the scenes have in common. A group made by `delegate` is as systemd makes one for Delegate=yes: whoever is named
# owns it, and nobody is in it yet.
PRELUDE = """
export TRAINYARD_HOME=$PWD/state
cg=/sys/fs/cgroup

delegate() { # GROUP CONTROLLERS [OWNER]
  echo '-memory -cpu' > $cg/cgroup.subtree_control
  echo "$2" > $cg/cgroup.subtree_control
  mkdir $cg/$1
  [ -z "$3" ] || chown $3 $cg/$1 $cg/$1/cgroup.procs $cg/$1/cgroup.subtree_control $cg/$1/cgroup.threads
}

until_there() { # FILE...
  for file; do
    tries=0
    until [ -e $file ]; do
      tries=$((tries + 1)); [ $tries -lt 600 ] || { echo "no $file"; exit 1; }
      usleep 50000
    done
  done
}

groups() { # what Trainyard has made and not removed
  find $cg -mindepth 1 -type d -name '*trainyard*' 2>/dev/null | sed 's/^/group /'
}

until_none() { # groups; those of processes that go on ending after the one we waited for
  tries=0
  until [ -z "$(groups)" ] || [ $tries = 200 ]; do tries=$((tries + 1)); usleep 50000; done
}

over() { # STATUS
  echo "exit $1"
  groups
  echo "controllers of children: $(cat $cg/*/cgroup.subtree_control 2>/dev/null)"
}
"""

# inside GROUP COMMAND...: becomes the command, in that group.
INSIDE = """#!/bin/sh
echo 0 > /sys/fs/cgroup/$1/cgroup.procs || exit 1
shift
exec "$@"
"""

JOB = """
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {{name: {name}}}
spec:
  tfReplicaSpecs:
    Worker:
      replicas: {workers}
      restartPolicy: Never
      template:
        spec:
          containers:
          - name: tensorflow
            image: none
            command: {command}
            resources: {{limits: {{{limits}}}}}
"""

STAYS = '[sh, -c, "touch up-$TRAINYARD_INDEX; until [ -e finish ]; do usleep 50000; done"]'
# One that would wait for ever for a child that was killed.
WAITS = '[sh, -c, "hog; until [ -e finish ]; do usleep 50000; done"]'

# Ends like a killed one. After the third time the supervisor pauses for two seconds, with no replica and no guard.
FAILS = '[sh, -c, "echo x >> tries; [ $(wc -l < tries) -lt 3 ] || touch paused; exit 137"]'

FILES = {
    "bin/inside": INSIDE,
    "hog.yaml": JOB.format(name="hog", workers=1, command="[hog]", limits="memory: 64Mi"),
    "parent.yaml": JOB.format(name="parent", workers=1, command=WAITS, limits="memory: 64Mi"),
    "two.yaml": JOB.format(name="two", workers=2, command=STAYS, limits="memory: 64Mi, cpu: 500m"),
    "fails.yaml": JOB.format(name="fails", workers=1, command=FAILS, limits="memory: 64Mi").replace("Never", "ExitCode"),
    "tiny.yaml": JOB.format(name="tiny", workers=1, command=STAYS, limits="cpu: 1m"),
}

SCENES = {}


def scene(script):
    """The test looks at what this script wrote in the machine."""
    def mark(test):
        SCENES[test.__name__.removeprefix("test_")] = script
        return test
    return mark


@pytest.fixture(scope="module")
def all_seen(tmp_path_factory):
    return machine.run(tmp_path_factory.mktemp("machine"), SCENES, PRELUDE, FILES)


@pytest.fixture
def seen(request, all_seen):
    """What the scene of this test wrote."""
    seen = all_seen[request.node.name.removeprefix("test_")]
    print(seen.text)  # shown when the test fails
    assert seen.status == 0
    return seen.text


def lines(text, first_word):
    return [line.removeprefix(first_word + " ") for line in text.splitlines() if line.startswith(first_word + " ")]


def assert_out_of_memory(text, by):
    assert "worker/0 ran out of memory (killed at its limit of 64Mi, peak " in text
    assert f", by {by})" in text
    assert "--worker-memory 96Mi" in text
    assert "exit 137" in text


def assert_as_before(text):
    """No group is left, and the one we were given can be given to another."""
    assert not lines(text.split("exit ")[-1], "group")
    assert text.rstrip().endswith("controllers of children:")


@scene("trainyard run -f /hog.yaml; over $?")
def test_a_replica_past_its_limit_is_killed_by_the_kernel(seen):
    assert_out_of_memory(seen, "cgroup v2")
    assert_as_before(seen)


@scene("trainyard run -f /parent.yaml; over $?")
def test_a_replica_that_loses_a_process_for_memory_is_killed_as_a_whole(seen):
    assert_out_of_memory(seen, "cgroup v2")


LOOK = """
until_there up-0 up-1
groups
for dir in $(find $cg -type d -name 'trainyard-two-*'); do
  echo "max $(cat $dir/memory.max) $(cat $dir/cpu.max)"
  echo "members $(cat $dir/cgroup.procs | wc -l)"
done
"""


@scene(f"trainyard run -f /two.yaml & {LOOK} touch finish; wait $!; over $?")
def test_memory_and_cpu_limits_are_those_of_the_manifest(seen):
    assert lines(seen, "max") == ["67108864 50000 100000"] * 2
    assert "exit 0" in seen


@scene("trainyard run -f /tiny.yaml & until_there up-0; cat $cg/trainyard-tiny-*/cpu.max; touch finish; wait $!; over $?")
def test_a_cpu_limit_below_the_least_the_kernel_knows_is_the_least(seen):
    assert "1000 100000" in seen
    assert "exit 0" in seen


@scene("delegate ours '+memory +cpu'; inside ours trainyard run -f /hog.yaml; over $?")
def test_a_group_of_our_own_is_divided_and_left_as_it_was(seen):
    assert_out_of_memory(seen, "cgroup v2")
    assert_as_before(seen)


@scene(f"delegate ours '+memory +cpu'; inside ours trainyard run -f /two.yaml & {LOOK} touch finish; wait $!; over $?")
def test_in_a_group_of_our_own_every_replica_has_its_limits(seen):
    assert lines(seen, "max") == ["67108864 50000 100000"] * 2
    assert len([g for g in lines(seen, "group") if g.startswith("/sys/fs/cgroup/ours/trainyard-two-worker-")]) == 2
    assert len(lines(seen, "group")) == 3  # and the leaf we live in
    assert "exit 0" in seen
    assert_as_before(seen)


@scene("""delegate ours '+memory +cpu' somebody
inside ours su somebody -c "trainyard run -f /hog.yaml"; over $?""")
def test_a_user_without_privileges_divides_a_group_of_its_own(seen):
    assert_out_of_memory(seen, "cgroup v2")
    assert_as_before(seen)


@scene(f"""delegate ours '+memory +cpu'
# The pipe is full, so the starter is held up at its first line, in the group, for half a second.
{{ head -c 65536 /dev/zero; inside ours trainyard run -d -f /two.yaml; }} | {{ usleep 500000; cat >/dev/null; }}
{LOOK} touch finish; trainyard wait two; status=$?
until_none
over $status""")
def test_a_detached_job_divides_the_group_it_was_started_in(seen):
    assert lines(seen, "max") == ["67108864 50000 100000"] * 2
    assert "exit 0" in seen
    assert_as_before(seen)


@scene(f"""delegate ours '+memory +cpu'
inside ours trainyard run -f /two.yaml & {LOOK} kill -9 $!; wait $!; status=$?
until_none
over $status""")
def test_a_killed_supervisor_leaves_the_group_as_it_was(seen):
    assert len(lines(seen, "group")) == 3
    assert "exit 137" in seen
    assert_as_before(seen)


# The replicas end while their supervisor dies: a guard that counts on one order of the two leaves the group behind.
@scene(f"""delegate ours '+memory +cpu'
for kill in $(seq {KILLS}); do
  rm -f up-0 up-1
  export TRAINYARD_HOME=$PWD/state-$kill
  inside ours trainyard run -f /two.yaml >/dev/null 2>&1 & until_there up-0 up-1
  kill -9 $!; wait $!
  until_none
  groups | sed "s/^/left after kill $kill: /"
done
echo "killed $kill"
over 0""")
def test_however_often_a_supervisor_is_killed_no_group_is_left(seen):
    assert "left after" not in seen
    assert f"killed {KILLS}" in seen
    assert_as_before(seen)


@scene("""delegate ours '+memory +cpu'
inside ours trainyard run -f /fails.yaml & until_there paused
kill -9 $!; wait $!; status=$?
until_none
over $status""")
def test_a_supervisor_that_is_killed_while_no_replica_runs_leaves_the_group_as_it_was(seen):
    assert "exit 137" in seen
    assert_as_before(seen)


@scene(f"""delegate ours '+memory +cpu'
inside ours trainyard run -f /two.yaml & until_there up-0 up-1
kill -9 $(pgrep -f 'trainyard-guard --leaf')
touch finish; wait $!; over $?""")
def test_a_supervisor_whose_guard_of_the_leaf_is_killed_leaves_the_group_as_it_was(seen):
    assert "exit 0" in seen
    assert_as_before(seen)


@scene("""delegate ours '+memory'; inside ours trainyard run -f /two.yaml & until_there up-0 up-1; groups
touch finish; wait $!; over $?
trainyard events two
inside ours trainyard doctor | grep -A1 limits; over 0""")
def test_without_a_cpu_controller_memory_is_limited_and_the_rest_told(seen):
    assert len(lines(seen.split("exit")[0], "group")) == 3
    assert "LimitNotEnforced" in seen and "worker/1 runs without the CPU limit" in seen
    assert "memory limits by cgroup v2, CPU limits not at all" in seen
    assert_as_before(seen)


@scene("""delegate shared '+memory +cpu'
inside shared sleep 1000 & other=$!
inside shared trainyard run -f /hog.yaml; over $?
inside shared trainyard doctor | grep limits; groups
kill $other""")
def test_a_group_with_others_in_it_is_not_ours_and_memory_is_polled(seen):
    assert_out_of_memory(seen, "polling")
    assert "note  memory limits by polling" in seen
    assert not lines(seen, "group")


@scene('su somebody -c "trainyard run -f /hog.yaml"; over $?')
def test_a_user_with_no_group_to_write_polls(seen):
    assert_out_of_memory(seen, "polling")


@scene("""trainyard doctor | grep limits; groups
delegate ours '+memory +cpu'; inside ours trainyard doctor | grep limits; over 0""")
def test_doctor_says_which_means_there_is_and_leaves_nothing(seen):
    assert seen.count("ok    memory and CPU limits by cgroup v2") == 2
    assert not lines(seen, "group")
    assert_as_before(seen)
