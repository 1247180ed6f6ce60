"""Archives of saved estimators, and changes of their records."""

import copy
import zipfile

import numpy as np
import pytest

from ortlearn.exceptions import SavedFileError
from ortlearn.saving import load
from ortlearn.saving.files import Content, read, write

X = np.random.default_rng(0).normal(size=(30, 2))
RAN = []


class Harmful:
    """Run code if unpickled."""

    def __reduce__(self):
        return RAN.append, ("ran",)


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {item.filename: archive.read(item) for item in archive.infolist()}


def zipped(path, parts, kind=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, content in parts:
            archive.writestr(name, content)
    return path


def resealed(path, saved, change):
    """Write a file with a changed record or changed graphs, and valid digests."""
    content = read_without_digests(saved)
    change(content.manifest, content.files)
    write(path, content)
    return path


def nodes(value):
    """Yield all objects of a record."""
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from nodes(item)


def find(manifest, **fields):
    return next(node for node in nodes(manifest["record"]) if fields.items() <= node.items())


def assert_rejected(path, match=None):
    with pytest.raises(SavedFileError, match=match) as caught:
        load(path)
    assert str(path) in str(caught.value) and not RAN


def read_without_digests(path):
    content = read(path)
    digests = ("kind", "format", "sha256", "files")
    manifest = {key: value for key, value in content.manifest.items() if key not in digests}
    return Content(copy.deepcopy(manifest), dict(content.files))
