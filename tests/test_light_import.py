"""Importing is cheap, and works without any onnxruntime."""

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
    """Run code in a new interpreter and return what it prints."""
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
def test_importing_the_package_imports_nothing_else(code):
    assert loaded_by(code, HEAVY) == "[]"


def test_importing_the_estimators_leaves_the_runtime_for_later():
    names = ["onnxruntime", "skl2onnx", "onnx", "matplotlib", "torch"]
    names += [f"ortlearn.{name}" for name in ("models", "losses", "differentiation", "training")]
    names += ["sklearn.ensemble", "sklearn.linear_model", "sklearn.metrics", "sklearn.model_selection"]
    assert loaded_by("import ortlearn.estimators\nortlearn.OrtGradientOptimizer", names) == "[]"


def test_importing_what_trains_on_clusters_leaves_dask_for_later():
    code = "from ortlearn.distributed import DaskOrtGradientOptimizer, average_trainers"
    assert loaded_by(code, ["dask", "distributed", "onnxruntime"]) == "[]"


def test_listing_plugins_loads_none_of_them():
    code = "from ortlearn import plugins\nassert len(plugins.list_plugins()) > 10"
    assert (
        loaded_by(code, ["ortlearn.losses", "ortlearn.penalties", "ortlearn.learning_rates", *HEAVY]) == "[]"
    )


def test_the_first_use_without_a_runtime_names_the_extra():
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
        print("ortlearn[training]" in str(error), sorted(vars(model)) == sorted(model.get_params(deep=False)))
"""
    assert run(HIDE + code).splitlines() == ["True True"] * 2


def test_graphs_without_a_runtime():
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
