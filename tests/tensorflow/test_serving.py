"""`trainyard serve`: the unmodified client of TensorFlow Serving and its REST forms get TensorFlow's own answers."""

import gzip
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
        assert (status, [[label for label, _ in row] for row in answer["results"]]) == (200, [["no", "yes"]])
        status, answer = served.post("/v1/models/examples:regress", {"signature_name": "regress", "examples": [{"x": [1.0, 2.5]}]})
        assert (status, answer["results"]) == (200, [3.5])


def test_classify_and_regress_take_the_signatures_of_tensorflow_2(yard, version, models):
    with Served(yard, version, models / "native_examples") as served:
        status, answer = served.post("/v1/models/native_examples:classify", {"examples": [{"x": [1, 2.5]}]})
        assert (status, [[label for label, _ in row] for row in answer["results"]]) == (200, [["no", "yes"]])
        status, answer = served.post("/v1/models/native_examples:regress", {"signature_name": "regress", "examples": [{"x": [1.0, 2.5]}]})
        assert (status, answer["results"]) == (200, [3.5])
        status, answer = served.post("/v1/models/native_examples:regress", {"examples": [{"x": [1.0, 2.5]}]})
        assert status == 412 and "'outputs'" in answer["error"], answer


def test_shapes_are_for_tensorflow_to_judge(yard, version, models):
    with Served(yard, version, "--config", config(models, ("conv", "dense", "many", "odd"))) as served:
        # Declared as (-1), (-1,28,28,1) and not at all; a variable of TensorFlow 1 can be an output.
        assert served.predict("many", {"signature_name": "times", "inputs": [[1, 2], [3, 4]]})["outputs"] == [[3, 6], [9, 12]]
        assert len(served.predict("conv", {"inputs": [[[[0.5]] * 28] * 28] * 2})["outputs"]["classes"]) == 2
        for x, y in ((1.5, 3), ([1.5, 2], [3, 4]), ([[1, 2], [3, 4]], [[2, 4], [6, 8]])):
            assert served.predict("odd", {"inputs": x})["outputs"] == {"y": y, "v": [1, 2]}
        # What TensorFlow refuses, it explains in one line that can be read.
        status, answer = served.post("/v1/models/dense:predict", {"instances": [[1, 2, 3]]})
        assert status == 400 and "\\n" not in answer["error"] and "\n" not in answer["error"] and "\\t" not in answer["error"], answer


def test_a_packed_body_is_unpacked_up_to_the_limit(yard, version, models):
    with Served(yard, version, models / "dense", "--max-request", "1Mi") as served:
        headers = {"Content-Encoding": "gzip"}
        body = json.dumps({"instances": [[1, 2, 3, 4]]}).encode()
        assert served.post("/v1/models/dense:predict", gzip.compress(body), headers)[0] == 200
        assert served.post("/v1/models/dense:predict", gzip.compress(body + b" " * (2 << 20)), headers)[0] == 429
        assert served.post("/v1/models/dense:predict", body, headers)[0] == 400
        assert served.post("/v1/models/dense:predict", body, {"Content-Encoding": "br"})[0] == 400


def test_requests_that_are_refused_are_counted_with_their_status(yard, version, models):
    with Served(yard, version, models / "dense") as served:
        served.predict("dense", {"instances": [[1, 2, 3, 4]]})
        assert served.post("/v1/models/dense:predict", {"instances": "x"})[0] == 400
        assert served.post("/v1/models/dense:predict", {"instances": [[1, 2]]})[0] == 400  # TensorFlow refuses it
        assert served.post("/v1/models/made-up:predict", {"instances": [1]})[0] == 404
        text = served.get("/metrics")[1].decode()
        for line in (':tensorflow:serving:request_count{model_name="dense",status="OK"} 1',
                     ':tensorflow:serving:request_count{model_name="dense",status="INVALID_ARGUMENT"} 2',
                     ':tensorflow:serving:request_count{model_name="",status="NOT_FOUND"} 1',
                     'trainyard_serving_requests_total{model="dense",signature="serving_default",result="invalid_argument"} 1'):
            assert line in text.splitlines(), text
        assert "made-up" not in text
