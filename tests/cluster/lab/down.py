"""Takes a cluster down: its processes first, then what it had of this machine, then its directory.

Every step looks for what is there instead of remembering what was done, so it also clears what a cluster left that was
killed in any way and at any time.
"""

import shutil

from lab import Failure, cgroups, node, state


def empty(folder):
    """Leaves nothing of a cluster but its empty directory, whose lock the caller holds."""
    state.end_processes(folder)
    if (folder / "cluster.json").exists():  # else it had come to nothing yet
        cluster = state.load(folder.name)
        if cluster.nodes:
            node.leave(cluster)
            cgroups.remove(cluster)
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


def down_all():
    """Every one of this user; one that cannot be taken down does not keep the others up."""
    failures = []
    for name in state.names():
        try:
            down(name)
        except (Failure, OSError) as failure:
            failures.append(f"{name}: {failure}")
    if failures:
        raise Failure("\n".join(failures))
