"""Writes five losses for TensorBoard, without TensorFlow."""

import os
import time

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

writer = EventFileWriter(os.environ["TRAINYARD_LOG_DIR"])
for step in range(5):
    loss = Summary.Value(tag="loss", simple_value=1 / (step + 1))
    writer.add_event(Event(wall_time=time.time(), step=step, summary=Summary(value=[loss])))
writer.close()
