"""Mounts within a namespace that is ours, so that what is written there does not reach the machine."""

import ctypes
import os
import stat

LIBC = ctypes.CDLL(None, use_errno=True)
MS_BIND, MS_REC, MS_SHARED = 0x1000, 0x4000, 0x100000


def mount(source, target, kind=None, flags=0, data=None):
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind)]
    if LIBC.mount(*words, ctypes.c_ulong(flags), None if data is None else data.encode()):
        number = ctypes.get_errno()
        raise OSError(number, f"mount {target}: {os.strerror(number)}")


def show_through(path):
    """A folder in which new entries are ours alone, while those that were there go on being the machine's."""
    below = os.open(path, os.O_PATH | os.O_DIRECTORY)  # what is mounted over it does not hide it from this handle
    found = sorted(os.listdir(path))
    mount("tmpfs", path, "tmpfs", data="mode=755")
    for name in found:
        source, target = f"/proc/self/fd/{below}/{name}", os.path.join(path, name)
        mode = os.lstat(source).st_mode
        if stat.S_ISLNK(mode):
            os.symlink(os.readlink(source), target)
            continue
        if stat.S_ISDIR(mode):
            os.mkdir(target)
        else:
            os.close(os.open(target, os.O_CREAT, 0o600))
        mount(source, target, flags=MS_BIND | MS_REC)
    os.close(below)


def own(path):
    """An empty folder of ours."""
    os.makedirs(path, exist_ok=True)
    mount("tmpfs", path, "tmpfs", data="mode=755")
