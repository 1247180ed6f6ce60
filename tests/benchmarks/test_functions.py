"""The table of outputs with gradients notices wrong ones."""

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.neural_network import MLPRegressor

from benchmarks.bench_functions import gradient_error, main, page
from benchmarks.bench_functions import measured as measured_case
from benchmarks.model_zoo.cases import catalogue
from ortlearn.functions import differentiable

X = np.random.default_rng(0).normal(size=(20, 3))


def test_page_of_a_few_cases(tmp_path, capsys):
    path = tmp_path / "page.md"
    assert main(["--only", "Ridge:regression", "DecisionTreeRegressor:regression", "--write", str(path)]) == 0
    text = path.read_text(encoding="utf-8")
    assert "| piecewise constant | 1 | DecisionTreeRegressor |" in text
    lines = path.with_suffix(".csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "model,variant,output,state,error or reason" and len(lines) == 3
    assert any(line.startswith("Ridge,regression,predict,gradient,") for line in lines)
    assert "DecisionTreeRegressor,regression,predict,excluded,piecewise constant" in lines
    assert "1 outputs of 1 of 2 models" in text and "0 are wrong" in text


def test_wrong_gradients_are_found():
    model = MLPRegressor(hidden_layer_sizes=(4,), activation="tanh", solver="lbfgs", random_state=0).fit(
        X, X[:, 0]
    )
    f = differentiable(model)
    right = f.jacobian
    assert gradient_error(model, f, "predict", X[:4]) < 1e-6
    f.jacobian = lambda rows: right(rows) * 1.001
    assert gradient_error(model, f, "predict", X[:4]) > 5e-4
    assert gradient_error(Ridge().fit(X, X[:, 0]), f, "predict", X[:4]) == np.inf


def test_failures_are_shown():
    case = catalogue()["Ridge:regression"]
    (outcome,) = measured_case(case, lambda *_, **__: 1 / 0)
    assert outcome.state == "failed" and "ZeroDivisionError" in outcome.reason
    good = outcome._replace(state="gradient", error=0.0, output="transform")
    assert f"**{outcome.case}, `predict`: failed ZeroDivisionError" in page([outcome, good])
