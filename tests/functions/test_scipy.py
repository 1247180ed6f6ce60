"""Functions of vectors for the optimisers of SciPy."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import NonlinearConstraint, approx_fprime, check_grad, minimize
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn.exceptions import GradientError
from ortlearn.functions import differentiable, to_scipy

from .test_function import BINARY, CLASSES, X, Y

PROCESS = make_pipeline(StandardScaler(), GaussianProcessRegressor(alpha=0.01)).fit(X, Y)


def test_gradients_and_hessian_products():
    objective = to_scipy(differentiable(PROCESS), sign=-1)
    x, v = X[0] + 0.1, np.array([1.0, -2.0, 0.5, 0.0])
    assert objective(x)[0] == objective.value(x) == pytest.approx(-PROCESS.predict([x])[0], rel=1e-9)
    assert check_grad(objective.value, objective.gradient, x) < 1e-5
    along = approx_fprime(x, lambda z: objective.gradient(z) @ v, 1e-6)
    np.testing.assert_allclose(objective.hessp(x, v), along, atol=1e-4)


@pytest.mark.parametrize("method", ["L-BFGS-B", "Newton-CG", "trust-constr"])
def test_minimise(method):
    objective = to_scipy(differentiable(PROCESS))
    products = {} if method == "L-BFGS-B" else {"hessp": objective.hessp}
    found = minimize(objective, X[0], jac=True, method=method, options={"maxiter": 200}, **products)
    assert np.abs(objective.gradient(found.x)).max() < 1e-3
    assert found.fun < PROCESS.predict(X[:1])[0] - 0.1


def test_constraints_on_another_model():
    classifier = LogisticRegression().fit(X, BINARY)
    low = to_scipy(differentiable(classifier, "predict_proba"), 1)
    constraint = NonlinearConstraint(low.value, 0.7, 1.0, jac=low.gradient)
    objective = to_scipy(differentiable(PROCESS))
    found = minimize(
        objective, X[0], jac=True, method="SLSQP", constraints=[constraint], bounds=[(-2, 2)] * 4
    )
    assert classifier.predict_proba([found.x])[0, 1] == pytest.approx(0.7, abs=1e-4)


def test_errors():
    with pytest.raises(ValueError, match="3 outputs: choose one"):
        to_scipy(differentiable(LogisticRegression().fit(X, CLASSES), "predict_proba"))
    with pytest.raises(ValueError, match="sign=2"):
        to_scipy(differentiable(PROCESS), sign=2)
    with pytest.raises(ValueError, match=r"result of ortlearn.functions.differentiable, not Pipeline"):
        to_scipy(PROCESS)


def test_functions_of_columns_are_refused():
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import Ridge
    from sklearn.preprocessing import OneHotEncoder

    columns = {"a": X[:, 0], "city": np.where(X[:, 1] > 0, "x", "y")}
    frame = pd.DataFrame(columns)
    steps = ColumnTransformer([("n", "passthrough", ["a"]), ("c", OneHotEncoder(), ["city"])])
    with pytest.raises(GradientError, match="columns of several types"):
        to_scipy(differentiable(make_pipeline(steps, Ridge()).fit(frame, Y), X=frame))
