"""A Kubernetes of the project's own on a test machine: what script/cluster does. See docs/test-cluster.md."""


class Failure(Exception):
    """Something a person can read and act on; script/cluster prints it without a traceback."""
