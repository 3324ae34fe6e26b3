"""Shards as a tf.data source.

    dataset = shard_dataset(service, read_record, batch_size=64).prefetch(2)
    while service.more():
        for batch in dataset:
            train(batch)
            service.report_batch_done()

`prefetch`, and a `map` of whole batches in order, may follow as one likes: batches are trained in the order they are made. Where records
are to be shuffled or batched after the source, their identity has to travel with them:

    records = ticketed_dataset(service, read_record)             # (ticket, record)
    dataset = track(records.shuffle(1000).batch(64, drop_remainder=True), service)
"""

import numpy as np
import tensorflow as tf


def shard_dataset(service, read_record, output_signature=None, batch_size=None, to_the_end=False):
    """A tf.data.Dataset of `read_record(number)` for each record of the shards that this process gets.

    With batch_size: of batches, each from one shard, the last of a shard shorter. So a shard is done when its last batch is; batches
    across shards would leave the model between two of them most of the time. Without: of single records, in order.
    output_signature: of one record; found by reading the first one if not given.
    to_the_end: waits, when all is handed out, for what other workers may leave behind, and ends with the data of the whole job. Only where no
    step behind needs the end of its input to give out what it has: `prefetch` does not, `batch` and `shuffle` do.
    """
    signature = output_signature or _signature_of(read_record(0))

    def singles():
        of_pass = service.begin_pass()
        for shard in service.shards(of_pass, to_the_end):
            for place, number in shard.places():
                record = read_record(number)
                if not service.deliver([(shard.id, [place])], of_pass, is_batch=False):
                    return
                yield record

    def batches():
        of_pass = service.begin_pass()
        for shard in service.shards(of_pass, to_the_end):
            places = shard.places()
            for first in range(0, len(places), batch_size):
                part = places[first:first + batch_size]
                records = [read_record(number) for _, number in part]
                batch = tf.nest.map_structure(lambda *values: np.stack(values), *records)
                if not service.deliver([(shard.id, [place for place, _ in part])], of_pass):
                    return
                yield batch

    if batch_size is None:
        return tf.data.Dataset.from_generator(singles, output_signature=signature)
    several = tf.nest.map_structure(lambda spec: tf.TensorSpec([None, *spec.shape], spec.dtype), signature)
    return tf.data.Dataset.from_generator(batches, output_signature=several)


def ticketed_dataset(service, read_record, output_signature=None):
    """As shard_dataset without batches, of (ticket, record). `track` takes the tickets off again at the end of the pipeline."""
    signature = output_signature or _signature_of(read_record(0))

    def records():
        of_pass = service.begin_pass()
        for shard in service.shards(of_pass):
            for place, number in shard.places():
                yield np.array([of_pass, shard.id, place], np.int64), read_record(number)

    return tf.data.Dataset.from_generator(records, output_signature=(tf.TensorSpec([3], tf.int64), signature))


def track(dataset, service):
    """Takes the tickets off a dataset of (tickets, batch), noting which records each batch has, in the order they are made."""
    def note(tickets):
        for of_pass in {int(number) for number in tickets.reshape(-1, 3)[:, 0]}:
            runs = {}
            for _, id, place in (ticket for ticket in tickets.reshape(-1, 3).tolist() if ticket[0] == of_pass):
                runs.setdefault(id, []).append(place)
            service.deliver(runs.items(), of_pass)
        return np.int64(0)

    def strip(tickets, batch):
        with tf.control_dependencies([tf.numpy_function(note, [tickets], tf.int64)]):
            return tf.nest.map_structure(tf.identity, batch)

    return dataset.map(strip)


def _signature_of(record):
    def spec(value):
        value = np.asarray(value)
        return tf.TensorSpec(value.shape, tf.string if value.dtype.kind in "USO" else value.dtype)

    return tf.nest.map_structure(spec, record)
