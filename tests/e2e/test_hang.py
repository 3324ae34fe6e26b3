"""A training that gets nowhere: told, and with --hang-restart answered."""

STUCK = """
import os, signal, sys
if os.environ["TRAINYARD_ATTEMPT"] != "0":
    print("1/2 - loss: 0.5"); sys.exit(0)
print("Epoch 1/2")
print("1/100 - loss: 2.3")
signal.pause()
"""


def test_a_hung_gang_is_aborted_with_its_stacks_and_restarted(yard):
    out = yard.run("run", "--hang-restart", "1s", yard.script(STUCK))
    assert "no progress for" in out
    assert yard.status("train-1")["restarts"] == 1
    log = yard.log("train-1", "worker-0")
    assert "Fatal Python error: Aborted" in log and 'line 7 in <module>' in log
    assert "hung (no progress for" in yard.run("why")


def test_a_bad_hang_limit_is_refused(yard):
    assert "--hang-restart" in yard.refused("run", "--hang-restart", "soon", yard.script("pass"))


def test_resume_does_not_repeat_what_was_printed_before(yard):
    script = yard.script("""
import os, sys
print("attempt", os.environ["TRAINYARD_ATTEMPT"])
sys.exit(1 if os.environ["TRAINYARD_ATTEMPT"] == "0" else 0)
""")
    assert "attempt 0" in yard.run("run", "-w", 1, script, status=1)
    out = yard.run("resume")
    assert "attempt 1" in out and "attempt 0" not in out
