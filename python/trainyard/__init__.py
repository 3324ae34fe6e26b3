"""Elastic training data: shards handed out by the master of a Trainyard job, and accounted for. See README.md.

Needs grpcio alone; what is for TensorFlow is in trainyard.tensorflow, trainyard.keras and trainyard.estimator.
"""

from trainyard.errors import Closed, LeasesLost, NotOfThisJob, ShardError
from trainyard.shards import EVALUATION, PREDICTION, TRAINING, DataShardService, Shard, build_data_shard_service

__all__ = ["Closed", "DataShardService", "EVALUATION", "LeasesLost", "NotOfThisJob", "PREDICTION", "Shard", "ShardError",
           "TRAINING", "build_data_shard_service"]
__version__ = "0.1.0"
