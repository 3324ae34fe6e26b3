"""Takes a cluster down: its processes first, then what it had of this machine, then its directory.

Every step looks for what is there instead of remembering what was done, so it also clears what a cluster left that was
killed in any way and at any time.
"""

import shutil

from lab import Failure, state


def empty(folder):
    """Leaves nothing of a cluster but its empty directory, whose lock the caller holds."""
    state.end_processes(folder)
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def down(name):
    if state.check_name(name) not in state.names():
        raise Failure(f"no cluster named {name}")
    with state.locked(name) as folder:
        empty(folder)
        state.remove(folder)
