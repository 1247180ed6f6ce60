"""The runner for the browser, in a headless browser without a network."""

import json
import re

import numpy as np
import onnxruntime
import pytest

from docs import browser_digits, browser_training

from .browser import WEBGPU, posted_by, served, text_of
from .conftest import RUNTIMES, modules_of, node
from .packages import PACKAGES

pytestmark = pytest.mark.runtimes


@pytest.fixture(scope="module")
def found(packages, tmp_path_factory):
    modules_of("web")
    root = next(iter(packages.values())).parent
    with served(core=RUNTIMES / "core", web=RUNTIMES / "web", packages=root) as address:
        page = f"{address}/web/test/record.html?packages={','.join(PACKAGES)}"
        results = json.loads(text_of(page, tmp_path_factory.mktemp("browser")))
    assert "error" not in results, results["error"]
    return results


@pytest.mark.parametrize("name", PACKAGES)
def test_training_matches_python(name, found):
    result = found[name]
    assert max(result["differences"].values()) < 1e-4
    assert result["epoch"] == 3
    assert result["after"]["loss"] < result["before"]["loss"]


#: Packages without string classes and averages, for which onnxruntime-web has no WebGPU operators.
ON_WEBGPU = ["network", "boosting", "classes"]


def test_webgpu_training_matches_python(packages, tmp_path):
    modules_of("web")
    root = next(iter(packages.values())).parent
    with served(core=RUNTIMES / "core", web=RUNTIMES / "web", packages=root) as address:
        page = f"/web/test/webgpu.html?packages={','.join(ON_WEBGPU)}"
        found = json.loads(posted_by(address, page, tmp_path, WEBGPU))
    if not found["adapter"]:
        pytest.skip("this Chromium has no WebGPU")
    for name in ON_WEBGPU:
        assert "error" not in found["packages"][name], found["packages"][name]
        assert max(found["packages"][name]["differences"].values()) < 1e-4, name


def test_page_of_the_documentation(tmp_path):
    """The page separates two half moons."""
    modules_of("web")
    assert browser_training.write(tmp_path / "page")
    with served(page=tmp_path / "page") as address:
        text = text_of(f"{address}/page/index.html", tmp_path, milliseconds=2000)
    epoch, loss, share = map(float, re.match(r"Epoch (\d+): mean loss ([\d.]+), ([\d.]+) %", text).groups())
    assert epoch >= 50 and loss < 0.4 and share > 90, text


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits") / "page"
    modules_of("web")
    assert browser_digits.write(folder)
    return folder


def test_int8_digits_in_node(digits):
    """The WebAssembly of the page predicts what onnxruntime in Python does, and knows a drawn one."""
    found = json.loads(node("test/digits.mjs", digits, folder=modules_of("web")))
    samples = json.loads((digits / "samples.json").read_text())
    session = onnxruntime.InferenceSession(digits / "digits.onnx")
    X = np.array(samples["images"], np.float32)
    expected = session.run(None, {session.get_inputs()[0].name: X})[0]
    assert found["digits"] == expected.tolist()
    assert np.mean(expected == samples["labels"]) > 0.9
    columns = np.reshape(found["counts"], (8, 8)).sum(axis=0)
    assert found["drawn"] == [1] and columns[3:5].sum() == columns.sum() > 0  # a stroke is in the middle


def test_page_of_digits(digits, tmp_path):
    with served(page=digits) as address:
        text = text_of(f"{address}/page/index.html", tmp_path)
    right, count = map(int, re.match(r"(\d+) of (\d+) digits right", text).groups())
    assert right > 0.9 * count, text
