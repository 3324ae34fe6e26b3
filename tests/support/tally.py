"""What the kill storms of all soaks have come to, added up in a file of this user's.

    python3 tests/support/tally.py          says it in two lines
"""

import fcntl
import json
import os
import pathlib

STRUCK = ("worker", "master", "supervisor", "scale")


def path():
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "trainyard/soak/storms.json"


def read():
    try:
        return json.loads(path().read_text())
    except FileNotFoundError:
        return {}


def add(kind, struck, records, never, failed):
    """One storm of a kind (plain or tensorflow): whom it struck, how many records it was to train, and how many of them never were."""
    path().parent.mkdir(parents=True, exist_ok=True)
    with open(path().with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        total = read()
        more = {"storms": 1, kind: 1, "failed": int(failed), "records": records, "never": never,
                **{name: list(struck).count(name) for name in STRUCK}}
        for name, count in more.items():
            total[name] = total.get(name, 0) + count
        part = path().with_suffix(".part")
        part.write_text(json.dumps(total, indent=1, sort_keys=True) + "\n")
        part.replace(path())


def lines():
    total = {"storms": 0, "tensorflow": 0, "failed": 0, "records": 0, "never": 0, **dict.fromkeys(STRUCK, 0), **read()}
    return ["{storms} storms, {tensorflow} of them with TensorFlow, {failed} failed; {never} of {records} records never reported".format(**total),
            "killed: {worker} workers, {master} masters, {supervisor} supervisors; scaled {scale} times".format(**total)]


if __name__ == "__main__":
    print("\n".join(lines()))
