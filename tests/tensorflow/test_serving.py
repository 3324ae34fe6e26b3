"""`trainyard serve`: the unmodified client of TensorFlow Serving and its REST forms get TensorFlow's own answers."""

import json
import math
import subprocess

import pytest

from serving import PYTHONS, Served
from yard import ROOT

MODELS = ("conv", "dense", "examples", "many", "text", "types")
_made = {}


@pytest.fixture
def models(version, tmp_path_factory):
    """The models of tests/scripts/saved_models.py, made once for each TensorFlow."""
    if version not in _made:
        place = tmp_path_factory.mktemp("models")
        done = subprocess.run([PYTHONS[version], ROOT / "tests/scripts/saved_models.py", place], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        _made[version] = place
    return _made[version]


def config(models, names=MODELS, **extra):
    """A model config file, as TensorFlow Serving's."""
    lines = [f'config {{ name: "{name}" base_path: "{models / name}" {extra.get(name, "")} }}' for name in names]
    path = models / "models.config"
    path.write_text("model_config_list {\n" + "\n".join(lines) + "\n}\n")
    return path


def same(have, want):
    if isinstance(want, list):
        return len(have) == len(want) and all(map(same, have, want))
    if isinstance(want, float):
        return math.isclose(have, want, rel_tol=1e-5, abs_tol=1e-6)
    return have == want and type(have) is type(want)


def test_answers_are_those_of_tensorflow_itself(yard, version, models):
    expected = json.loads((models / "expected.json").read_text())
    with Served(yard, version, "--config", config(models)) as served:
        said = subprocess.run([PYTHONS[version], ROOT / "tests/scripts/ask_serving.py", served.grpc, models / "expected.json"],
                              capture_output=True, text=True)
        assert said.returncode == 0, said.stderr
        for case in expected:
            inputs, outputs = case["inputs"], case["outputs"]
            # Column form, each input by its name.
            answer = served.predict(case["model"], {"signature_name": case["signature"], "inputs": inputs})["outputs"]
            answer = answer if len(outputs) > 1 else {next(iter(outputs)): answer}
            assert set(answer) == set(outputs)
            for name, want in outputs.items():
                have = answer[name]
                if name.endswith("_bytes"):
                    want = [{"b64": __import__("base64").b64encode(text.encode()).decode()} for text in want]
                assert same(have, want), (case["model"], name, have, want)
            if case["signature"] == "total":
                continue  # has no rows
            # Row form, each row by the names of its parts.
            rows = [dict(zip(inputs, row)) for row in zip(*inputs.values())]
            answer = served.predict(case["model"], {"signature_name": case["signature"], "instances": rows})["predictions"]
            for i, row in enumerate(answer):
                row = row if len(outputs) > 1 else {next(iter(outputs)): row}
                for name, want in outputs.items():
                    assert name.endswith("_bytes") or same(row[name], want[i]), (case["model"], name)
            if len(inputs) == 1:  # needs no names
                only = next(iter(inputs.values()))
                assert served.predict(case["model"], {"signature_name": case["signature"], "instances": only})["predictions"] == answer
        status, answer = served.post("/v1/models/examples:classify", {"context": {"y": 1}, "examples": [{"x": [1, 2.5]}]})
        assert (status, [[label for label, _ in row] for row in answer["result"]]) == (200, [["no", "yes"]])
        status, answer = served.post("/v1/models/examples:regress", {"signature_name": "regress", "examples": [{"x": [1.0, 2.5]}]})
        assert (status, answer["result"]) == (200, [3.5])
