"""Wrong samples, labels, weights and options, with the sentence by which every runner rejects them.

Values are JSON; ``{"$": "NaN"}`` stands for a value that JSON does not have.
"""

from itertools import product

__all__ = ["CASES", "as_python"]

NAN, INFINITY, UNDEFINED = ({"$": name} for name in ("NaN", "Infinity", "undefined"))
ROW, ROWS, NAMES = [1, 2, 3, 4, 5], [[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]], ["low", "high"]
SHAPE, TYPE = (
    "X must have samples of shape [5], and sample {} is {}.",
    "X must be of type float32, and sample {} has {}.",
)
ARRAY = "X must be an array of samples, and is {}."

#: Samples for an input of five floats.
WRONG_SAMPLES = [
    ([], "X has no samples."),
    ([[]], SHAPE.format(0, "[]")),
    ([[], []], SHAPE.format(0, "[]")),
    (ROW, SHAPE.format(0, "1")),
    ([[1, 2, 3, 4]], SHAPE.format(0, "[1,2,3,4]")),
    ([[1, 2, 3, 4, 5, 6]], SHAPE.format(0, "[1,2,3,4,5,6]")),
    ([[1, 2, 3, 4, 5, 6], [7, 8, 9, 10]], SHAPE.format(0, "[1,2,3,4,5,6]")),
    ([ROW, [6, 7, 8, 9]], SHAPE.format(1, "[6,7,8,9]")),
    ([ROW, ROW, [1]], SHAPE.format(2, "[1]")),
    ([ROW, 7], SHAPE.format(1, "7")),
    ([ROW, None], SHAPE.format(1, "null")),
    ([ROW, "12345"], SHAPE.format(1, '"12345"')),
    ([ROW, {"a": 1}], SHAPE.format(1, '{"a":1}')),
    ([[ROW]], SHAPE.format(0, "[[1,2,3,4,5]]")),
    ([[[1], [2], [3], [4], [5]]], SHAPE.format(0, "[[1],[2],[3],[4],[5]]")),
    ([[1, 2, [3], 4, 5]], SHAPE.format(0, "[1,2,[3],4,5]")),
    ([[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]], SHAPE.format(0, "[1,2]")),
    ([[1], [2], [3], [4], [5]], SHAPE.format(0, "[1]")),
    ([[None] * 5], TYPE.format(0, "null")),
    ([ROW, [1, 2, None, 4, 5]], TYPE.format(1, "null")),
    ([[1, 2, "3", 4, 5]], TYPE.format(0, '"3"')),
    ([["1", "2", "3", "4", "5"]], TYPE.format(0, '"1"')),
    ([[1, 2, "", 4, 5]], TYPE.format(0, '""')),
    ([[1, 2, "three", 4, 5]], TYPE.format(0, '"three"')),
    ([[1, 2, {"a": 3}, 4, 5]], TYPE.format(0, '{"a":3}')),
    ([[1, 2, {}, 4, 5]], TYPE.format(0, "{}")),
    ([[1, 2, INFINITY, 4, 5]], TYPE.format(0, "Infinity")),
    ([ROW, [1, 2, 1e39, 4, 5]], TYPE.format(1, "1e+39")),
    ([ROW, [-1e300, 2, 3, 4, 5]], TYPE.format(1, "-1e+300")),
    ([ROW, [1, 2, NAN, 4, 5]], "X has NaN in sample 1, column 2, where no value may be missing."),
    ([[NAN] * 5], "X has NaN in sample 0, column 0, where no value may be missing."),
    (None, ARRAY.format("null")),
    (7, ARRAY.format("7")),
    (True, ARRAY.format("true")),
    ("rows", ARRAY.format('"rows"')),
    ({}, 'X must be an object of samples by input, and lacks ["X"].'),
    ({"Y": ROWS}, 'X must be an object of samples by input, and lacks ["X"].'),
    ({"X": [ROW, [1]]}, SHAPE.format(1, "[1]")),
    ({"X": None}, ARRAY.format("null")),
    ({"X": {"0": ROW}}, ARRAY.format('{"0":[1,2,3,4,5]}')),
]
CLASS = 'y has {}, the classes are ["high","low","middle"].'
COUNT = "Inputs must have equal numbers of samples, but have X: 2, ortlearn_label: {}."
#: Labels of two samples, of a classifier with names of classes.
WRONG_NAMES = [
    (UNDEFINED, "y is missing: the package trains on labels."),
    (None, "y is missing: the package trains on labels."),
    ([], "y has no samples."),
    (["low"], COUNT.format(1)),
    (["low", "high", "low"], COUNT.format(3)),
    (["low", "tall"], CLASS.format('"tall"')),
    (["low", "Low"], CLASS.format('"Low"')),
    (["low", ""], CLASS.format('""')),
    (["low", None], CLASS.format("null")),
    (["low", 1], CLASS.format("1")),
    ([0, 1], CLASS.format("0")),
    ([True, False], CLASS.format("true")),
    ([NAN, "low"], CLASS.format("NaN")),
    ([["low"], ["high"]], CLASS.format('["low"]')),
    ([["low", "high"]], CLASS.format('["low","high"]')),
    ([{}, "low"], CLASS.format("{}")),
    ("low", 'y must be an array of samples, and is "low".'),
    (3, "y must be an array of samples, and is 3."),
    ({"0": "low", "1": "high"}, 'y must be an array of samples, and is {"0":"low","1":"high"}.'),
]
NUMBER = "y must be of type float32, and sample {} has {}."
FORM = "y must have samples of shape [1], and sample {} is {}."
#: Labels of two samples, of a regressor.
WRONG_NUMBERS = [
    (UNDEFINED, "y is missing: the package trains on labels."),
    ([], "y has no samples."),
    ([1], COUNT.format(1)),
    ([1, 2, 3], COUNT.format(3)),
    ([1, None], NUMBER.format(1, "null")),
    ([1, "2"], NUMBER.format(1, '"2"')),
    (["low", "high"], NUMBER.format(0, '"low"')),
    ([1, {}], NUMBER.format(1, "{}")),
    ([1, 1e39], NUMBER.format(1, "1e+39")),
    ([INFINITY, 1], NUMBER.format(0, "Infinity")),
    ([1, NAN], "y must be finite."),
    ([[1, 2]], FORM.format(0, "[1,2]")),
    ([[1], [2, 3]], FORM.format(1, "[2,3]")),
    ([[1], []], FORM.format(1, "[]")),
    ([[[1]], [[2]]], FORM.format(0, "[[1]]")),
    (4, "y must be an array of samples, and is 4."),
    ("12", 'y must be an array of samples, and is "12".'),
]
NEGATIVE = "sample_weight must be finite and not negative, and has {}."
WEIGHT = "sample_weight must be of type float32, and sample {} has {}."
#: Weights of two samples.
WRONG_WEIGHTS = [
    ([0, 0], "sample_weight is zero for every sample: at least one must be above 0."),
    ([1, -0.5], NEGATIVE.format("-0.5")),
    ([NAN, 1], NEGATIVE.format("NaN")),
    ([1, INFINITY], WEIGHT.format(1, "Infinity")),
    ([1, None], WEIGHT.format(1, "null")),
    ([None, None], WEIGHT.format(0, "null")),
    ([1, "1"], WEIGHT.format(1, '"1"')),
    ([{}, 1], WEIGHT.format(0, "{}")),
    ([], "sample_weight has no samples."),
    ([1], "Inputs must have equal numbers of samples, but have X: 2, ortlearn_label: 2, {weight}: 1."),
    ([1, 2, 3], "Inputs must have equal numbers of samples, but have X: 2, ortlearn_label: 2, {weight}: 3."),
    ([[1, 2], [1, 2]], "sample_weight must have samples of shape [], and sample 0 is [1,2]."),
    ([1, []], "sample_weight must have samples of shape [], and sample 1 is []."),
    (1, "sample_weight must be an array of samples, and is 1."),
    ("12", 'sample_weight must be an array of samples, and is "12".'),
    ({}, "sample_weight must be an array of samples, and is {}."),
]
EPOCHS = "epochs must be a whole number of 1 or more, and is {}."
WRONG_EPOCHS = [
    *((value, EPOCHS.format(value)) for value in (0, -1, 1.5)),
    *((None, EPOCHS.format("null")), ("2", EPOCHS.format('"2"')), ([1], EPOCHS.format("[1]"))),
    *((True, EPOCHS.format("true")), (NAN, EPOCHS.format("NaN")), (INFINITY, EPOCHS.format("Infinity"))),
]
ORDER = "order must be of type int64, and sample {} has {}."
RANGE = "order must have numbers of samples, from 0 to 1."
WRONG_ORDERS = [
    ([], "order has no samples."),
    *((order, RANGE) for order in ([0, 2], [-1, 0], [0, 1, 99], [0, 2**40])),
    *(([0, value], ORDER.format(1, text)) for value, text in ((0.5, "0.5"), (NAN, "NaN"), ("1", '"1"'))),
    *(([0, value], ORDER.format(1, text)) for value, text in ((None, "null"), ({}, "{}"))),
    ([[0, 1]], "order must have samples of shape [], and sample 0 is [0,1]."),
    (None, "order must be an array of samples, and is null."),
    ("01", 'order must be an array of samples, and is "01".'),
    (1, "order must be an array of samples, and is 1."),
]
NO_WEIGHTS = "The package takes no weights of samples: export it with weighted=True."
LABELS = {"logistic": NAMES, "boosting": [1, 2], "weights": NAMES}


def _cases():
    """Yield package, method, its arguments by name, and the sentence."""
    for name, (X, text) in product(("logistic", "boosting"), WRONG_SAMPLES):
        yield name, "predict", {"X": X}, text
        yield name, "fit", {"X": X, "y": LABELS[name]}, text
    for method in ("fit", "evaluate"):
        for name, wrong in (("logistic", WRONG_NAMES), ("boosting", WRONG_NUMBERS)):
            for y, text in wrong:
                yield name, method, {"X": ROWS, "y": y}, text
        for weight, text in WRONG_WEIGHTS:
            yield "weights", method, {"X": ROWS, "y": NAMES, "weight": weight}, text
        yield "logistic", method, {"X": ROWS, "y": NAMES, "weight": [1, 1]}, NO_WEIGHTS
    for epochs, text in WRONG_EPOCHS:
        yield "logistic", "fit", {"X": ROWS, "y": NAMES, "epochs": epochs}, text
    for order, text in WRONG_ORDERS:
        yield "logistic", "trainEpoch", {"X": ROWS, "y": NAMES, "order": order}, text


CASES = list(_cases())


def as_python(value):
    """Return a value with NaN and infinity in the place of their names; undefined is None."""
    if isinstance(value, list):
        return [as_python(item) for item in value]
    if isinstance(value, dict) and "$" in value:
        return {"NaN": float("nan"), "Infinity": float("inf"), "undefined": None}[value["$"]]
    return value
