"""Every runner rejects wrong inputs with the same sentence, and keeps its weights."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from ortlearn import OrtGradientOptimizer
from ortlearn.saving import export_training

from .conftest import modules_of, node
from .packages import PACKAGES, write_format_1, write_package
from .test_python_bare import Trainer
from .wrong_inputs import CASES, LABELS, ROWS, as_python

NODE = """
import { readFileSync } from "node:fs";
import { load } from "./index.mjs";
const { root, cases } = JSON.parse(readFileSync(process.argv[1], "utf8"));
const NAMES = { NaN, Infinity, undefined };
const revived = (value) => {
  if (Array.isArray(value)) return value.map(revived);
  return value !== null && typeof value === "object" && "$" in value ? NAMES[value.$] : value;
};
const trainers = {}, before = {};
for (const [name] of cases) {
  trainers[name] ??= await load(`${root}/${name}`);
  before[name] ??= trainers[name].values;
}
const found = [];
for (const [name, method, given] of cases) {
  const trainer = trainers[name], [X, y, weight] = ["X", "y", "weight"].map((key) => revived(given[key]));
  try {
    const options = "epochs" in given ? { epochs: revived(given.epochs) } : { sampleWeight: weight };
    if (method === "fit") await trainer.fit(X, y, options);
    if (method === "trainEpoch") await trainer.trainEpoch(trainer.columns(X, y), revived(given.order));
    if (method === "evaluate") await trainer.evaluate(X, y, weight);
    if (method === "predict") await trainer.predict(X);
    found.push("accepted");
  } catch (error) {
    found.push(error.message);
  }
}
const kept = Object.keys(trainers).every((name) => trainers[name].values === before[name]);
console.log(JSON.stringify({ found, kept }));
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("packages")
    for name in LABELS:
        write_package(name, root / name)
    return root


@pytest.fixture(scope="module")
def trainers(folders):
    return {name: Trainer(folders / name) for name in LABELS}


def sentences(folders):
    """Return the expected sentences, with the name of the input of weights."""
    manifest = json.loads((folders / "weights" / "training.json").read_text())
    return [text.replace("{weight}", manifest["sample_weight"]["name"]) for *_, text in CASES]


def call(trainer, method, given):
    X, y, weight = (as_python(given.get(key)) for key in ("X", "y", "weight"))
    if method == "fit":
        trainer.fit(X, y, as_python(given.get("epochs", 1)), sample_weight=weight, on_epoch=str)
    elif method == "evaluate":
        trainer.evaluate(X, y, weight)
    elif method == "predict":
        trainer.predict(X)
    else:
        trainer.train_epoch(trainer.columns(X, y), as_python(given["order"]))


@pytest.mark.slow
def test_wrong_inputs_of_the_runner_in_python(folders, trainers):
    before, found = {name: trainer.values for name, trainer in trainers.items()}, []
    for name, method, given, _ in CASES:
        try:
            call(trainers[name], method, given)
            found.append("accepted")
        except ValueError as error:
            found.append(str(error))
    assert len(found) > 250
    wrong = [
        (case[:3], text)
        for case, text, new in zip(CASES, found, sentences(folders), strict=True)
        if text != new
    ]
    assert not wrong
    assert all(trainers[name].values is values for name, values in before.items())


@pytest.mark.runtimes
def test_wrong_inputs_of_the_runner_in_node(folders, tmp_path):
    (tmp_path / "cases.json").write_text(json.dumps({"root": str(folders), "cases": CASES}))
    command = ("--input-type=module", "-e", NODE, tmp_path / "cases.json")
    result = json.loads(node(*command, folder=modules_of("node")))
    found, expected = result["found"], sentences(folders)
    wrong = [(case[:3], text) for case, text, new in zip(CASES, found, expected, strict=True) if text != new]
    assert not wrong and result["kept"]


MISSING = """
import { load } from "./index.mjs";
const found = [];
for (const folder of process.argv.slice(1)) {
  const trainer = await load(folder);
  for (const X of [[[NaN, 2]], [[1, NaN]], new Float32Array([1, 2, NaN, NaN])]) {
    found.push(await trainer.predict(X).then(() => "accepted", (error) => error.message));
  }
}
console.log(JSON.stringify(found));
"""
ACCEPTED = ["accepted"] * 3
MISSING_SENTENCES = ["accepted"] + [
    f"X has NaN in sample {number}, column 1, where no value may be missing." for number in (0, 1)
]


@pytest.fixture(scope="module")
def with_missing(tmp_path_factory):
    """Return packages of a model that accepts missing values in column 0, of this version and of 0.2.0."""
    imputer = make_column_transformer((SimpleImputer(), [0]), remainder="passthrough")
    values = np.array([[1, 2], [np.nan, 1], [3, 4], [2, 5]], dtype=np.float32)
    trained = OrtGradientOptimizer(
        make_pipeline(imputer, Ridge()), learning_rate="Adam", max_iter=1, random_state=0
    ).fit(values, [1.0, 2.0, 3.0, 4.0])
    with pytest.raises(ValueError, match="NaN"):
        trained.predict([[1, np.nan]])
    folders = [tmp_path_factory.mktemp("missing") for _ in range(2)]
    for folder in folders:
        export_training(trained, folder)
    write_format_1(folders[1])
    return folders


def test_missing_values_where_the_model_accepts_them(with_missing):
    found = []
    for trainer in map(Trainer, with_missing):
        for X in ([[np.nan, 2]], [[1, np.nan]], np.array([[1, 2], [np.nan, np.nan]], dtype=np.float32)):
            try:
                trainer.predict(X)
                found.append("accepted")
            except ValueError as error:
                found.append(str(error))
    assert found == MISSING_SENTENCES + ACCEPTED


@pytest.mark.runtimes
def test_missing_values_in_node(with_missing):
    found = node("--input-type=module", "-e", MISSING, *with_missing, folder=modules_of("node"))
    assert json.loads(found) == MISSING_SENTENCES + ACCEPTED


#: Calls with values that only JavaScript has, and a part of the sentence.
ONLY_NODE = """
const X = [[1, 2, 3, 4, 5]], y = ["low"], circle = [];
circle.push(circle);
const one = trainers.logistic, two = trainers.boosting;
const calls = [
  [() => one.predict(), "X must be an array of samples, and is undefined."],
  [() => one.predict(() => 1), "X must be an array of samples, and is () => 1."],
  [() => one.predict(Symbol("samples")), "X must be an array of samples, and is Symbol(samples)."],
  [() => one.predict(1n), "X must be an array of samples, and is 1."],
  [() => one.predict(new Map()), 'X must be an object of samples by input, and lacks ["X"].'],
  [() => one.predict(new Date(0)), 'X must be an object of samples by input, and lacks ["X"].'],
  [() => one.predict(new DataView(new ArrayBuffer(40))), "X must be an array of samples, and is {}."],
  [() => one.predict(new Float32Array(4)), "X must have samples of shape [5], and has 4 values."],
  [() => one.predict(new Float64Array(11)), "X must have samples of shape [5], and has 11 values."],
  [() => one.predict(new Float32Array(0)), "X has no samples."],
  [() => one.predict(new Float64Array(5).fill(1e300)), "X must be of type float32, and sample 0 has 1e+300."],
  [() => one.predict([new Float32Array(4)]), "X must have samples of shape [5], and sample 0 is [0,0,0,0]."],
  [() => one.predict([[1, , 3, 4, 5]]), "X must be of type float32, and sample 0 has undefined."],
  [() => one.predict([, X[0]]), "X must have samples of shape [5], and sample 0 is undefined."],
  [() => one.predict([[1, 2, Symbol("a"), 4, 5]]), "X must be of type float32, and sample 0 has Symbol(a)."],
  [() => one.predict([[1, 2, () => 3, 4, 5]]), "X must be of type float32, and sample 0 has () => 3."],
  [() => one.predict([[1, 2, 10n ** 400n, 4, 5]]), "X must be of type float32, and sample 0 has Infinity."],
  [() => one.predict(circle), "X must have samples of shape [5], and sample 0 is "],
  [() => one.fit(X), "y is missing: the package trains on labels."],
  [() => one.fit(X, [undefined]), 'y has undefined, the classes are ["high","low","middle"].'],
  [() => one.fit(X, new Set(y)), "y must be an array of samples, and is {}."],
  [() => one.fit(X, [1n]), 'y has 1, the classes are ["high","low","middle"].'],
  [() => two.fit(X, [undefined]), "y must be of type float32, and sample 0 has undefined."],
  [() => two.fit(X, new Float32Array([NaN])), "y must be finite."],
  [() => one.fit(X, y, { onEpoch: 1 }), "onEpoch and random must be functions."],
  [() => one.fit(X, y, { random: 0.5 }), "onEpoch and random must be functions."],
  [() => two.fit([X[0], X[0]], [1, 2], { random: () => 7 }), "order must be of type int64, and sample"],
  [() => one.fit(X, y, { epochs: 2n }), "epochs must be a whole number of 1 or more, and is 2."],
  [() => one.fit(X, y, { epoch: 30 }), "Unknown option epoch; options are epochs, onEpoch, random, "],
  [() => one.fit(X, y, 30), "Options must be an object, and are 30."],
  [() => one.run("foo", X), 'The graph "foo" is unknown; graphs are step, epoch, evaluate, infer.'],
  [() => one.run("infer", X), "X, I2_coef, I3_intercept is missing: pass tensors by name"],
  [() => one.run("infer"), "X, I2_coef, I3_intercept is missing: pass tensors by name"],
  [() => one.trainEpoch(one.columns(X, y)), "order must be an array of samples, and is undefined."],
  [() => one.save(7), "The folder must be a path."],
  [() => one.save(root), "has other files: pass a new folder."],
  [() => load(), "The folder of a package must be a path."],
  [() => load(null), "The folder of a package must be a path."],
  [() => load(`${root}/nothing`), "nothing/training.json is missing: copy the package again."],
];
const failed = [];
for (const [made, text] of calls) {
  try {
    await made();
    failed.push(`${made}: accepted`);
  } catch (error) {
    if (!error.message.includes(text)) failed.push(`${made}: ${error.message}`);
  }
}
console.log(JSON.stringify(failed));
"""


@pytest.mark.runtimes
def test_wrong_inputs_that_only_node_has(folders):
    load = "const root = process.argv[1], trainers = {};"
    load += "for (const name of ['logistic', 'boosting']) trainers[name] = await load(`${root}/${name}`);"
    source = f'import {{ load }} from "./index.mjs"; {load} {ONLY_NODE}'
    assert json.loads(node("--input-type=module", "-e", source, folders, folder=modules_of("node"))) == []


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame(ROWS, columns=list("abcde")),
        np.array(ROWS, dtype=object),
        np.array(ROWS, dtype=np.int8),
        tuple(map(tuple, ROWS)),
        [np.array(row) for row in ROWS],
        {"X": ROWS},
    ],
    ids=["frame", "objects", "integers", "tuples", "list of arrays", "inputs"],
)
def test_right_inputs_of_the_runner_in_python(X, trainers):
    expected = trainers["boosting"].predict(np.array(ROWS, dtype=np.float32))
    found = trainers["boosting"].predict(X)
    np.testing.assert_array_equal(found["prediction"], expected["prediction"])
    labels = ([1, 2], np.array([1.0, 2.0]), np.array([[1], [2]]), [[1], [2]], pd.Series([1, 2]), (True, 2))
    assert len({trainers["boosting"].evaluate(X, y)["ortlearn_mean_loss"].item() for y in labels}) == 1


@pytest.mark.parametrize(
    "X, text",
    [
        (np.zeros((2, 4)), r"samples of shape \[5\], and sample 0 is \[0.0,0.0,0.0,0.0\]"),
        (np.zeros((2, 5, 1)), r"samples of shape \[5\]"),
        (np.zeros(5), r"samples of shape \[5\], and sample 0 is 0.0"),
        (np.array(3.0), "must be an array of samples, and is 3.0"),
        (np.zeros((0, 5)), "has no samples"),
        (np.array([["1"] * 5]), 'float32, and sample 0 has "1"'),
        (np.array([[1 + 0j] * 5]), "float32, and sample 0 has"),
        (np.array([["2020-01-01"] * 5], dtype="M8[D]"), "float32, and sample 0 has"),
        (pd.DataFrame([[1, 2, 3, 4, None]], dtype=object), "float32, and sample 0 has null"),
        (pd.DataFrame([[1, 2, 3, 4, pd.NA]], dtype="Int64"), 'float32, and sample 0 has "<NA>"'),
        (np.full((2, 5), 1e300), r"float32, and sample 0 has 1e\+300"),
        ([[10**400, 2, 3, 4, 5]], "float32, and sample 0 has 1000"),
        ({1, 2}, "must be an array of samples"),
        (iter(ROWS), "must be an array of samples"),
    ],
)
def test_wrong_arrays_of_the_runner_in_python(X, text, trainers):
    with pytest.raises(ValueError, match=f"X must.*{text}|X {text}"):
        trainers["logistic"].predict(X)


def test_packages_have_the_labels_of_the_cases():
    assert all(set(labels) <= set(PACKAGES[n][3].tolist()) for n, labels in LABELS.items() if n != "boosting")
