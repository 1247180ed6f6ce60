"""ai.onnx.ml.SVMRegressor -> kernel, product with the dual coefficients, sum with the intercept."""

from __future__ import annotations

from ...models.support_vectors import weighted_kernel
from .common import Fused
from .svm_kernels import KERNELS, float_array, kernel_matrix

__all__ = ["decompose"]


def decompose(fused: Fused) -> bool:
    """Write a support vector regression, or a novelty detection, as plain operators.

    ``f(x) = sum_m a_m k(x, s_m) + b``: dual coefficients a, support vectors s, intercept b (the
    attribute ``rho``); without support vectors ``f(x) = a.x + b``. With ``one_class`` the output is 1
    where f is positive, else -1.
    """
    count = int(fused.attribute("n_supports", 0))
    coefficients, rho = float_array(fused, "coefficients"), float_array(fused, "rho")
    vectors = float_array(fused, "support_vectors")
    known = fused.text("kernel_type", "LINEAR") in KERNELS
    if not known or fused.text("post_transform", "NONE") != "NONE" or not coefficients.size or not rho.size:
        return False
    if count and (vectors.size % count or coefficients.size != count):
        return False
    op = fused.op
    if count:
        kernel = kernel_matrix(fused, vectors.reshape(count, -1))
        weight = fused.weight("dual_coef", coefficients.reshape(1, -1))
        product = weighted_kernel(op, kernel, weight)
    else:
        product = op.MatMul(fused.float_input(), fused.weight("coef", coefficients.reshape(-1, 1)))
    intercept = fused.weight("intercept", rho[:1])
    output = fused.node.output[0]
    if not fused.attribute("one_class", 0):
        fused.write("Add", product, intercept, outputs=[output])
        return True
    inside = op.Greater(op.Add(product, intercept), 0.0)
    fused.write("Where", inside, op.constant(1.0), op.constant(-1.0), outputs=[output])
    return True
