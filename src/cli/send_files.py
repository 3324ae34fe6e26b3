"""Writes the files below its argument to standard output as a tar archive, for `trainyard fetch`.

A link to a file inside the directory is sent as that file. Other links and special files are not sent: their paths go to
standard error. A file that cannot be read ends the program with an error.
"""

import os
import sys
import tarfile


def fail(error):
    sys.exit(f"{error.filename}: {error.strerror}")


def send(root, tar):
    for folder, folders, files in os.walk(root, onerror=fail):
        for name in sorted(folders) + sorted(files):
            path = os.path.join(folder, name)
            inside = os.path.realpath(path).startswith(os.path.join(root, ""))
            if inside and (os.path.isfile(path) or os.path.isdir(path) and not os.path.islink(path)):
                tar.add(path, os.path.relpath(path, root), recursive=False)
            else:
                print(os.path.relpath(path, root), file=sys.stderr)


try:
    # To follow links makes tarfile send a file as often as it has names; otherwise only its first name gets the data.
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|", format=tarfile.GNU_FORMAT, dereference=True) as tar:
        send(os.path.realpath(sys.argv[1]), tar)
except OSError as error:
    fail(error)
