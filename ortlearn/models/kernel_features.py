"""Maps into the space of a kernel: those of some samples, of random directions, of random hashes."""

import math
from typing import Any

import numpy as np

from ..graphs import GraphBuilder
from .base import ModelDefinition
from .forms import Transposed
from .kernels import PAIRWISE, centred_kernel, default_gamma, fitted_rows, pairwise_kernel
from .scores import Scores, transformation
from .writer import ModelWriter

#: Intervals of :class:`~sklearn.kernel_approximation.AdditiveChi2Sampler` by its number of steps.
INTERVALS = {1: 0.8, 2: 0.5, 3: 0.4}


def cosine(op: GraphBuilder, x: str) -> str:
    """Return cosines; onnxruntime has sines in float64, too."""
    return op.Sin(op.Add(x, math.pi / 2))


class NystroemDefinition(ModelDefinition):
    """Nystroem: ``K(x, components_) normalization_'``.

    Williams, C. K. I. and Seeger, M., "Using the Nystroem method to speed up kernel machines", NIPS 2000.
    """

    def covers(self, model: Any) -> bool:
        return isinstance(model.kernel, str) and model.kernel in PAIRWISE

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        rows = fitted_rows(op, model, "components_", model.kernel)
        # kernel_params give what has no parameter of its own, and defaults are those of the kernel
        params = {"coef0": 1.0, "degree": 3.0, **(model.kernel_params or {})}
        params |= {name: getattr(model, name) for name in params if getattr(model, name, None) is not None}
        gamma = model.gamma if model.gamma is not None else params.get("gamma")
        gamma = default_gamma(model.kernel, gamma, model.n_features_in_)
        options = gamma, float(params["coef0"]), float(params["degree"])
        kernel = pairwise_kernel(op, x, rows, model.kernel, *options)
        mixed = op.parameter(model, "normalization_", form=Transposed(), role="weight")
        return transformation(op, op.MatMul(kernel, mixed), len(model.normalization_))


class RBFSamplerDefinition(ModelDefinition):
    """RBFSampler: ``sqrt(2 / n_components) cos(x random_weights_ + random_offset_)``.

    Rahimi, A. and Recht, B., "Random features for large-scale kernel machines", NIPS 2007.
    """

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        weights = op.parameter(model, "random_weights_", role="weight")
        offset = op.parameter(model, "random_offset_", role="intercept")
        waves = cosine(op, op.Add(op.MatMul(self.features(op, model, x), weights), offset))
        n_components = len(model.random_offset_)
        return transformation(op, op.Mul(waves, math.sqrt(2.0 / n_components)), n_components)

    def features(self, op: ModelWriter, model: Any, x: str) -> str:
        """Append what is multiplied with the random weights."""
        return x


class SkewedChi2SamplerDefinition(RBFSamplerDefinition):
    """SkewedChi2Sampler: the same of ``log(x + skewedness)``; numbers are above ``-skewedness``.

    Li, F., Ionescu, C. and Sminchisescu, C., "Random Fourier approximations for skewed multiplicative
    histogram kernels", DAGM 2010.
    """

    def features(self, op: ModelWriter, model: Any, x: str) -> str:
        return op.Log(op.Add(x, float(model.skewedness)))


class AdditiveChi2SamplerDefinition(ModelDefinition):
    """AdditiveChi2Sampler: roots, cosines and sines of logarithms; numbers are not negative.

    With an interval L they are ``sqrt(x L)``, and for each further step j the cosine and the sine of
    ``j L log x``, times ``sqrt(2 x L / cosh(pi j L))`` (Vedaldi and Zisserman, "Efficient additive kernels
    via explicit feature maps", IEEE TPAMI 2012).
    """

    untrained = "it has no parameters"

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        steps = int(model.sample_steps)
        length = INTERVALS[steps] if model.sample_interval is None else float(model.sample_interval)
        # a one stands for each zero, which has no logarithm: its terms are zero
        is_zero = op.Equal(x, 0.0)
        positive = op.Where(is_zero, 1.0, x)
        roots = op.Where(is_zero, 0.0, op.Sqrt(op.Mul(positive, length)))
        parts = [roots]
        for j in range(1, steps):
            size = op.Mul(roots, math.sqrt(2.0 / math.cosh(math.pi * j * length)))
            angle = op.Mul(op.Log(positive), j * length)
            parts += [op.Mul(size, cosine(op, angle)), op.Mul(size, op.Sin(angle))]
        return transformation(op, op.joined(parts), len(parts) * model.n_features_in_)


class PolynomialCountSketchDefinition(ModelDefinition):
    """PolynomialCountSketch: the circular convolution of ``degree`` hashes, sums of columns with signs.

    It is a product of discrete Fourier transforms, which are products with constant matrices (Pham, N. and
    Pagh, R., "Fast and scalable polynomial kernels via explicit feature maps", KDD 2013). Numbers of the
    result are real: half of the frequencies tell of the others.
    """

    untrained = "it adds columns up by random hashes, which are no numbers to train"

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        n = int(model.n_components)
        frequencies = np.arange(n // 2 + 1)
        angles = 2 * np.pi * (np.outer(np.arange(n), frequencies) % n) / n
        product: tuple[str, str] | None = None
        for places, signs in zip(model.indexHash_, model.bitHash_, strict=True):
            own = self._transforms(op, model, x, signs[:, np.newaxis] * np.exp(-1j * angles[places]))
            product = own if product is None else _complex_product(op, product, own)
        assert product is not None
        # frequencies between the first and the middle one stand for two
        weights = np.where((frequencies == 0) | (2 * frequencies == n), 1.0, 2.0) / n
        back = np.concatenate([weights * np.cos(angles), -weights * np.sin(angles)], axis=1).T
        result = op.MatMul(op.Concat(*product, axis=1), np.ascontiguousarray(back, dtype=op.float_dtype))
        return transformation(op, result, n)

    def _transforms(self, op: ModelWriter, model: Any, x: str, matrix: np.ndarray) -> tuple[str, str]:
        """Append real and imaginary part of the transform of a hash, from that of its columns."""
        n_columns = model.n_features_in_
        parts = []
        for numbers in (matrix.real, matrix.imag):
            scaled = np.ascontiguousarray(math.sqrt(model.gamma) * numbers[:n_columns], dtype=op.float_dtype)
            parts.append(op.MatMul(x, scaled))
            if len(matrix) > n_columns:  # a column of ones, for the coefficient of degree zero
                constant = math.sqrt(model.coef0) * numbers[n_columns:]
                parts[-1] = op.Add(parts[-1], np.ascontiguousarray(constant, dtype=op.float_dtype))
        return parts[0], parts[1]


def _complex_product(op: GraphBuilder, a: tuple[str, str], b: tuple[str, str]) -> tuple[str, str]:
    real = op.Sub(op.Mul(a[0], b[0]), op.Mul(a[1], b[1]))
    return real, op.Add(op.Mul(a[0], b[1]), op.Mul(a[1], b[0]))


class KernelCentererDefinition(ModelDefinition):
    """KernelCenterer: samples are their kernels with all samples of the fit, centred in the kernel's space.

    Schölkopf, B., Smola, A. and Müller, K.-R., "Nonlinear component analysis as a kernel eigenvalue
    problem", Neural Computation 10, 1998.
    """

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        return transformation(op, centred_kernel(op, x, model), len(model.K_fit_rows_))
