"""Damaged, altered and forged files raise SavedFileError, and run no code."""

import copy
import io
import json
import os
import pickle
import random
import zipfile

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from sklearn.linear_model import Ridge

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import SavedFileError
from ortlearn.saving import SCHEMA, files, load, save
from ortlearn.saving.arrays import pack_arrays, unpack_arrays
from ortlearn.saving.decoder import Decoder
from ortlearn.saving.encoder import Encoder
from ortlearn.saving.files import Content, read, write

X = np.random.default_rng(0).normal(size=(30, 2))
RAN = []


class Harmful:
    """Run code if unpickled."""

    def __reduce__(self):
        return RAN.append, ("ran",)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model.zip"
    options = {"learning_rate": "Adam", "max_iter": 2, "random_state": 0}
    save(OrtGradientOptimizer(Ridge(), **options).fit(X, X[:, 0] * 3 + 1), path)
    return path


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


def test_every_altered_byte_is_an_error(saved, tmp_path):
    """Bytes between the members of the zip file are not read, and may change."""
    intact, path = saved.read_bytes(), tmp_path / "model.zip"
    expected, draw = load(saved).predict(X), random.Random(0)
    same, positions = 0, draw.sample(range(len(intact)), 200)
    for position in positions:
        path.write_bytes(intact[:position] + bytes([intact[position] ^ 0x41]) + intact[position + 1 :])
        try:
            found = load(path).predict(X)
        except SavedFileError:
            continue
        same += 1
        np.testing.assert_array_equal(found, expected)
    assert same < 0.05 * len(positions)


def test_truncated_files_are_rejected(saved, tmp_path):
    intact, path = saved.read_bytes(), tmp_path / "model.zip"
    for length in [*range(0, len(intact), 997), len(intact) - 1]:
        path.write_bytes(intact[:length])
        assert_rejected(path, "is not a saved estimator, or is damaged")


@pytest.mark.parametrize(
    "name", ["../outside.onnx", "/tmp/outside.onnx", "a/b.onnx", "C:\\outside.onnx", "x.pkl"]
)
def test_names_outside_of_the_folder_are_rejected(name, saved, tmp_path):
    assert_rejected(zipped(tmp_path / "model.zip", [*members(saved).items(), (name, b"x")]), "does not list")
    content = read(saved)
    manifest = {key: value for key, value in content.manifest.items() if key != "sha256"}
    manifest["files"] = {**manifest["files"], name: {"bytes": 1, "sha256": "0" * 64}}
    manifest["sha256"] = files._digest(manifest)
    parts = {**members(saved), "manifest.json": json.dumps(manifest)}
    assert_rejected(zipped(tmp_path / "model.zip", [*parts.items(), (name, b"x")]), "name in manifest.files")
    assert [path.name for path in tmp_path.iterdir()] == ["model.zip"]


def test_a_zip_bomb_is_rejected_before_it_is_read(saved, tmp_path):
    parts = [*members(saved).items(), ("arrays-1.npz", b"\0" * 10**8)]
    assert_rejected(zipped(tmp_path / "model.zip", parts, zipfile.ZIP_DEFLATED), "It is compressed")


def test_repeated_names_are_rejected(saved, tmp_path):
    parts = list(members(saved).items())
    with pytest.warns(UserWarning, match="Duplicate"):
        path = zipped(tmp_path / "model.zip", [*parts, parts[0]])
    assert_rejected(path, "repeated names")


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_irregular_files_of_a_folder_are_rejected(kind, saved, tmp_path):
    write(tmp_path / "folder", read_without_digests(saved))
    path = next((tmp_path / "folder").glob("arrays-*.npz"))
    content = path.read_bytes()
    path.unlink()
    if kind == "link":
        (tmp_path / "elsewhere").write_bytes(content)
        path.symlink_to(tmp_path / "elsewhere")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    assert_rejected(tmp_path / "folder", "arrays")


def read_without_digests(path):
    content = read(path)
    digests = ("kind", "format", "sha256", "files")
    manifest = {key: value for key, value in content.manifest.items() if key not in digests}
    return Content(copy.deepcopy(manifest), dict(content.files))


def header(shape, descr, order="False"):
    text = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


@pytest.mark.parametrize(
    "content",
    [
        header((10**15,), "<f8") + b"\0" * 8,
        header((-1,), "<f8") + b"\0" * 8,
        header((1,), "|O") + pickle.dumps([Harmful()]),
        header((1,), "<f8"),
        header((2**62, 2**62), "<f8"),
        header((1,), "<M8[s]") + b"\0" * 8,
        header("__import__('os').abort()", "<f8"),
        b"\x93NUMPY\x03\x00" + b"\0" * 20,
        b"no array",
    ],
)
def test_arrays_are_as_large_as_their_bytes(content):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a0.npy", content)
    with pytest.raises(SavedFileError, match="The arrays cannot be read"):
        unpack_arrays(file.getvalue())
    assert not RAN


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "u1", "?", "U5", "S3", "c16", ">f8", "f2"])
def test_arrays_round_trip(dtype, order):
    for shape in ((), (0,), (3,), (2, 3), (2, 0, 4)):
        array = np.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype), order=order)
        found = unpack_arrays(pack_arrays({"a": array}))["a"]
        np.testing.assert_array_equal(found, array, strict=True)
        assert found.flags.writeable


def unknown_record(manifest, parts):
    find(manifest, name="Problem")["name"] = "Popen"


def unknown_kind(manifest, parts):
    find(manifest, **{"$": "record"})["$"] = "pickle"


def wrong_type(manifest, parts):
    find(manifest, name="Updates")["fields"]["batch_size"] = "many"


def wrong_nested_type(manifest, parts):
    find(manifest, name="TrainableModel")["fields"]["trained"] = [1, 2]


def missing_value(manifest, parts):
    del find(manifest, name="Problem")["fields"]["loss"]


def special_attribute(manifest, parts):
    find(manifest, name="Attribute")["fields"]["name"] = "coef_.__class__"


def special_path(manifest, parts):
    path = {"$": "tuple", "items": ["fit", "__globals__"]}
    find(manifest, name="Parameter")["fields"]["path"] = path


def unknown_value(manifest, parts):
    find(manifest, name="Problem")["fields"]["other"] = 1


def other_group(manifest, parts):
    find(manifest, **{"$": "plugin"})["group"] = "ortlearn.models"


def unknown_plugin(manifest, parts):
    find(manifest, **{"$": "plugin"})["name"] = "nothing"


def unknown_parameter_of_a_plugin(manifest, parts):
    find(manifest, **{"$": "plugin"})["parameters"] = {"command": "rm"}


def unknown_parameter(manifest, parts):
    manifest["record"]["parameters"]["command"] = "rm"


def unknown_class(manifest, parts):
    manifest["summary"]["estimator"] = "Popen"


def missing_array(manifest, parts):
    find(manifest, **{"$": "array"})["key"] = "a999"


def missing_file(manifest, parts):
    find(manifest, **{"$": "model"})["file"] = "manifest.json"


def other_weights(manifest, parts):
    manifest["record"]["state"]["fields"]["weights"] = {"$": "dict", "items": []}


def nested_deeply(manifest, parts):
    value = 1
    for _ in range(200):
        value = [value]
    manifest["record"]["state"] = value


def another_state(manifest, parts):
    manifest["record"]["state"] = manifest["record"]["features"]


def not_a_training(manifest, parts):
    manifest["record"]["state"]["fields"]["fingerprint"] = [1]


def pickled_object(manifest, parts):
    name = next(name for name in parts if name.endswith(".skops"))
    parts[name] = pickle.dumps(Harmful())


def damaged_graph(manifest, parts):
    name = find(manifest, **{"$": "model"})["file"]
    parts[name] = parts[name][:50]


def external_weights(manifest, parts):
    name = find(manifest, **{"$": "model"})["file"]
    model = onnx.load_model_from_string(parts[name])
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")
    parts[name] = model.SerializeToString()


def empty_name(manifest, parts):
    """Rename a described weight; the graph still has it."""
    items = next(
        node["items"]
        for node in nodes(find(manifest, name="TrainableModel"))
        if node.get("$") == "dict" and any(pair[0] == "I0_coef" for pair in node["items"])
    )
    next(pair for pair in items if pair[0] == "I0_coef")[0] = ""


def class_weights_in_lists(manifest, parts):
    find(manifest, name="Targets")["fields"]["class_weights"] = [[]]


def class_weights_without_classes(manifest, parts):
    find(manifest, name="Targets")["fields"]["class_weights"] = [{"$": "dict", "items": []}]


def no_inputs(manifest, parts):
    find(manifest, name="InputSchema")["fields"]["inputs"] = {"$": "tuple", "items": []}


def unknown_element_type(manifest, parts):
    find(manifest, name="TensorType")["fields"]["elem_type"] = -1


def epoch_without_loss(manifest, parts):
    find(manifest, name="TrainingState")["fields"]["history"] = [{"$": "dict", "items": [["epoch", 1]]}]


CHANGES = [
    *(empty_name, class_weights_in_lists, class_weights_without_classes, no_inputs, unknown_element_type),
    epoch_without_loss,
    *(unknown_record, unknown_kind, wrong_type, wrong_nested_type, missing_value, unknown_value, other_group),
    *(unknown_plugin, unknown_parameter_of_a_plugin, unknown_parameter, unknown_class, missing_array),
    *(missing_file, other_weights, nested_deeply, another_state, pickled_object, damaged_graph),
    *(external_weights, special_attribute, special_path),
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_forged_records_are_rejected(change, saved, tmp_path):
    assert_rejected(resealed(tmp_path / "model.zip", saved, change))


def test_forged_trainings_are_rejected(saved, tmp_path):
    path = resealed(tmp_path / "model.zip", saved, not_a_training)
    with pytest.raises(SavedFileError, match="record of the training has the wrong type"):
        OrtGradientOptimizer(Ridge(), learning_rate="Adam").fit(X, X[:, 0], resume_from=path)


@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.OmittedWarning")
def test_randomly_changed_records_run_no_code(saved, tmp_path):
    """Any replaced value of the record leads to a SavedFileError or an estimator."""
    draw, n_refused = random.Random(0), 0
    values = [None, 0, -1, 1.5, "", "os.system", [], {}, True, {"$": "omitted", "name": "x"}, 10**30]
    for _ in range(120):

        def change(manifest, parts):
            owner = draw.choice([node for node in nodes(manifest["record"]) if node])
            owner[draw.choice(list(owner))] = draw.choice(values)

        try:
            load(resealed(tmp_path / "model.zip", saved, change))
        except SavedFileError:
            n_refused += 1
    assert n_refused > 60 and not RAN


def test_a_later_format_is_rejected(saved, tmp_path):
    manifest = {**read(saved).manifest, "format": 99}
    parts = {**members(saved), "manifest.json": json.dumps(manifest)}
    assert_rejected(zipped(tmp_path / "model.zip", parts.items()), "format 99.*install a newer version")


def test_other_files_are_rejected(tmp_path):
    (tmp_path / "model.zip").write_bytes(b"text")
    assert_rejected(tmp_path / "model.zip", "is not a saved estimator")
    assert_rejected(zipped(tmp_path / "other.zip", [("a.txt", b"x")]), "lacks manifest.json")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing.zip")
    (tmp_path / "folder").mkdir()
    assert_rejected(tmp_path / "folder", "manifest.json cannot be read")


def test_the_schema_describes_the_manifest(saved):
    manifest = read(saved).manifest
    assert {*SCHEMA["required"]} == {*manifest} == {*SCHEMA["properties"]}


VALUES = [
    *(None, True, 3, -(2**70), 1.5, float("inf"), "text", [1, [2]], (1, "a"), {"$": 1, 2: (3,)}, b"bytes"),
    *(
        {1, 2},
        frozenset("a"),
        slice(1, None, 2),
        np.float32(0.1),
        np.int64(3),
        np.str_("a"),
        np.dtype("<f4"),
    ),
    *({("a", None): 1}, float("-inf"), {}, (), np.bool_(True)),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_round_trip(value):
    encoder = Encoder({})
    text = json.dumps(encoder.encode(value), allow_nan=False)
    found = Decoder({}, encoder.all_files(), ()).decode(json.loads(text))
    assert type(found) is type(value) and found == value


def test_random_states_round_trip():
    state = np.random.RandomState(3)
    state.normal(size=5)
    encoder = Encoder({})
    text = json.dumps(encoder.encode(state))
    found = Decoder({}, encoder.all_files(), ()).decode(json.loads(text))
    np.testing.assert_array_equal(found.normal(size=9), state.normal(size=9))
