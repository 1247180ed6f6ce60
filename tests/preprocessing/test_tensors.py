"""Tensors of other packages are read by DLPack, without their packages and without copies on the CPU."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from ortlearn import OrtGradientOptimizer
from ortlearn.functions import differentiable
from ortlearn.inspection import integrated_gradients
from ortlearn.preprocessing.columns import as_array_like

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3)).astype(np.float32)
Y = (X @ [1.0, 2.0, -1.0]).astype(np.float32)


class Kind:
    """A type that NumPy does not know."""

    def __str__(self):
        return "package.float32"


class Tensor:
    """An array of a package that only speaks DLPack."""

    dtype = Kind()

    def __init__(self, array, device=1, gradient=False):
        self._array, self._device, self._gradient = array, device, gradient
        self.shape, self.ndim = array.shape, array.ndim

    def __len__(self):
        return len(self._array)

    def __dlpack_device__(self):
        return (self._device, 0)

    def __dlpack__(self, **options):
        if self._gradient or self._device != 1:
            raise BufferError("no export")
        return self._array.__dlpack__(**options)

    def detach(self):
        return Tensor(self._array, self._device)

    def cpu(self):
        return Tensor(self._array.copy())


@pytest.mark.parametrize("options", [{}, {"device": 2}, {"gradient": True}], ids=["cpu", "gpu", "gradient"])
def test_tensors_everywhere(options):
    def tensor(array):
        return Tensor(array, **options)

    def trained(x, y, w):
        return OrtGradientOptimizer(Ridge(), learning_rate="Adam", max_iter=2, random_state=0).fit(x, y, w)

    weights = np.linspace(1, 2, 30).astype(np.float32)
    expected = trained(X, Y, weights)
    found = trained(tensor(X), tensor(Y), tensor(weights))
    np.testing.assert_array_equal(found.predict(tensor(X)), expected.predict(X))
    assert found.predict(tensor(X)).dtype == np.float32
    assert found.score(tensor(X), tensor(Y)) == expected.score(X, Y)
    np.testing.assert_array_equal(found.losses(tensor(X), tensor(Y)), expected.losses(X, Y))
    np.testing.assert_array_equal(
        found.partial_fit(tensor(X), tensor(Y)).coef_, expected.partial_fit(X, Y).coef_
    )
    f = differentiable(LogisticRegression().fit(X, Y > 0), "decision_function")
    np.testing.assert_array_equal(f.gradient(tensor(X)), f.gradient(X))
    found = integrated_gradients(f, tensor(X), X.mean(axis=0))
    np.testing.assert_array_equal(found.attributions, integrated_gradients(f, X, X.mean(axis=0)).attributions)


def test_memory_on_the_cpu_is_shared():
    assert np.shares_memory(as_array_like(Tensor(X)), X)
    assert not np.shares_memory(as_array_like(Tensor(X, device=2)), X)
    assert np.shares_memory(as_array_like({"a": Tensor(X)})["a"], X)
