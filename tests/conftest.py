import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "support"))

from yard import Yard  # noqa: E402


@pytest.fixture
def yard(tmp_path):
    yard = Yard(tmp_path)
    yield yard
    yard.close()
