"""Patches of images, alone and in pipelines that reshape samples."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.feature_extraction.image import PatchExtractor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import ConversionError
from ortlearn.models import all_covered
from ortlearn.trainable.explanation import explain
from ortlearn.trainable.from_estimator import sklearn_to_onnx

X = load_digits().data[:40]


def reshaped(*shape):
    return FunctionTransformer(np.reshape, kw_args={"shape": (-1, *shape)})


def patches_in(last):
    """Return a pipeline that fits an estimator to patches of flat images."""
    return make_pipeline(reshaped(8, 8), PatchExtractor(patch_size=(4, 3)), reshaped(12), last)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "shape, patch_size",
    [((8, 8), (3, 5)), ((4, 8, 2), (4, 8)), ((16, 4, 1), (1, 4)), ((20, 11, 3), None)],
)
def test_patches(run_onnx, shape, patch_size, dtype):
    images = np.random.RandomState(0).normal(size=(3, *shape)).astype(dtype)
    model = PatchExtractor(patch_size=patch_size)
    expected = model.fit(images).transform(images)
    graph = sklearn_to_onnx(model, shape, dtype)
    sizes = [size.dim_value for size in graph.graph.output[0].type.tensor_type.shape.dim]
    assert sizes == [0, *expected.shape[1:]]
    np.testing.assert_array_equal(run_onnx(graph, images)[0], expected)


def test_a_pipeline_of_patches(run_onnx):
    model = patches_in(make_pipeline(StandardScaler(), KMeans(4, random_state=0))).fit(X)
    graph = sklearn_to_onnx(model, dtype=np.float64)
    label, distances = run_onnx(graph, X)
    assert len(label) == 30 * len(X)
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_allclose(distances, model.transform(X), atol=1e-9)


def test_reshaped_samples(run_onnx):
    model = reshaped(2, 4, 8).fit(X)
    found = run_onnx(sklearn_to_onnx(model, 64), X.astype(np.float32))[0]
    np.testing.assert_array_equal(found, model.transform(X))


@pytest.mark.parametrize(
    "options", [{"shape": ()}, {"shape": (40, 64)}, {"shape": (-1, 64), "order": "F"}, {}]
)
def test_other_uses_of_reshape_are_not_covered(options):
    assert not all_covered(FunctionTransformer(np.reshape, kw_args=options))


def test_estimators_without_an_onnx_form():
    images = X.reshape(-1, 8, 8)
    with pytest.raises(ConversionError, match="max_patches=5 draws patches at random"):
        sklearn_to_onnx(PatchExtractor(patch_size=(2, 2), max_patches=5).fit(images), (8, 8))
    with pytest.raises(ConversionError, match="X has shape .None, 64.: reshape X by"):
        sklearn_to_onnx(PatchExtractor(patch_size=(2, 2)), 64)
    assert "it has no parameters" in str(explain(PatchExtractor(patch_size=(2, 2)).fit(images), images))


@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.FallbackWarning")
@pytest.mark.parametrize(
    "in_front, message",
    [(True, "from 40 to 1200, .*: transform X first"), (False, r"\(1200, 4\) for 40 samples")],
)
def test_steps_that_change_the_number_of_samples_are_refused(in_front, message):
    """Labels and sample weights belong to images; the last step can be trained on patches instead."""
    model = patches_in(KMeans(4, random_state=0)).fit(X)
    if in_front:  # a function that cannot be converted to ONNX
        model.set_params(**{"functiontransformer-2__func": lambda x, shape: x.reshape(shape)})
    with pytest.raises(ValueError, match=message):
        OrtGradientOptimizer(model).fit(X)
    patches = model[:-1].transform(X)
    trained = OrtGradientOptimizer(model[-1], warm_start=True, max_iter=3, random_state=0).fit(patches)
    model.steps[-1] = ("kmeans", trained.to_sklearn())
    np.testing.assert_array_equal(model.predict(X), trained.predict(patches))
