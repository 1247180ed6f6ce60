"""Training: written files equal the estimator, options are passed to it, and files are not lost."""

import inspect
import math

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
import skops.io
from onnx import parser
from sklearn.compose import make_column_transformer
from sklearn.covariance import EllipticEnvelope
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge, SGDRegressor
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.cli.estimator_options import add_parameters, documented, given_parameters, literal, set_nested
from ortlearn.cli.parser import Parser
from ortlearn.evaluation.model_files import load_estimator
from ortlearn.learning_rates import LearningRateAdam
from tests.cli.conftest import FEATURES, house_frame

FAST = ("--max-iter", "3", "--random-state", "0", "--learning-rate", "Adam")
WINE = ("wine.csv", "--label", "kind", *FAST)
OTHERS = ("--drop", "region", "--drop", "weight")
PLAIN = ("--learning-penalty", "None")


def probabilities(model, frame):
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(None, {"X": frame[FEATURES].to_numpy(np.float32)})[1]


@pytest.mark.parametrize("two_calls", [False, True])
def test_written_file_equals_the_estimator(run, tmp_path, two_calls):
    out, frame = tmp_path / "new.onnx", pd.read_csv("wine.csv")
    flags = ["--two-calls"] if two_calls else []
    rate = ["--set", "learning_rate__eta0=0.02", *PLAIN]
    arguments = ("--weights", "weight", "--out", out, *flags, *rate, "--json")
    result = run("train", "wine.skops", *WINE, *arguments).result
    samples, _ = train_test_split(
        np.arange(len(frame)), test_size=0.2, random_state=0, stratify=frame["kind"]
    )
    kind = OrtGradientForwardBackwardOptimizer if two_calls else OrtGradientOptimizer
    model = skops.io.load("wine.skops")
    some = frame.iloc[np.sort(samples)]
    settings = {"max_iter": 3, "random_state": 0, "warm_start": True, "learning_penalty": None}
    trainer = kind(model, learning_rate=LearningRateAdam(eta0=0.02), **settings)
    trainer.fit(some[FEATURES], some["kind"], sample_weight=some["weight"])
    expected = probabilities(trainer.get_trained_onnx().SerializeToString(), frame)
    np.testing.assert_array_equal(probabilities(str(out), frame), expected)
    assert result["loss"] == {"first": trainer.train_losses_[0], "last": trainer.train_losses_[-1]}
    assert (result["rows"], result["test_rows"], result["epochs"]) == (142, 36, 3)
    assert set(result["scores"]["after"]) == {"accuracy", "log_loss", "brier", "roc_auc"}
    assert result["scores"]["after"]["log_loss"] < result["scores"]["before"]["log_loss"]
    assert result["unused_columns"] == ["region"] and result["weights"] == ["coef", "intercept"]


def test_summary_as_text(run, tmp_path):
    out, curve = tmp_path / "new.onnx", tmp_path / "curve.svg"
    done = run("train", "wine.onnx", *WINE, *OTHERS, "--out", out, "--curve", curve)
    assert (done.status, done.err) == (0, "")
    for text in ("3 epochs in", "in the first epoch", "accuracy", "before", f"wrote {out}", f"wrote {curve}"):
        assert text in done.out
    assert "<svg" in curve.read_text() and sorted(tmp_path.iterdir()) == [curve, out]


def test_skops_to_skops(run, tmp_path):
    result = run(
        *("train", "houses.skops", "houses.parquet", "--label", "price", "--out", tmp_path / "new.skops"),
        *("--max-iter", "20", "--learning-rate", "Adam", *PLAIN, "--test", "houses.csv.gz", "--json"),
    ).result
    model, frame = load_estimator(str(tmp_path / "new.skops")), pd.read_parquet("houses.parquet")
    assert result["task"] == "regression" and result["test_rows"] == len(frame)
    score = model.score(frame[["size m2", "city"]], frame["price"])
    assert result["scores"]["after"]["r2"] == pytest.approx(score, abs=1e-6)
    assert score > result["scores"]["before"]["r2"]


def test_columns_are_matched_to_inputs_by_name(run, tmp_path):
    frame = pd.read_parquet("houses.parquet")
    frame[["price", "city", "size m2"]].assign(extra="x").to_csv(tmp_path / "other.csv", index=False)
    arguments = ("--label", "price", *FAST, "--json", "--test-share", "0")
    one = run("train", "houses.onnx", "houses.parquet", "--out", tmp_path / "1.onnx", *arguments).result
    other = run(
        "train", "houses.onnx", tmp_path / "other.csv", "--out", tmp_path / "2.onnx", *arguments
    ).result
    assert one["loss"] == other["loss"] and other["unused_columns"] == ["extra"]
    assert one["scores"] == {"before": None, "after": None}


def test_columns_that_a_pipeline_ignores_are_not_needed(run, tmp_path):
    """The pipeline was fitted on a frame with its own label, which its ColumnTransformer drops."""
    frame, out = house_frame(), tmp_path / "new.onnx"
    columns = make_column_transformer((StandardScaler(), ["size m2"]))
    skops.io.dump(make_pipeline(columns, Ridge()).fit(frame, frame["price"]), tmp_path / "model.skops")
    arguments = ("houses.parquet", "--label", "price", "--json")
    result = run("train", tmp_path / "model.skops", *arguments, "--out", out, "--no-warm-start").result
    assert result["unused_columns"] == run("evaluate", out, *arguments).result["unused_columns"] == ["city"]


@pytest.mark.slow
def test_column_names_are_kept_in_metadata(run, tmp_path):
    run("train", "wine.skops", *WINE, "--out", tmp_path / "1.onnx")
    frame = pd.read_csv("wine.csv")
    frame[["kind", *FEATURES[::-1]]].to_csv(tmp_path / "turned.csv", index=False)
    scores = [
        run("evaluate", tmp_path / "1.onnx", data, "--label", "kind", "--json").result["scores"]
        for data in ("wine.csv", tmp_path / "turned.csv")
    ]
    assert scores[0] == scores[1]
    run(
        "train", tmp_path / "1.onnx", tmp_path / "turned.csv", "--label", "kind", "--out", tmp_path / "2.onnx"
    )
    columns = run("explain", tmp_path / "2.onnx", "--json").result["columns"]
    assert columns == FEATURES


def test_unfitted_model(run, tmp_path):
    skops.io.dump(make_pipeline(StandardScaler(), LogisticRegression()), tmp_path / "new.skops")
    arguments = ("--drop", "region", "--no-warm-start", "--out", tmp_path / "new.onnx", "--json")
    result = run("train", tmp_path / "new.skops", *WINE, *arguments).result
    assert result["scores"]["before"] is None and result["scores"]["after"]["accuracy"] > 0
    assert "is not fitted" in run("evaluate", tmp_path / "new.skops", "wine.csv", "--label", "kind").error


def test_documents(run, tmp_path):
    frame = pd.DataFrame({"text": ["good wine", "bad wine", "good", "bad bad"] * 10, "y": [1, 0, 1, 0] * 10})
    frame.to_csv(tmp_path / "texts.csv", index=False)
    model = make_pipeline(CountVectorizer(), LogisticRegression()).fit(frame["text"], frame["y"])
    skops.io.dump(model, tmp_path / "texts.skops")
    arguments = ("--label", "y", "--out", tmp_path / "new.skops", *FAST, "--json")
    result = run("train", tmp_path / "texts.skops", tmp_path / "texts.csv", *arguments).result
    assert result["scores"]["after"]["accuracy"] == 1


def test_model_without_labels(run, tmp_path):
    frame = pd.read_csv("wine.csv")[FEATURES]
    frame.to_csv(tmp_path / "points.csv", index=False)
    skops.io.dump(GaussianMixture(2, random_state=0).fit(frame), tmp_path / "mixture.skops")
    done = run(
        "train", tmp_path / "mixture.skops", tmp_path / "points.csv", "--out", tmp_path / "new.onnx", *FAST
    )
    assert done.status == 0 and (tmp_path / "new.onnx").exists()


def test_model_with_scikit_learn_step_cannot_be_written_as_onnx(run, tmp_path):
    frame = pd.read_csv("wine.csv")
    model = make_pipeline(FunctionTransformer(np.cbrt), StandardScaler(), LogisticRegression())
    skops.io.dump(model.fit(frame[FEATURES].to_numpy(), frame["kind"]), tmp_path / "steps.skops")
    arguments = (
        tmp_path / "steps.skops",
        *WINE,
        "--drop",
        "region",
        "--drop",
        "weight",
        "--trust",
        "numpy.cbrt",
    )
    done = run("train", *arguments, "--out", tmp_path / "new.onnx")
    assert "Write a .skops file" in done.error and not (tmp_path / "new.onnx").exists()
    done = run("train", *arguments, "--out", tmp_path / "new.skops")
    assert done.status == 0 and "warning" in done.err


def test_existing_file_is_only_replaced_with_force(run, tmp_path):
    out = tmp_path / "new.onnx"
    out.write_text("precious")
    arguments = ("train", "wine.skops", *WINE, "--out", out)
    missing = ("train", "missing.skops", *WINE)  # the check comes before any work
    assert f"--out {out} exists" in run(*missing, "--out", out).error
    (tmp_path / "c.png").write_text("precious")
    curve = ("--out", tmp_path / "other.onnx", "--curve", tmp_path / "c.png")
    assert "c.png exists" in run(*missing, *curve).error
    failed = run(*arguments, "--force", "--learning-loss", "unknown")
    assert "No loss is named 'unknown'" in failed.error and out.read_text() == "precious"
    assert run(*arguments, "--force").status == 0 and out.read_bytes() != b"precious"
    assert sorted(tmp_path.iterdir()) == [tmp_path / "c.png", out]


def test_diverging_training_writes_nothing(run, tmp_path):
    skops.io.dump(SGDRegressor().fit([[0.0], [1.0]], [0.0, 1.0]), tmp_path / "model.skops")
    pd.DataFrame({"x": np.arange(50.0) * 100, "y": np.arange(50.0)}).to_csv(
        tmp_path / "data.csv", index=False
    )
    arguments = (tmp_path / "model.skops", tmp_path / "data.csv", "--label", "y", "--learning-rate", "10")
    assert "finite" in run("train", *arguments, "--out", tmp_path / "new.onnx").error
    assert not (tmp_path / "new.onnx").exists()


def test_progress_goes_to_stderr(run, tmp_path):
    done = run("train", "wine.skops", *WINE, "--out", tmp_path / "1.onnx", "--progress", "--json")
    assert "OrtGradientOptimizer" in done.err and done.out.startswith("{")
    assert run("train", "wine.skops", *WINE, "--out", tmp_path / "2.onnx").err == ""  # no terminal


def parsed(*arguments):
    parser = Parser(prog="ortlearn train")
    add_parameters(parser, OrtGradientOptimizer)
    return parser.parse_args(arguments)


def test_every_parameter_is_an_option_with_its_description():
    parameters = inspect.signature(OrtGradientOptimizer).parameters
    described = documented(OrtGradientOptimizer)
    assert set(described) == set(parameters) and all(text for _, text in described.values())
    assert described["label_name"] == described["loss_output_name"]
    flags = {name for name, p in parameters.items() if isinstance(p.default, bool)} - {"average"}
    for name in parameters.keys() - {"estimator", "verbose"}:
        option = f"--{name.replace('_', '-')}"
        if name in flags:
            no = parsed(option.replace("--", "--no-", 1))
            assert [getattr(o, name) for o in (parsed(option), no)] == [True, False]
        else:
            assert getattr(parsed(option, "7"), name) in (7, ["7"])


def test_defaults_of_the_estimator():
    assert given_parameters(parsed(), OrtGradientOptimizer) == {"warm_start": True}
    assert given_parameters(parsed("--no-warm-start"), OrtGradientOptimizer) == {"warm_start": False}
    other = given_parameters(parsed("--no-hoist"), OrtGradientOptimizer)  # another name of precompute
    assert other == {"warm_start": True, "precompute": False}
    assert parsed("--weights-to-train", "a", "--weights-to-train", "b*").weights_to_train == ["a", "b*"]


@pytest.mark.parametrize(
    "text, value",
    [
        ("0.1", 0.1),
        ("7", 7),
        ("None", None),
        ("True", True),
        ("Adam", "Adam"),
        ("{'a': 2}", {"a": 2}),
        ("a b", "a b"),
    ],
)
def test_values_are_read_as_python_does(text, value):
    assert literal(text) == value


def test_nested_parameters():
    trainer = OrtGradientOptimizer(LogisticRegression(), learning_rate="Adam", learning_penalty="l2")
    items = ["learning_rate__learning_rate__period=7", "learning_rate__learning_rate=cosine"]
    set_nested(trainer, [*items, "learning_penalty__l2=0.5", "estimator__C=3", "learning_rate__eta0=0.1"])
    rate = trainer.learning_rate
    assert (type(rate), rate.eta0, type(rate.learning_rate).__name__) == (
        LearningRateAdam,
        0.1,
        "CosineSchedule",
    )
    assert (rate.learning_rate.period, trainer.learning_penalty.l2, trainer.estimator.C) == (7, 0.5, 3)
    trainer = OrtGradientOptimizer(LogisticRegression(), learning_rate=0.3)
    set_nested(trainer, ["learning_rate__power_t=0.7"])
    assert (trainer.learning_rate.eta0, trainer.learning_rate.power_t) == (0.3, 0.7)


@pytest.mark.parametrize(
    "item, text",
    [
        ("learning_rate__eta=1", "Invalid parameter 'eta'"),
        ("max_iter=3", "must be NAME=VALUE"),
        ("learning_rate__eta0", "must be NAME=VALUE"),
        ("learning_penalty__l2=1", "Choose a plugin by its name first"),
        ("nothing__l2=1", "Invalid parameter 'nothing'"),
    ],
)
def test_invalid_nested_parameters(run, tmp_path, item, text):
    penalty = ("--learning-penalty", "None")
    assert (
        text in run("train", "wine.skops", *WINE, "--out", tmp_path / "n.onnx", "--set", item, *penalty).error
    )


def test_graph_with_loss(run, tmp_path):
    text = """<ir_version: 8, opset_import: ["": 18]>
        g (float[N,1] x, float[N,1] label) => (float loss, float[N,1] y) <float[1,1] w = {0}>
        { y = MatMul (x, w) d = Sub (y, label) s = Mul (d, d) loss = ReduceMean <keepdims = 0> (s) }"""
    onnx.save(parser.parse_model(text), tmp_path / "own.onnx")
    frame = pd.DataFrame({"x": np.linspace(-1, 1, 50)}).assign(y=lambda frame: 3 * frame["x"])
    frame.to_csv(tmp_path / "data.csv", index=False)
    data = (tmp_path / "data.csv", "--label", "y")
    arguments = ("--learning-rate", "0.3", "--out", tmp_path / "new.onnx", "--json")
    scores = run("train", tmp_path / "own.onnx", *data, *arguments).result["scores"]
    assert scores["before"]["r2"] < 0.1 and scores["after"]["r2"] > 0.9
    assert run("evaluate", tmp_path / "new.onnx", *data, "--json").result["scores"]["r2"] > 0.9


def test_onnx_file_that_ends_with_scores(run, tmp_path):
    text = """<ir_version: 8, opset_import: ["": 18]>
        g (float[N,3] x) => (float[N,3] y) <float[3,3] w = {0, 0, 0, 0, 0, 0, 0, 0, 0}>
        { y = MatMul (x, w) }"""
    onnx.save(parser.parse_model(text), tmp_path / "scores.onnx")
    arguments = (*OTHERS, "--learning-loss", "log_loss", "--learning-rate", "1e-6")
    done = run("train", tmp_path / "scores.onnx", *WINE, *arguments, "--out", tmp_path / "new.onnx")
    assert (done.status, done.err) == (0, "") and "no scores" in done.out


def test_scores_with_a_rare_class(run, tmp_path):
    frame = pd.read_csv("wine.csv")[[*FEATURES, "kind"]]
    rare = pd.concat([frame[frame["kind"] != "barbera"], frame[frame["kind"] == "barbera"][:1]])
    rare.to_csv(tmp_path / "rare.csv", index=False)
    arguments = (tmp_path / "rare.csv", "--label", "kind", *FAST, "--out", tmp_path / "new.onnx", "--json")
    result = run("train", "wine.skops", *arguments).result
    assert (
        math.isfinite(result["scores"]["after"]["log_loss"]) and result["scores"]["after"]["roc_auc"] is None
    )


def test_models_without_scores(run, tmp_path):
    frame = pd.read_csv("wine.csv")[FEATURES]
    skops.io.dump(EllipticEnvelope().fit(frame.to_numpy()), tmp_path / "outliers.skops")
    arguments = (tmp_path / "outliers.skops", "wine.csv", "--label", "kind", *OTHERS)
    assert "neither a classifier nor a regressor" in run("evaluate", *arguments).error
