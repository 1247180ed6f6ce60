"""Wrong samples of a partition end in the message of one machine, with the name of the partition."""

import dask
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from ortlearn import OrtGradientOptimizer
from ortlearn.distributed import DaskOrtGradientOptimizer
from ortlearn.exceptions import SourceError
from tests.estimators.wrong_samples import WRONG_SAMPLES, X, Y, sentence

#: Trainings on a cluster.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*:UserWarning", "ignore:invalid value:RuntimeWarning"),
]
OPTIONS = {"max_iter": 2, "batch_size": 10, "random_state": 0, "learning_rate": 0.1}


def on_cluster(client, *parts):
    model = DaskOrtGradientOptimizer(LogisticRegression(), client=client, **OPTIONS)
    return model.fit([dask.delayed(part, traverse=False) for part in parts])


@pytest.mark.parametrize("name", [name for name in WRONG_SAMPLES if name != "one class"])
def test_message_is_that_of_one_machine(client, name):
    given = WRONG_SAMPLES[name]
    with pytest.raises(ValueError) as expected:
        OrtGradientOptimizer(LogisticRegression(), **OPTIONS).fit(*given)
    with pytest.raises(ValueError) as found:
        on_cluster(client, given)
    assert sentence(found.value) == sentence(expected.value)


@pytest.mark.parametrize(
    "part, message",
    [
        ((X, Y.astype(str)), "The labels are texts, and numbers in Partition 0: convert y to one type"),
        ((X, Y.astype(str).astype(object)), "The labels are texts, and numbers in Partition 0"),
        (None, "X is a NoneType: pass an array"),
        ((None, Y), "X is a NoneType: pass an array"),
        (X, "y is missing, unlike in Partition 0: pass y for all samples, or for none"),
        ((X, Y, np.ones(60)), "sample_weight is given, unlike in Partition 0"),
        ((X, np.c_[Y, Y]), "y has the shape .* in Partition 0"),
        ("rows", "X is a str"),
        ((X, Y[:50]), r"inconsistent numbers of samples: \[60, 50\]"),
        ((np.ma.array(X, mask=X > 0), Y), "X is a masked array"),
    ],
)
def test_partition_is_named(client, part, message):
    with pytest.raises(ValueError, match=f"^Partition 1: .*{message}"):
        on_cluster(client, (X, Y), part)


def test_files_with_different_columns(client, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    first = pa.table({"a": X[:, 0], "b": X[:, 1], "label": Y})
    model = DaskOrtGradientOptimizer(LogisticRegression(), client=client, **OPTIONS)
    pq.write_table(first, tmp_path / "part-0.parquet")
    pq.write_table(first, tmp_path / "part-1.parquet")
    expected = model.fit(tmp_path, "label").trained_coef_["coef"]
    pq.write_table(first.select(["label", "b", "a"]), tmp_path / "part-1.parquet")  # matched by name
    np.testing.assert_array_equal(model.fit(tmp_path, "label").trained_coef_["coef"], expected)
    text = first.set_column(2, "label", pa.array(Y.astype(str)))
    for second, message in (
        (first.rename_columns(["a", "B", "label"]), r"part-1.parquet lacks the columns \['b'\]"),
        (first.append_column("c", first["a"]), r"part-1.parquet has the columns \['c'\], which the first"),
        (text, "Column 'label' has the type string in file .*part-1.parquet, and int64 in .*part-0.parquet"),
    ):
        pq.write_table(second, tmp_path / "part-1.parquet")
        with pytest.raises(SourceError, match=message):
            model.fit(tmp_path, "label")
