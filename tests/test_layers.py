"""Imports between packages, folders and files follow the layers and have no cycles."""

import ast
import sys
from functools import cache
from pathlib import Path

import pytest

import ortlearn

ROOT = Path(ortlearn.__file__).parent

#: Rooms from the ground up; a room may import those named before it, every room exceptions and plugins.
GROUND = {"graphs", "runtime", "data"}
PLUGINS = {"losses", "penalties", "learning_rates"}
BELOW_TRAINING = GROUND | PLUGINS | {"differentiation", "comparison"}
BELOW_TRAINABLE = {
    "graphs",
    "runtime",
    "differentiation",
    "losses",
    "models",
    "onnx_files",
    "preprocessing",
    "quiet",
}
BELOW_PROBLEM = BELOW_TRAINING | BELOW_TRAINABLE | {"training", "trainable"}
BELOW_INFERENCE = BELOW_PROBLEM | {"targets", "problem"}
BELOW_ESTIMATORS = BELOW_INFERENCE | {"inference", "fitting", "saving"}
ALLOWED = {
    "exceptions": set(),
    "_version": set(),
    "plugins": set(),
    "parameters": set(),
    "quiet": set(),
    "graphs": set(),
    "runtime": {"graphs"},
    "data": set(),
    "comparison": {"data", "quiet"},
    "learning_rates": {"graphs", "parameters"},
    "penalties": {"graphs", "parameters"},
    "losses": {"graphs", "runtime", "penalties", "parameters"},
    "differentiation": {"graphs", "runtime"},
    "transforms": {"graphs", "runtime", "differentiation"},
    "boosting": {"graphs", "runtime", "losses", "differentiation"},
    "models": {"graphs", "losses", "penalties", "boosting"},
    "preprocessing": {"graphs", "models", "quiet"},
    "onnx_files": {"graphs", "runtime", "differentiation", "models"},
    "trainable": BELOW_TRAINABLE,
    "conversion": BELOW_TRAINABLE | {"trainable"},
    "training": BELOW_TRAINING,
    "targets": BELOW_TRAINABLE | {"trainable"},
    "problem": BELOW_PROBLEM | {"targets", "boosting"},
    "inference": BELOW_INFERENCE,
    "saving": {"graphs"},
    "fitting": BELOW_INFERENCE | {"inference", "saving", "parameters"},
    "estimators": BELOW_ESTIMATORS | {"conversion", "parameters", "_version"},
    "functions": BELOW_ESTIMATORS | {"estimators", "transforms"},
    "callbacks": {"graphs", "saving"},
    "intervals": BELOW_ESTIMATORS | {"callbacks", "conversion", "estimators", "_version"},
    "packages": BELOW_ESTIMATORS | {"estimators", "_version"},
    "inspection": BELOW_TRAINABLE | {"trainable", "functions"},
    "testing": {"graphs", "differentiation", "models"} | PLUGINS,
    "search": BELOW_ESTIMATORS | {"estimators", "transforms"},
    "distributed": BELOW_ESTIMATORS | {"estimators"},
    "evaluation": BELOW_ESTIMATORS | {"estimators"},
    "lifecycle": BELOW_ESTIMATORS
    | {"callbacks", "estimators", "evaluation", "functions", "inspection", "_version"},
    "compress": BELOW_ESTIMATORS | {"estimators", "evaluation"},
    "cli": BELOW_ESTIMATORS
    | {"compress", "estimators", "evaluation", "inspection", "lifecycle", "parameters", "_version"},
    "__main__": {"cli"},
    "": {"estimators", "intervals", "_version"},
}
NO_PLUGINS = {"exceptions", "_version", "graphs", "parameters", "plugins", "data", "runtime"}
#: Packages that all parts except STANDARD_ONLY may import besides the standard library.
THIRD_PARTY = {"google", "joblib", "numpy", "onnx", "scipy", "sklearn"}
STANDARD_ONLY = {"exceptions", "_version", "plugins", "", "__main__"}
#: Modules or parts that may import another package.
RESTRICTED = {
    "onnxruntime": {"runtime.onnxruntime_module", "runtime.graph_run", "differentiation.cpp_builder.runtime"},
    "skl2onnx": {"preprocessing.skl2onnx_steps"},
    "rich": {"training.progress"},
    "dask": {"distributed"},
    "distributed": {"distributed"},
    "flatbuffers": {"onnx_files.low_rank.files"},
    "graphviz": {"graphs.drawing"},
    "jax": {"functions.jax_bridge"},
    "mlflow": {"callbacks.mlflow_logger"},
    "optuna": {"callbacks.optuna_pruner"},
    "river": {"callbacks.stream_monitor"},
    "matplotlib": {"inspection.axes", "lifecycle.cards"},
    "pandas": {
        *(
            "evaluation.data_files",
            "evaluation.frames",
            "evaluation.input_files",
            "evaluation.table_checks",
            "problem.samples",
        ),
        *("evaluation.column_types", "inspection.targets"),
        *("lifecycle", "cli.compare", "cli.predict"),
    },
    "pyarrow": {"data.tables", "data.arrow", "evaluation.arrow_files"},
    "torch": {"functions.torch_bridge"},
    "skops": {"evaluation.model_files", "cli.train", "lifecycle.cards", "saving.sklearn_objects"},
}
FORBIDDEN = ("onnxruntime.training",)


@cache
def imports(source, module, is_package=False):
    """Return all imported modules of a source, including imports in functions and ``import_module``."""
    return tuple(_imports(source, module, is_package))


def _imports(source, module, is_package):
    package = module if is_package else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                base = ".".join([*parts[: len(parts) - node.level + 1], *filter(None, [node.module])])
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name in ("import_module", "__import__"):
                yield str(node.args[0].value)


def within(name, prefixes):
    return any(name == prefix or name.startswith(f"{prefix}.") for prefix in prefixes)


def problem(module, imported):
    """Return the error of an import, or None if it is allowed."""
    inside = module.removeprefix("ortlearn").lstrip(".")
    part = inside.partition(".")[0]
    top = imported.partition(".")[0]
    if within(imported, FORBIDDEN):
        return f"{module} imports {imported}, which nothing may"
    if top in RESTRICTED:
        fine = within(inside, RESTRICTED[top])
        return None if fine else f"{module} imports {imported}: only {sorted(RESTRICTED[top])} may"
    if top != "ortlearn":
        known = set(sys.stdlib_module_names) | (set() if part in STANDARD_ONLY else THIRD_PARTY)
        return None if top in known else f"{module} imports {imported}, which {part or 'the package'} may not"
    target = imported.removeprefix("ortlearn").lstrip(".").partition(".")[0]
    if target not in ALLOWED:  # a name of ortlearn/__init__.py
        target = ""
    allowed = ALLOWED[part] | {part, "exceptions"} | (set() if part in NO_PLUGINS else {"plugins"})
    return None if target in allowed else f"{module} imports {imported}: {part} is not above {target}"


def modules():
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        yield ".".join(parts[:-1] if is_package else parts), path, is_package


MODULES = list(modules())
NAMES = {name for name, _, _ in MODULES}


@pytest.mark.slow
def test_imports():
    found = [
        problem(module, name)
        for module, path, is_package in MODULES
        for name in imports(path.read_text(encoding="utf-8"), module, is_package)
    ]
    assert len(found) > 1000 and not list(filter(None, found))


@cache
def modules_imported_by(module, path, is_package):
    """Return the modules that a file imports, except its own package."""
    source = path.read_text(encoding="utf-8")
    found = set()
    for name in imports(source, module, is_package):
        while name and name not in NAMES:
            name = name.rpartition(".")[0]
        found.add(name)
    return found - {"", "ortlearn", module}


def cycles(graph):
    """Return a graph after repeatedly removing the nodes without dependencies."""
    graph = dict(graph)
    while free := [name for name, read in graph.items() if not read & graph.keys()]:
        for name in free:
            del graph[name]
    return graph


def test_files_do_not_import_each_other():
    """Imports in functions and for type checking are included."""
    assert not cycles(
        {name: modules_imported_by(name, *rest) for name, *rest in MODULES if name != "ortlearn"}
    )


def test_folders_do_not_import_each_other():
    """This includes a folder inside of another."""
    folder = {name: name if is_package else name.rpartition(".")[0] for name, _, is_package in MODULES}
    graph = {}
    for name, *rest in MODULES:
        read = {folder[other] for other in modules_imported_by(name, *rest)} - {folder[name], "ortlearn"}
        graph.setdefault(folder[name], set()).update(read)
    graph.pop("ortlearn")
    assert len(graph) > 20 and not cycles(graph)


def test_all_parts_are_listed():
    parts = {module.partition(".")[2].partition(".")[0] for module, _, _ in MODULES}
    assert parts == set(ALLOWED)


@pytest.mark.parametrize(
    "module, source",
    [
        ("ortlearn.graphs.editing", "from ..conversion import load_onnx"),
        ("ortlearn.graphs.editing", "from .. import plugins"),
        ("ortlearn.graphs.editing", "import ortlearn.losses.base"),
        ("ortlearn.penalties.base", "from ..losses import BaseLoss"),
        ("ortlearn.losses.base", "def f():\n    from ..differentiation import gradient_of_loss"),
        ("ortlearn.onnx_files.loading", "from ..training.sessions import make_session"),
        ("ortlearn.onnx_files.loading", "from ..losses import BaseLoss"),
        ("ortlearn.training.loop", "from ..conversion import TrainableModel"),
        ("ortlearn.training.loop", "if TYPE_CHECKING:\n    from ..estimators import OrtGradientOptimizer"),
        ("ortlearn.training.loop", "from .. import OrtGradientOptimizer"),
        ("ortlearn.training.loop", "import ortlearn"),
        ("ortlearn.differentiation.rules.losses", "from ...losses import BaseLoss"),
        ("ortlearn.differentiation.backends", "from ..testing import check_gradient_rule"),
        ("ortlearn.estimators.base", "import onnxruntime as ort"),
        (
            "ortlearn.training.loop",
            "try:\n    from onnxruntime import InferenceSession\nexcept ImportError: ...",
        ),
        ("ortlearn.runtime.onnxruntime_module", "import onnxruntime.training"),
        ("ortlearn.runtime.onnxruntime_module", "from onnxruntime import training"),
        ("ortlearn.runtime.onnxruntime_module", "from onnxruntime.training import ortmodule"),
        ("ortlearn.runtime.onnxruntime_module", "import importlib\nimportlib.import_module('torch.nn')"),
        ("ortlearn.training.loop", "torch = __import__('torch')"),
        ("ortlearn.graphs.text", "from skl2onnx import to_onnx"),
        ("ortlearn.plugins.registry", "import numpy as np"),
        ("ortlearn.plugins.registry", "from ..losses import BaseLoss"),
        ("ortlearn.exceptions", "import onnx"),
        ("ortlearn.exceptions", "from .plugins import get"),
        ("ortlearn.training.loop", "import pandas"),
        ("ortlearn.testing", "from .estimators import OrtGradientOptimizer"),
        ("ortlearn.estimators.base", "from ..cli import main"),
        ("ortlearn.cli.train", "import onnxruntime"),
        ("ortlearn.data.chunks", "from ..training import Data"),
        ("ortlearn.data.opening", "import polars"),
        ("ortlearn.data.source_features", "import pyarrow"),
        ("ortlearn.saving.encoder", "from ..estimators.fitted_model import FittedModel"),
        ("ortlearn.estimators.saved", "import skops.io"),
        ("ortlearn.data.source_features", "import dask.array"),
        ("ortlearn.training.loop", "from distributed import Client"),
        ("ortlearn.distributed.tasks", "import pandas"),
    ],
)
def test_forbidden_imports(module, source):
    assert [text for text in (problem(module, name) for name in imports(source, module)) if text]


@pytest.mark.parametrize(
    "module, source",
    [
        ("ortlearn.losses.loss_graph", "from ..penalties import ElasticPenalty\nfrom .. import plugins"),
        (
            "ortlearn.estimators.base",
            "from ..training.base_step import BaseStep\nimport sklearn.base, os.path",
        ),
        (
            "ortlearn.runtime.onnxruntime_module",
            "import onnxruntime\nfrom onnxruntime.capi import _pybind_state",
        ),
        ("ortlearn.onnx_files.decompositions.common", "from ...graphs import GraphBuilder"),
        ("ortlearn.testing", "from .differentiation import gradient_model"),
        ("ortlearn.plugins.groups", "from ..exceptions import PluginError"),
        ("ortlearn.distributed.cluster", "import dask\nfrom distributed import Client"),
    ],
)
def test_allowed_imports(module, source):
    assert not [text for text in (problem(module, name) for name in imports(source, module)) if text]


def test_relative_imports_of_packages_are_resolved():
    assert list(imports("from .base import X", "ortlearn.losses", is_package=True)) == [
        "ortlearn.losses.base.X"
    ]
    assert list(imports("from . import base", "ortlearn.losses.elastic")) == ["ortlearn.losses.base"]
    assert list(imports("from ...graphs import X", "ortlearn.a.b.c")) == ["ortlearn.graphs.X"]
