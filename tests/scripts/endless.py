"""Runs a training script. Its first attempt trains until it is ended; a later one trains two epochs more and finishes.

    python endless.py SCRIPT ARGUMENTS...    with checkpoints every 20 steps, 100 steps an epoch
"""

import os
import re
import runpy
import sys

epochs = 100000
if os.environ["TRAINYARD_ATTEMPT"] != "0" and os.path.exists("checkpoints/checkpoint"):
    with open("checkpoints/checkpoint") as file:
        [latest] = re.findall(r'^model_checkpoint_path: ".*ckpt-(\d+)"', file.read(), re.MULTILINE)
    epochs = 20 * int(latest) // 100 + 2
sys.argv = [*sys.argv[1:], "--checkpoint-every", "20", "--steps-per-epoch", "100", "--epochs", str(epochs)]
runpy.run_path(sys.argv[0], run_name="__main__")
