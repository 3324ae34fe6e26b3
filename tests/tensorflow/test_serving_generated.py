"""`trainyard serve` answers as the SavedModel does in Python, whatever the model does with its rows and whoever asks beside."""

import subprocess

import pytest

from conftest import SOAK
from serving import PYTHONS, Served
from yard import ROOT

# Eight models share a server: 40 at once would need more memory than a small machine has.
GROUPS = [range(first, first + 8) for first in range(0, 40, 8)]


@pytest.mark.parametrize("version", ("2.15", "2.21") if SOAK else ("2.15",))
@pytest.mark.parametrize("seeds", GROUPS if SOAK else GROUPS[:1], ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_answers_are_those_of_the_model_alone_and_under_eight_clients(yard, version, seeds):
    models = yard.home / "models"
    models.mkdir()
    made = subprocess.run([PYTHONS[version], ROOT / "tests/scripts/generated_models.py", models, *map(str, seeds)],
                          capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    config = yard.home / "models.config"
    config.write_text("model_config_list {\n" + "\n".join(f'config {{ name: "m-{seed}" base_path: "{models}/m-{seed}" }}' for seed in seeds)
                      + "\n}\n")
    with Served(yard, version, "--config", config) as served:
        asked = subprocess.run([PYTHONS[version], ROOT / "tests/scripts/ask_generated.py", served.grpc, models / "cases.json",
                                "20" if SOAK else "4"], capture_output=True, text=True)
        assert asked.returncode == 0, asked.stdout + asked.stderr[-2000:]
        print(asked.stdout.strip())
