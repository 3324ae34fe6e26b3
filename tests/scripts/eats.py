"""Runs a script. In its first attempt worker 1 eats all the memory it can get once there is a file named `eat`.

    python eats.py SCRIPT ARGUMENTS...
"""

import os
import runpy
import sys
import threading
import time


def eat():
    while not os.path.exists("eat"):
        time.sleep(0.1)
    eaten = []
    while True:
        eaten.append(b"x" * (64 << 20))


if os.environ["TRAINYARD_INDEX"] == "1" and os.environ["TRAINYARD_ATTEMPT"] == "0":
    threading.Thread(target=eat, daemon=True).start()
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
