"""Every public name has a summary, described parameters and an example."""

import enum
import importlib
import inspect
import pkgutil
import re

import ortlearn

PACKAGES = ["ortlearn", "ortlearn.conversion"] + [
    f"ortlearn.{info.name}" for info in pkgutil.iter_modules(ortlearn.__path__) if info.ispkg
]
MODULES = [
    info.name
    for info in pkgutil.walk_packages(ortlearn.__path__, "ortlearn.")
    if not info.name.rpartition(".")[2].startswith("_")
]
WITH_EXAMPLES = [
    "ortlearn",
    "ortlearn.callbacks",
    "ortlearn.conversion",
    "ortlearn.differentiation",
    "ortlearn.graphs",
    "ortlearn.inspection",
    "ortlearn.learning_rates",
    "ortlearn.losses",
    "ortlearn.onnx_files",
    "ortlearn.penalties",
    "ortlearn.plugins",
    "ortlearn.training",
]
#: Names without example, by reason.
NO_EXAMPLE = {
    "a base class: its subclasses are the examples": {
        "BaseLearningRate",
        "BaseLoss",
        "BasePenalty",
        "BaseSchedule",
        "BaseSolver",
        "ScheduledLearningRate",
    },
    "a record that functions return": {
        "Counterfactuals",
        "IntegratedGradients",
        "Solution",
        "TrainableModel",
        "Weight",
        "WeightChange",
        "WeightChanges",
    },
    "a part of the training loop, shown by the estimators": {
        "Objective",
        "OrtGradientForwardBackwardFunction",
        "ScoreGraph",
        "TrainingTask",
        "Update",
    },
}
#: Exported names that only ortlearn itself uses; a sentence is enough for them. All other exported names are
#: public: users or authors of plugins import them. "Class." stands for the methods of a public class.
INTERNAL = {
    "ortlearn.callbacks": {
        *("LearningRateMonitor.setup", "LearningRateMonitor.teardown"),
        *("LearningRateMonitor.on_fit_task_begin", "LearningRateMonitor.on_fit_task_end"),
        *(
            f"{name}.{hook}"
            for name in ("MLflowLogger", "OptunaPruner", "StreamMonitor", "TensorBoardLogger")
            for hook in ("setup", "teardown", "on_fit_task_begin", "on_fit_task_end")
        ),
        *("ModelCheckpoint.setup", "ModelCheckpoint.teardown", "ModelCheckpoint.path_to_resume"),
        *("ModelCheckpoint.on_fit_task_begin", "ModelCheckpoint.on_fit_task_end"),
        *("ModelCheckpoint.on_training_pause", "ModelCheckpoint.on_training_over"),
    },
    "ortlearn.exceptions": {"limit_address", "warn_user"},
    "ortlearn.conversion": {"TrainableModel.", "Weight."},
    "ortlearn.differentiation": {
        *("build_gradient", "check_straight_through", "gradient_reach", "require_gradients"),
    },
    "ortlearn.graphs": {
        *("append_nodes", "copy_model", "count_nodes", "extract_model", "graph_names", "initializer_arrays"),
        *("inline_functions", "make_initializers_of", "map_names", "name_nodes", "node_inputs", "prune"),
        *("replace_nodes", "set_initializers", "subgraphs", "value_types", "with_loop_limits"),
    },
    "ortlearn.learning_rates": {"BaseLearningRate.graph_key", "resolve_learning_rate", "resolve_schedule"},
    "ortlearn.losses": {
        *("FunctionLoss.check_batch", "FunctionLoss.evaluate", "PerOutputLoss", "PerPositionLoss"),
        *("RowObjective", "SignedLabelLoss", "default_loss", "resolve_loss"),
    },
    "ortlearn.models": {
        *("Parameter", "Positions", "WrittenModel", "all_covered", "category_numbers", "definition_of"),
        *("find_definition", "fitted_part", "has_own_score", "is_flexible", "unwrapped", "write_parameters"),
        *("ModelDefinition.", "ModelWriter", "Scores."),
    },
    "ortlearn.onnx_files": {"LoRA.adapters"},
    "ortlearn.penalties": {
        *("BasePenalty.acts_by_step", "BasePenalty.applies_to", "BasePenalty.for_weights"),
        *("BasePenalty.graph_key", "BasePenalty.parts", "BasePenalty.parts_for"),
        *("BasePenalty.without_absolute_values", "resolve_penalty"),
    },
    "ortlearn.training": {
        *("ScoreGraph.learned", "ScoreGraph.weights", "TrainingTask.acts_by_step", "TrainingTask.changed"),
        *("TrainingTask.columns", "TrainingTask.folds_rate", "TrainingTask.graph_key", "TrainingTask.inputs"),
        *("TrainingTask.is_proximal", "TrainingTask.penalties_of"),
    },
}
#: Methods of the classes above that authors of definitions write or call.
FOR_AUTHORS = {
    *("ortlearn.models.ModelDefinition.objective", "ortlearn.models.ModelDefinition.write"),
    *("ortlearn.models.ModelWriter.parameter", "ortlearn.models.ModelWriter.write"),
}
INTERNAL_PATHS = {f"{package}.{name}" for package, names in INTERNAL.items() for name in names}
SECTION = re.compile(r"^(?P<title>[A-Z][A-Za-z ]+)\n-{3,}$", re.MULTILINE)


def public(package):
    """Return the public functions and classes of a package or module by name.

    Without ``__all__``, these are the ones defined in the module whose names have no underscore.
    """
    module = importlib.import_module(package)
    if hasattr(module, "__all__"):
        found = {name: getattr(module, name) for name in module.__all__}
    else:
        own = {name: obj for name, obj in vars(module).items() if not name.startswith("_")}
        found = {name: obj for name, obj in own.items() if getattr(obj, "__module__", "") == package}
    return {name: obj for name, obj in found.items() if inspect.isclass(obj) or inspect.isfunction(obj)}


def sections(doc):
    """Return the sections of a numpydoc docstring, and the text before them as summary."""
    doc = inspect.cleandoc(doc or "")
    marks = list(SECTION.finditer(doc))
    parts = {"Summary": doc[: marks[0].start()] if marks else doc}
    ends = [*(mark.start() for mark in marks), len(doc)][1:]
    for mark, end in zip(marks, ends, strict=bool(marks)):
        parts[mark["title"]] = doc[mark.end() : end]
    return parts


def documented(text):
    """Return the names described in a section of parameters."""
    names = set()
    for line in text.splitlines():
        if line and not line[0].isspace():
            names.update(name.strip().lstrip("*") for name in line.partition(" : ")[0].split(","))
    return names


def parameters(obj):
    """Return the names of the parameters of a function or constructor."""
    function = obj.__init__ if inspect.isclass(obj) else obj
    made_otherwise = getattr(obj, "_is_protocol", False) or not inspect.isfunction(function)
    if inspect.isclass(obj) and (made_otherwise or issubclass(obj, enum.Enum)):
        return set()
    return {p.name for p in inspect.signature(function).parameters.values()} - {"self", "cls"}


def undocumented(obj):
    parts = sections(obj.__doc__)
    known = documented(parts.get("Parameters", "")) | documented(parts.get("Attributes", ""))
    return parameters(obj) - known


def needs_sections(path):
    """Return whether the docstring of an exported name, or of a method of it, must have sections."""
    of_class = path.rpartition(".")[0]
    return path in FOR_AUTHORS or INTERNAL_PATHS.isdisjoint({path, of_class, f"{of_class}."})


def each(packages):
    """Yield the public names and objects of packages."""
    for package in packages:
        for name, obj in public(package).items():
            yield f"{package}.{name}", obj


def test_modules_have_docstrings():
    wrong = []
    for name in MODULES:
        module = importlib.import_module(name)
        names = getattr(module, "__all__", [])
        if not module.__doc__ or len(set(names)) < len(names) or not all(hasattr(module, n) for n in names):
            wrong.append(name)
    assert not wrong


def test_every_name_has_a_summary():
    wrong = [
        path
        for path, obj in each(MODULES)
        if not inspect.cleandoc(obj.__doc__ or "").split("\n\n")[0].endswith((".", ":"))
    ]
    assert not wrong


def test_every_parameter_is_documented():
    missing = {path: undocumented(obj) for path, obj in each(PACKAGES) if needs_sections(path)}
    assert not {path: names for path, names in missing.items() if names}


def test_documented_parameters_exist():
    wrong = {
        path: documented(sections(obj.__doc__).get("Parameters", "")) - parameters(obj)
        for path, obj in each(PACKAGES)
    }
    assert not {path: names for path, names in wrong.items() if names}


EXCUSED = set().union(*NO_EXAMPLE.values())


def test_every_name_has_an_example_or_is_excused():
    has_example = {
        path: ">>>" in sections(obj.__doc__).get("Examples", "")
        for path, obj in each(WITH_EXAMPLES)
        if needs_sections(path)
    }
    excused = {path for path in has_example if path.rpartition(".")[2] in EXCUSED}
    assert not [path for path, found in has_example.items() if found == (path in excused)]


def test_excused_names_have_no_example():
    names = {name for package in WITH_EXAMPLES for name in public(package)}
    assert EXCUSED <= names


def test_methods_have_docstrings():
    missing = [
        f"{path}.{name}"
        for path, cls in each(MODULES)
        if inspect.isclass(cls) and cls.__module__.startswith("ortlearn")
        for name, member in vars(cls).items()
        if not name.startswith("_") and inspect.isfunction(member) and not inspect.getdoc(getattr(cls, name))
    ]
    assert not missing


def test_internal_names_are_exported_and_have_no_sections():
    long = set()
    for path in sorted(INTERNAL_PATHS):
        package, name, method = re.fullmatch(r"(ortlearn\.\w+)\.(\w+)\.?(\w*)", path).groups()
        obj = public(package)[name]
        parts = sections((getattr(obj, method) if method else obj).__doc__)
        if not path.endswith(".") and parts.keys() & {"Parameters", "Returns", "Examples"}:
            long.add(path)
    assert not long


def test_public_and_internal_methods():
    internal = ("Parameter", "Parameter.write", "ModelWriter.step", "Scores.shape", "is_flexible")
    assert not any(needs_sections(f"ortlearn.models.{name}") for name in internal)
    assert not needs_sections("ortlearn.conversion.TrainableModel.score_graph")
    authors = (
        "ModelWriter.parameter",
        "ModelWriter.write",
        "ModelDefinition.objective",
        "Access.read",
        "objective_of",
    )
    assert all(needs_sections(f"ortlearn.models.{name}") for name in authors)
    assert all(map(needs_sections, ("ortlearn.losses.HuberLoss", "ortlearn.conversion.TrainableModel")))


def test_checks_detect_errors():
    def good(a, *rest):
        """Do it.

        Parameters
        ----------
        a : int
            First.
        *rest : int
            Others.

        Examples
        --------
        >>> good(1)
        """

    def bad(a, b):
        """Do it.

        Parameters
        ----------
        a, c : int
            Both.
        """

    assert not undocumented(good) and undocumented(bad) == {"b"}
    assert documented(sections(bad.__doc__)["Parameters"]) - parameters(bad) == {"c"}
    assert sections(good.__doc__)["Examples"].strip() == ">>> good(1)"
