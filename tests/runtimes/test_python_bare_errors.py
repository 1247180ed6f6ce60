"""Errors of the reference runner on invalid packages and samples."""

import json

import numpy as np
import pytest

from .packages import PACKAGES, write_package
from .test_python_bare import Trainer


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("package")
    write_package("boosting", root)
    return root


def test_unknown_format(folder, tmp_path):
    manifest = json.loads((folder / "training.json").read_text())
    (tmp_path / "training.json").write_text(json.dumps({**manifest, "format": 9}))
    with pytest.raises(ValueError, match="The package has format 9, this reads 1 and 2"):
        Trainer(tmp_path)


def test_missing_file(folder, tmp_path):
    (tmp_path / "training.json").write_text((folder / "training.json").read_text())
    with pytest.raises(FileNotFoundError, match="values.safetensors is missing"):
        Trainer(tmp_path)


def test_wrong_shape_and_type(folder):
    _, _, X, y, _ = PACKAGES["boosting"]
    with pytest.raises(ValueError, match=r"X must have samples of shape \[5\], and sample 0 is \[3.1257"):
        Trainer(folder).fit(X[:, :4], y)
    with pytest.raises(ValueError, match='X must be of type float32, and sample 0 has "1"'):
        Trainer(folder).predict([["1", "2", "three", "4", "5"]])


def test_unknown_classes(tmp_path):
    write_package("logistic", tmp_path)
    with pytest.raises(ValueError, match=r'y has "tall", the classes are \["high","low","middle"\]'):
        Trainer(tmp_path).fit(PACKAGES["logistic"][2][:1], ["tall"])


def test_loss_that_is_not_finite_leaves_the_weights(folder):
    _, _, X, y, _ = PACKAGES["boosting"]
    trainer = Trainer(folder)
    before = dict(trainer.values)
    with pytest.raises(FloatingPointError, match="The loss is not finite: lower the learning rate"):
        trainer.fit(X, np.full(len(X), 1e38))
    assert all(trainer.values[name] is array for name, array in before.items())
