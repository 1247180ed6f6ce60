"""Use an installed distribution as its users do; runs alone, with nothing of the repository on the path."""

import importlib
import pkgutil
import subprocess
import sys
import tempfile
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import sklearn
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ortlearn
from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer, plugins
from ortlearn.exceptions import OrtlearnError
from ortlearn.saving import export_training, load, load_training, save

#: Packages of extras: a module may ask for one of them.
OPTIONAL = {"dask", "distributed", "pyarrow", "pandas", "skops", "rich", "matplotlib", "graphviz"}


def check_files():
    """Only the package and its metadata are installed, with the marker of type hints."""
    installed = distribution("ortlearn")
    assert installed.version == ortlearn.__version__
    names = [str(path) for path in installed.files]
    assert "ortlearn/py.typed" in names
    beside = {name.split("/")[0] for name in names} - {"ortlearn", f"ortlearn-{installed.version}.dist-info"}
    assert beside <= {".."}, beside  # the program ortlearn


def check_modules():
    """Every module can be imported, or its error names a package of an extra."""
    for module in pkgutil.walk_packages(ortlearn.__path__, "ortlearn."):
        if module.name.endswith("__main__"):
            continue
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            assert error.name.partition(".")[0] in OPTIONAL, f"{module.name}: {error}"


def check_plugins():
    """Plugins of all groups that need no other package are loaded."""
    for group in (plugins.LOSSES, plugins.PENALTIES, plugins.LEARNING_RATES, plugins.SCHEDULES):
        names = [info.name for info in plugins.list_plugins(group)]
        assert len(names) > 5, (group, names)
        for name in names:
            plugins.get(group, name)


def check_training(folder):
    """Both estimators train, from fresh and old weights; files and models they write predict the same."""
    X, y = load_diabetes(return_X_y=True)
    X, y = X.astype(np.float32), (y - y.mean()) / y.std()
    for kind in (OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer):
        trainer = kind(make_pipeline(StandardScaler(), Ridge()), random_state=0).fit(X, y)
        assert trainer.score(X, y) > 0.45, trainer.score(X, y)
        session = onnxruntime.InferenceSession(
            trainer.get_trained_onnx().SerializeToString(), providers=["CPUExecutionProvider"]
        )
        (predicted, *_) = session.run(None, {session.get_inputs()[0].name: X})
        np.testing.assert_allclose(predicted.ravel(), trainer.predict(X), atol=1e-5)
        np.testing.assert_allclose(trainer.to_sklearn().predict(X), trainer.predict(X), atol=1e-4)

    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X).astype(np.float32)
    for model in (LogisticRegression(), MLPClassifier((8,), solver="lbfgs", alpha=1.0, random_state=0)):
        old = model.fit(X[:100], y[:100])
        trainer = OrtGradientOptimizer(old, learning_rate="Adam", warm_start=True, random_state=0).fit(X, y)
        assert trainer.score(X, y) >= old.score(X, y) > 0.9
    try:
        OrtGradientOptimizer(LogisticRegression(), learning_loss="no_such_loss").fit(X, y)
    except OrtlearnError as error:
        assert "no_such_loss" in str(error)
    else:
        raise AssertionError("an unknown loss was accepted")
    check_files_of(trainer, X, folder)


def check_files_of(trainer, X, folder):
    """Saved estimators, training packages, and the command line."""
    onnx_file = folder / "model.onnx"
    onnx.save(trainer.get_trained_onnx(), onnx_file)
    y = trainer.predict(X)
    from_file = OrtGradientOptimizer(str(onnx_file), learning_rate="Adam", warm_start=True, random_state=0)
    from_file.fit(X, y)
    save(from_file, folder / "estimator.ortlearn")
    np.testing.assert_array_equal(load(folder / "estimator.ortlearn").predict(X), from_file.predict(X))
    export_training(from_file, folder / "package")
    load_training(folder / "package")
    for command in (["explain", str(onnx_file)], ["--help"]):
        subprocess.run(
            [sys.executable, "-m", "ortlearn", *command], check=True, cwd=folder, stdout=subprocess.DEVNULL
        )


if __name__ == "__main__":
    assert "site-packages" in ortlearn.__file__, f"not the installed package: {ortlearn.__file__}"
    with tempfile.TemporaryDirectory() as name:
        check_files()
        check_modules()
        check_plugins()
        check_training(Path(name))
    versions = f"Python {sys.version.split()[0]}, onnxruntime {onnxruntime.__version__}"
    print(f"ortlearn {ortlearn.__version__} works on {versions}, scikit-learn {sklearn.__version__}.")
