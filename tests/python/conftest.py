import sys

import pytest

from yard import ROOT

sys.path.insert(0, str(ROOT / "python"))

from fake_master import fake_master  # noqa: E402
from trainyard import build_data_shard_service  # noqa: E402


@pytest.fixture
def master():
    with fake_master() as master:
        yield master


@pytest.fixture
def build(monkeypatch):
    """Builds services, which are closed at the end; without an address they have no master."""
    for name in ("MASTER_ADDR", "DLROVER_MASTER_ADDR", "WORKER_ID"):
        monkeypatch.delenv(name, raising=False)
    services = []

    def build(master=None, batch_size=4, **options):
        options = {"num_epochs": 1, "dataset_size": 20, "num_minibatches_per_shard": 2, "dataset_name": "test", "max_backoff": 0.1,
                   "master_addr": master.address if master else None, **options}
        services.append(build_data_shard_service(batch_size, **options))
        return services[-1]

    yield build
    for service in services:
        service.close()
