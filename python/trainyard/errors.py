"""What can go wrong and is not mended by asking again."""


class ShardError(Exception):
    """The master refuses, or the service is used in a way that cannot be right; the text says which."""


class NotOfThisJob(ShardError):
    """This process was replaced by another, or never belonged to the job: it should end."""


class LeasesLost(ShardError):
    """Shards that this process trained were given to another one meanwhile (it was silent for long, or cut off): what it
    learned since its last commit must not be kept."""


class Closed(ShardError):
    """The service was closed while a call was under way."""
