import pathlib
import signal
import sys

import pytest

# Started in the background of a script, we would pass on signals that are ignored; the programs under test are to be
# started as a person starts them.
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
    signal.signal(number, signal.SIG_DFL)

sys.path.insert(0, str(pathlib.Path(__file__).parent / "support"))

from yard import Yard  # noqa: E402


@pytest.fixture
def yard(tmp_path):
    yard = Yard(tmp_path)
    yield yard
    yard.close()
