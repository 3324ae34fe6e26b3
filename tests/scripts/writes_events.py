"""Writes five losses for TensorBoard, without TensorFlow."""

import argparse
import os
import time

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

parser = argparse.ArgumentParser()
parser.add_argument("--rate", type=float, default=1)
rate = parser.parse_args().rate
writer = EventFileWriter(os.environ["TRAINYARD_LOG_DIR"])
for step in range(5):
    loss = Summary.Value(tag="loss", simple_value=rate / (step + 1))
    writer.add_event(Event(wall_time=time.time(), step=step, summary=Summary(value=[loss])))
writer.close()
