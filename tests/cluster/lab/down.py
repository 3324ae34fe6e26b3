"""Takes a cluster down: its processes first, then what it had of this machine, then its directory.

Every step looks for what is there instead of remembering what was done, so it also clears what a cluster left that was
killed in any way and at any time.
"""

from lab import Failure, state


def clear(name):
    """Leaves nothing of a cluster, whatever state it is in. The caller holds its lock."""
    folder = state.home() / name
    state.end_processes(folder)
    state.remove(folder)


def down(name):
    state.check_name(name)
    if name not in state.names():
        raise Failure(f"no cluster named {name}")
    with state.locked(name):
        if (state.home() / name).exists():  # not taken down by another one meanwhile
            clear(name)
