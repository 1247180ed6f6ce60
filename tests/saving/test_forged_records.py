"""Forged records with valid digests raise SavedFileError, and run no code."""

import pickle
import random

import onnx
import pytest
from onnx import TensorProto
from sklearn.linear_model import Ridge

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import SavedFileError
from ortlearn.saving import load
from tests.saving.archives import RAN, Harmful, X, assert_rejected, find, nodes, resealed


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


def missing_estimator(manifest, parts):
    del manifest["record"]["parameters"]["estimator"]


def text_of_a_graph_that_is_not_utf8(manifest, parts):
    name = find(manifest, **{"$": "model"})["file"]
    parts[name] = parts[name].replace(b"MatMul", b"MatM\xff\xfe")


def tensor_of_another_shape(manifest, parts):
    name = find(manifest, **{"$": "model"})["file"]
    model = onnx.load_model_from_string(parts[name])
    model.graph.initializer[0].dims[0] = 0
    parts[name] = model.SerializeToString()


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
    *(external_weights, special_attribute, special_path, missing_estimator, text_of_a_graph_that_is_not_utf8),
    tensor_of_another_shape,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_forged_records_are_rejected(change, saved, tmp_path):
    assert_rejected(resealed(tmp_path / "model.zip", saved, change))


def test_forged_trainings_are_rejected(saved, tmp_path):
    path = resealed(tmp_path / "model.zip", saved, not_a_training)
    with pytest.raises(SavedFileError, match="record of the training has the wrong type"):
        OrtGradientOptimizer(Ridge(), learning_rate="Adam").fit(X, X[:, 0], resume_from=path)


@pytest.mark.slow
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
