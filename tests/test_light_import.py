"""Importing loads no heavy packages and does not require onnxruntime."""

import subprocess
import sys

import pytest

HEAVY = ["onnxruntime", "skl2onnx", "onnx", "sklearn", "scipy", "numpy", "matplotlib", "rich", "pandas"]
HIDE = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "onnxruntime":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
"""


def run(code):
    """Run code in a new interpreter and return its output."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def loaded_by(code, names):
    return run(f"{code}\nimport sys\nprint([name for name in {names!r} if name in sys.modules])")


@pytest.mark.parametrize(
    "code",
    [
        "import ortlearn",
        "import ortlearn\ndir(ortlearn), ortlearn.__version__",
        "import ortlearn.plugins",
        "import ortlearn.callbacks",
        "import ortlearn.cli, ortlearn.__main__",
    ],
)
def test_package_imports_no_heavy_packages(code):
    assert loaded_by(code, HEAVY) == "[]"


@pytest.mark.slow
def test_estimators_import_onnxruntime_lazily():
    names = ["onnxruntime", "skl2onnx", "onnx", "matplotlib", "torch"]
    names += [f"ortlearn.{name}" for name in ("models", "losses", "differentiation", "training")]
    names += ["sklearn.ensemble", "sklearn.linear_model", "sklearn.metrics", "sklearn.model_selection"]
    assert loaded_by("import ortlearn.estimators\nortlearn.OrtGradientOptimizer", names) == "[]"


@pytest.mark.slow
def test_distributed_imports_dask_lazily():
    code = "from ortlearn.distributed import DaskOrtGradientOptimizer, average_trainers"
    assert loaded_by(code, ["dask", "distributed", "onnxruntime"]) == "[]"


def test_listing_plugins_does_not_load_them():
    code = "from ortlearn import plugins\nassert len(plugins.list_plugins()) > 10"
    assert (
        loaded_by(code, ["ortlearn.losses", "ortlearn.penalties", "ortlearn.learning_rates", *HEAVY]) == "[]"
    )


@pytest.mark.slow
def test_error_without_onnxruntime_names_the_extra():
    code = """
import ortlearn
from sklearn.base import clone
from sklearn.linear_model import Ridge
from ortlearn.exceptions import MissingRuntimeError

for kind in (ortlearn.OrtGradientOptimizer, ortlearn.OrtGradientForwardBackwardOptimizer):
    model = clone(kind(Ridge()))
    try:
        model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    except MissingRuntimeError as error:
        assert isinstance(error, ImportError)
        named = "ortlearn[onnxruntime]" in str(error)
        print(named, sorted(vars(model)) == sorted(model.get_params(deep=False)))
"""
    assert run(HIDE + code).splitlines() == ["True True"] * 2


@pytest.mark.slow
def test_graphs_without_onnxruntime():
    code = """
from sklearn.linear_model import Ridge
from ortlearn.conversion import to_trainable
from ortlearn.differentiation import gradient_of_loss
from ortlearn.losses import add_loss_output

trainable = to_trainable(Ridge().fit([[0.0], [1.0]], [1.0, 3.0]))
model = add_loss_output(trainable.score_graph())
print([value.name for value in gradient_of_loss(model, "loss", trainable.trained).graph.output])
"""
    assert run(HIDE + code) == "['loss', 'I0_coef_grad', 'I1_intercept_grad']"
