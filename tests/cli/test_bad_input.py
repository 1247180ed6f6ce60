"""Errors are one line with advice, and exit status 2."""

import sys

import pandas as pd
import pytest
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from tests.cli.conftest import FEATURES, wine_frame
from tests.saving.test_sklearn_objects import altered

OUT = ("--out", "never.onnx")
WINE = ("wine.csv", "--label", "kind")
NUMBERS = (*WINE, "--drop", "region", "--drop", "weight")


def log(x):
    return x


@pytest.fixture(autouse=True)
def nothing_is_written(files):
    before = sorted(files.iterdir())
    yield
    assert sorted(files.iterdir()) == before


@pytest.mark.parametrize(
    "arguments, text",
    [
        (("nothing.onnx", *WINE), "nothing.onnx: No such file"),
        (("nothing.skops", *WINE), "nothing.skops: No such file"),
        (("model.pkl", *WINE), "skops.io.dump"),
        (("model.joblib", *WINE), "runs the code that it holds"),
        (("model.h5", *WINE), "must be an .onnx, .skops or .zip file"),
        (("wine.skops", "nothing.csv", "--label", "kind"), "nothing.csv: No such file"),
        (("wine.skops", "wine.xlsx", "--label", "kind"), "data must be a .csv"),
        (("wine.skops", "wine.csv", "--label", "Kind"), "no column 'Kind', but ['alcohol'"),
        (("wine.skops", "wine.csv"), "--label COLUMN"),
        (("wine.skops", *WINE, "--drop", "x"), "no column 'x'"),
        (("wine.skops", *WINE, "--weights", "x"), "no column 'x'"),
        (("wine.skops", *WINE, "--weights", "region"), "sample weights must be numbers"),
        (("wine.skops", *WINE, "--drop", "kind"), "cannot be dropped"),
        (("wine.skops", *WINE, "--drop", "hue"), "lacks columns that the model takes: ['hue']"),
        (("wine.skops", "wine.csv", "--label", "region"), "not classes of the model: ['north', 'south']"),
        (("houses.skops", "houses.parquet", "--label", "city"), "column 'city' of houses.parquet has texts"),
        (("wine.onnx", *WINE), "has 5 columns of features, wine.onnx takes 3"),
        (("wine.onnx", *WINE, "--drop", "hue", "--drop", "weight"), "texts where the model takes numbers"),
        (("wine.skops", "wine.csv", "--label", "kind", "--separator", ";"), "choose their separator"),
        (("wine.skops", "wine.csv", "--label", ""), "has no column ''"),
        *(
            (
                ("wine.skops", "wine.csv", "--label", "kind", "--separator", mark),
                "must be one ASCII character",
            )
            for mark in ("", "ab", "\n", '"', "\0", "é", r"\s+")
        ),
    ],
)
@pytest.mark.parametrize("command", ["train", "evaluate"])
def test_arguments(run, command, arguments, text):
    assert text in run(command, *arguments, *(OUT if command == "train" else ())).error


def test_column_of_a_bad_number_is_named(run, tmp_path):
    houses = pd.read_parquet("houses.parquet").astype({"size m2": object})
    houses.loc[3, "size m2"] = "9O.5"
    houses.to_csv(tmp_path / "bad.csv", index=False)
    error = run("evaluate", "houses.skops", tmp_path / "bad.csv", "--label", "price").error
    assert "takes numbers, in the columns ['size m2'] (such as '9O.5')" in error


@pytest.mark.parametrize(
    "arguments, text",
    [
        ((), "required: --out"),
        (("--out", "new.pkl"), "must end in .onnx or .skops"),
        (("--out", "no_folder/new.onnx"), "there is no folder 'no_folder'"),
        (("--out", "wine.onnx"), "wine.onnx exists"),
        ((*OUT, "--curve", "a.jpg"), "must end in .png or .svg"),
        ((*OUT, "--max-iter", "0"), "'max_iter' parameter"),
        ((*OUT, "--max-iter", "abc"), "Got 'abc'"),
        ((*OUT, "--dtype", "int8"), "'dtype' parameter"),
        ((*OUT, "--learning-rate", "Fast"), "No learning rate is named 'Fast'"),
        ((*OUT, "--learning-penalty", "l3"), "No penalty is named 'l3'"),
        ((*OUT, "--weights-to-train", "coeff"), "Did you mean"),
        ((*OUT, "--test-share", "1"), "--test-share 1.0"),
        ((*OUT, "--test-share", "x"), "invalid float value: 'x'"),
        ((*OUT, "--test", "nothing.csv"), "nothing.csv: No such file"),
        ((*OUT, "--epochs", "3"), "unknown arguments: --epochs 3"),
        ((*OUT, "--scoring", "nothing"), "scoring='nothing' must be 'loss', None, a function, or a name"),
        ((*OUT, "--scoring", "acuracy"), "Did you mean 'accuracy'"),
        ((*OUT, "--max-iter", "True"), "'max_iter' parameter"),
        ((*OUT, "--batch-size", "False"), "'batch_size' parameter"),
        ((*OUT, "--n-jobs", "0"), "'n_jobs' parameter"),
        ((*OUT, "--n-jobs", str(10**12)), "'n_jobs' parameter"),
        ((*OUT, "--learning-rate", "1" * 400), "eta0=inf must be a finite number"),
        (
            (*OUT, "--learning-rate", "SGD", "--set", f"learning_rate__eta0={'1' * 400}"),
            "must be a finite number",
        ),
        ((*OUT, "--set", "estimator__logisticregression__C=abc"), "The 'C' parameter of LogisticRegression"),
        ((*OUT, "--set", "estimator__logisticregression__C=-1"), "The 'C' parameter of LogisticRegression"),
        ((*OUT, "--set", "estimator__steps=1"), "--set"),
        ((*OUT, "--test-share", "0.9999"), "leaves no sample of wine.csv to train on, since it has 178"),
        ((*OUT, "--test", ""), "'': data must be a .csv"),
        ((*OUT, "--drop", ""), "has no column ''"),
        ((*OUT, "--separator", "ab"), "--separator 'ab': must be one ASCII character"),
    ],
)
def test_options_of_train(run, arguments, text):
    assert text in run("train", "wine.skops", *WINE, *arguments).error


def test_onnx_file_cannot_be_written_as_skops(run):
    assert (
        "an ONNX file is trained to an ONNX file"
        in run("train", "wine.onnx", *WINE, "--out", "n.skops").error
    )


@pytest.mark.parametrize(
    "name, content, text",
    [
        ("empty.csv", b"", "empty.csv is empty"),
        ("titles.csv", b"alcohol,kind\n", "has no rows"),
        ("broken.csv", b'a,kind\n1,2\n"3,4,5\n', "cannot be read as csv"),
        ("binary.csv", b"\xff\xfe\x00\x01", "cannot be read as csv"),
        ("broken.csv.gz", b"no archive", "cannot be read as csv"),
        ("broken.parquet", b"no parquet", "cannot be read as parquet"),
        ("missing.csv", b"alcohol,hue,proline,kind\n1,2,3,\n1,2,3,barolo\n", "no label in 1 of 2 rows"),
        (  # the columns "note" and "x" are not read
            "longer.csv",
            b"alcohol,hue,proline,kind,note,x\n1,2,3,barolo,a,b\n1,2,5,3,barolo,a,b\n",
            "longer.csv cannot be read as csv",
        ),
        ("alone.csv", b"kind\nbarolo\n", "there are no features"),
        (
            "texts.csv",
            b"alcohol,hue,proline,kind\n1,2,high,barolo\n",
            "columns ['proline'] (such as 'high')",
        ),
        (
            "one_text.csv",
            b"alcohol,hue,proline,kind\n1,2,3,barolo\n1,2,high,barolo\n",
            "columns ['proline'] (such as 'high')",
        ),
    ],
)
def test_damaged_data(run, tmp_path, name, content, text):
    (tmp_path / name).write_bytes(content)
    assert text in run("evaluate", "wine.skops", tmp_path / name, "--label", "kind").error


@pytest.mark.parametrize("model", ["wine.skops", "wine.onnx"])
@pytest.mark.parametrize("row", range(0, 30, 5))
def test_a_text_in_any_row_is_named(run, tmp_path, model, row):
    """It is in the samples to train on, or in those to score on; pandas reads all its column as text."""
    rows = [[f"{i}.25", "1", f"{3 * i % 7}", "barolo" if i % 2 else "barbera"] for i in range(30)]
    rows[row][0] = "abc"
    lines = [["alcohol", "hue", "proline", "kind"], *rows]
    (tmp_path / "typo.csv").write_text("".join(",".join(line) + "\n" for line in lines))
    error = run("train", model, tmp_path / "typo.csv", "--label", "kind", *OUT).error
    assert "in the columns ['alcohol'] (such as 'abc')" in error


@pytest.mark.parametrize("unknown", ["ignore", "error"])
def test_numbers_instead_of_texts_are_named(run, tmp_path, unknown):
    frame = pd.DataFrame({"size": range(40), "zip": ["01", "02"] * 20, "price": range(40)})
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown=unknown), ["zip"]), remainder="passthrough"
    )
    model = make_pipeline(columns, Ridge()).fit(frame[["size", "zip"]], frame["price"])
    skops.io.dump(model, tmp_path / "zip.skops")
    frame.to_csv(tmp_path / "zip.csv", index=False)
    arguments = "evaluate", tmp_path / "zip.skops", tmp_path / "zip.csv", "--label", "price"
    error = run(*arguments).error
    assert "numbers where the model takes text" in error and "'zip'" in error and "--text" in error
    assert run(*arguments, "--text", "zip").status == 0


ROWS = "alcohol,hue,proline,kind\n" + "".join(f"{i},1,{3 * i % 7},barolo\n" for i in range(12))


@pytest.mark.parametrize(
    "content, text",
    [
        (ROWS.replace("3,1,", "1" * 400 + ",1,"), "a number in column 'alcohol', row 3, that is too large"),
        (
            ROWS.replace("3,1,", "-" + "1" * 400 + ",1,"),
            "a number in column 'alcohol', row 3, that is too large",
        ),
        (ROWS.replace("3,1,", "inf,1,"), "infinite values in the columns ['alcohol']"),
        (ROWS.replace("3,1,", "1e999,1,"), "infinite values in the columns ['alcohol']"),
        (ROWS.replace("3,1,", ",1,"), "empty cells in the columns ['alcohol']"),
        (ROWS.replace("3,1,", "\0" + "3,1,"), "a null character in column 'alcohol', row 3"),
        (ROWS.replace("barolo", "bar\0lo"), "a null character in column 'kind', row 0"),
        (ROWS.replace("hue", "alcohol"), "several columns with the names ['alcohol']"),
        (ROWS.replace("barolo", "baroló").encode("latin1"), "data. Save the file as UTF-8"),
        (ROWS.encode("utf16"), "cannot be read as csv"),
        (ROWS.splitlines()[0] + "\n1,2,3,barolo\n", "leaves no sample of"),
    ],
)
@pytest.mark.parametrize("command", ["train", "evaluate"])
def test_values_of_csv_files(run, tmp_path, command, content, text):
    path = tmp_path / "data.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    arguments = (command, "wine.skops", path, "--label", "kind")
    if command == "train":
        assert text in run(*arguments, *OUT).error
    elif "leaves no sample" not in text:
        assert text in run(*arguments).error


@pytest.mark.parametrize("suffix", ["skops", "onnx"])
@pytest.mark.parametrize(
    "values, text",
    [
        ([[1], [2]], "neither numbers nor text in the columns ['alcohol'] ('alcohol' has"),
        ([{"a": 1}, {"a": 2}], "neither numbers nor text in the columns ['alcohol']"),
        (pd.to_datetime(["2020-01-01", "2021-01-01"]), "('alcohol' has datetime64"),
        (pd.to_timedelta([1, 2], unit="s"), "('alcohol' has timedelta64"),
        ([b"\1", b"\2"], "neither numbers nor text in the columns ['alcohol']"),
    ],
    ids=["lists", "structs", "dates", "durations", "bytes"],
)
def test_values_of_parquet_files(run, tmp_path, suffix, values, text):
    columns = {"alcohol": values, "hue": [1.0, 2.0], "proline": [1.0, 2.0], "kind": ["barolo", "barbera"]}
    pd.DataFrame(columns).to_parquet(tmp_path / "data.parquet")
    for command in ("train", "evaluate"):
        written = ("--out", "never.onnx", "--test-share", "0") if command == "train" else ()
        assert text in run(command, f"wine.{suffix}", tmp_path / "data.parquet", *WINE[1:], *written).error


def test_a_large_number_in_a_column_that_is_not_used_or_is_text(run, tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(ROWS.replace("kind", "kind,code").replace("barolo", f"barolo,{'1' * 400}"))
    out = tmp_path / "new.onnx"
    assert "column 'code', row 0" in run("train", "wine.onnx", path, "--label", "kind", "--out", out).error
    for options in ((), ("--drop", "code"), ("--text", "code")):
        assert run("evaluate", "wine.skops", path, "--label", "kind", *options).status == 0


@pytest.mark.parametrize(
    "command, arguments, text",
    [
        ("compare", ("--tolerance", "nan"), "--tolerance nan: must be 0 or more"),
        ("compare", ("--tolerance", "-1"), "--tolerance -1.0: must be 0 or more"),
        ("compare", ("--resamples", str(10**12)), "must be between 2 and 1000000"),
        ("compare", ("--random-state", "-1"), "--random-state -1: must be 0 or more"),
        ("explain", ("--lora", "0"), "--lora 0: must be between 1 and"),
        ("explain", ("--lora", str(10**30)), "must be between 1 and"),
    ],
)
def test_numbers_out_of_range(run, command, arguments, text):
    models = ("wine.skops", "wine.skops", *WINE) if command == "compare" else ("wine.onnx",)
    assert text in run(command, *models, *arguments).error


@pytest.mark.parametrize("command", ["explain", "train", "evaluate", "compare", "plugins"])
def test_help_has_no_markup(run, command):
    text = run(command, "--help").out
    assert "usage" in text and ":class:" not in text and "`" not in text.replace("`ortlearn", "")


def test_empty_cells(run, tmp_path):
    run("train", "wine.skops", *WINE, "--max-iter", "1", "--out", tmp_path / "new.onnx")
    (tmp_path / "gaps.csv").write_bytes(b"alcohol,hue,proline,kind\n1,2,3,barolo\n1,2,,barolo\n")
    error = run("evaluate", tmp_path / "new.onnx", tmp_path / "gaps.csv", "--label", "kind").error
    assert "gaps.csv has empty cells in the columns ['proline']" in error and "fill the cells" in error


def test_folders_instead_of_files(run, tmp_path):
    for name in ("a.csv", "a.onnx", "a.skops"):
        (tmp_path / name).mkdir()
    empty = run("evaluate", "wine.skops", tmp_path / "a.csv", "--label", "y").error
    assert "a.csv: No .csv, .csv.gz, .parquet or .arrow file in this folder" in empty
    assert "a.onnx: Is a directory" in run("explain", tmp_path / "a.onnx").error
    assert "is a folder" in run("train", "wine.skops", *WINE, "--out", tmp_path / "a.onnx").error


@pytest.mark.parametrize("suffix", ["onnx", "skops"])
@pytest.mark.parametrize("content", [b"", b"nonsense", b"half"])
def test_damaged_models(run, files, tmp_path, suffix, content):
    path = tmp_path / f"model.{suffix}"
    whole = (files / f"wine.{suffix}").read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if content == b"half" else content)
    text = "are not a" if suffix == "onnx" else "is not a .skops file"
    assert text in run("evaluate", path, *WINE).error


def test_negative_weights(run, tmp_path):
    wine_frame().assign(weight=-1.0).to_csv(tmp_path / "data.csv", index=False)
    error = run(
        "evaluate", "wine.skops", tmp_path / "data.csv", "--label", "kind", "--weights", "weight"
    ).error
    assert "finite, and not negative" in error


@pytest.mark.parametrize("options", [(), ("--stream",)], ids=["in_memory", "stream"])
def test_missing_values_in_training(run, tmp_path, options):
    frame = wine_frame()
    frame.loc[3, "hue"] = None
    frame.to_csv(tmp_path / "data.csv", index=False)
    error = run("train", "wine.skops", tmp_path / "data.csv", "--label", "kind", *OUT, *options).error
    assert "data.csv has empty cells in the columns ['hue']" in error and "fill the cells" in error


@pytest.mark.parametrize(
    "package, arguments, text",
    [
        ("skops", ("evaluate", "wine.skops", *WINE), "'ortlearn[cli]'"),
        ("pandas", ("evaluate", "wine.onnx", *WINE), "'ortlearn[cli]'"),
        (
            "pyarrow",
            ("evaluate", "wine.onnx", "houses.parquet", "--label", "price"),
            "'ortlearn[cli]'",
        ),
        (
            "matplotlib",
            ("train", "wine.onnx", *WINE, *OUT, "--curve", "c.png"),
            "'ortlearn[plot]'",
        ),
        ("rich", ("train", "wine.onnx", *NUMBERS, *OUT, "--progress"), "'ortlearn[progress]'"),
    ],
)
def test_missing_extras(run, monkeypatch, package, arguments, text):
    monkeypatch.setitem(sys.modules, package, None)
    error = run(*arguments).error
    assert f"pip install {text}" in error and package in error


def test_untrusted_types(run, tmp_path):
    frame = wine_frame()
    model = make_pipeline(FunctionTransformer(log), Ridge()).fit(frame[FEATURES], frame["weight"])
    skops.io.dump(model, tmp_path / "own.skops")
    error = run("evaluate", tmp_path / "own.skops", *WINE).error
    name = error.rpartition("--trust ")[2]
    assert name.endswith("test_bad_input.log") and f"does not trust: ['{name}']" in error
    assert (
        "--trust other.Type"
        not in run("evaluate", tmp_path / "own.skops", *WINE, "--trust", "other.Type").error
    )


def test_trees_are_trusted_and_modified_ones_are_rejected(run, tmp_path):
    frame = wine_frame()
    model = DecisionTreeClassifier(max_depth=2).fit(frame[FEATURES], frame["kind"])
    arguments = ("evaluate", tmp_path / "tree.skops", "wine.csv", "--label", "kind")
    skops.io.dump(model, tmp_path / "tree.skops")
    assert "accuracy" in run(*arguments).out
    model.tree_ = altered(model.tree_, left_child=(0, 10**6))
    skops.io.dump(model, tmp_path / "tree.skops")
    assert "tree has invalid indices" in run(*arguments).error


def test_skops_file_without_model(run, tmp_path):
    skops.io.dump({"a": 1}, tmp_path / "object.skops")
    assert "no scikit-learn model, but a dict" in run("explain", tmp_path / "object.skops").error


def test_several_outputs(run, tmp_path):
    frame = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "y": [0.0, 1.0, 2.0, 3.0]})
    frame.to_csv(tmp_path / "data.csv", index=False)
    skops.io.dump(Ridge().fit(frame[["x"]], frame), tmp_path / "two.skops")
    error = run("evaluate", tmp_path / "two.skops", tmp_path / "data.csv", "--label", "y").error
    assert "predicts 2 values per sample" in error
