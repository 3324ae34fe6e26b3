"""Starts the training-operator with the certificate that it looks for in a fixed folder below /tmp.

    operator_init.py CERTIFICATE KEY PROGRAM ARGUMENTS…

To be started in a mount namespace of its own: the rest of /tmp stays what it is, and the folder is ours alone.
"""

import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lab.mounts import own, show_through  # noqa: E402

FOLDER = "/tmp/k8s-webhook-server"


def main():
    certificate, key, *command = sys.argv[1:]
    with open(certificate) as first, open(key) as second:  # they may lie below /tmp themselves
        if not os.path.isdir(FOLDER):
            show_through("/tmp")
        own(FOLDER)
        folder = pathlib.Path(FOLDER, "serving-certs")
        folder.mkdir()
        for name, source in (("tls.crt", first), ("tls.key", second)):
            with open(folder / name, "w") as target:
                shutil.copyfileobj(source, target)
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
