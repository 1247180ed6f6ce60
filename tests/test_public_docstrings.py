"""Every public name says what it does, its parameters, and shows how it is used."""

import enum
import importlib
import inspect
import pkgutil
import re

import ortlearn

PACKAGES = ["ortlearn"] + [
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
    "ortlearn.graphs",
    "ortlearn.inspection",
    "ortlearn.learning_rates",
    "ortlearn.losses",
    "ortlearn.penalties",
    "ortlearn.plugins",
    "ortlearn.training",
]
#: Names that need no example, with the reason.
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
        "Measured",
        "Snapshot",
        "Solution",
        "TrainableModel",
        "TrainingResult",
        "Weight",
    },
    "a part of the training loop, shown by the estimators": {
        "Data",
        "Device",
        "ForwardBackwardStep",
        "FullBatchStep",
        "LoopSettings",
        "Objective",
        "Observer",
        "OrtGradientForwardBackwardFunction",
        "EpochStep",
        "ScoreGraph",
        "SingleGraphStep",
        "TrainingTask",
        "Update",
        "make_session",
        "run_training",
    },
}
#: What has sections in ortlearn.models, as authors of definitions need it. For the rest, hooks of a fitted
#: estimator and what only this project's own code calls, a sentence with types and shapes is enough.
FOR_AUTHORS = {
    *("Access.read", "Access.write", "ModelDefinition.objective", "ModelDefinition.write"),
    *("ModelWriter.parameter", "ModelWriter.write", "Objective", "Scores"),
    *("objective_of", "public_path", "write_model"),
}
SECTION = re.compile(r"^(?P<title>[A-Z][A-Za-z ]+)\n-{3,}$", re.MULTILINE)


def public(package):
    """Return the functions and classes that a package or module declares, by name.

    Those of a module without ``__all__`` are the ones defined in it, without an underscore.
    """
    module = importlib.import_module(package)
    if hasattr(module, "__all__"):
        found = {name: getattr(module, name) for name in module.__all__}
    else:
        own = {name: obj for name, obj in vars(module).items() if not name.startswith("_")}
        found = {name: obj for name, obj in own.items() if getattr(obj, "__module__", "") == package}
    return {name: obj for name, obj in found.items() if inspect.isclass(obj) or inspect.isfunction(obj)}


def sections(doc):
    """Split a numpydoc docstring into its sections; the text before them is the summary."""
    doc = inspect.cleandoc(doc or "")
    marks = list(SECTION.finditer(doc))
    parts = {"Summary": doc[: marks[0].start()] if marks else doc}
    ends = [*(mark.start() for mark in marks), len(doc)][1:]
    for mark, end in zip(marks, ends, strict=bool(marks)):
        parts[mark["title"]] = doc[mark.end() : end]
    return parts


def documented(text):
    """Return the names that a section of parameters describes."""
    names = set()
    for line in text.splitlines():
        if line and not line[0].isspace():
            names.update(name.strip().lstrip("*") for name in line.partition(" : ")[0].split(","))
    return names


def parameters(obj):
    """Return the names of a function's parameters, or of a constructor's."""
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
    """Return whether a public name or method has sections, rather than a sentence."""
    package, _, name = path.partition("ortlearn.models.")
    return bool(package) or not name or name in FOR_AUTHORS


def each(packages):
    """Yield every public name of some packages, with what it stands for."""
    for package in packages:
        for name, obj in public(package).items():
            yield f"{package}.{name}", obj


def test_modules():
    wrong = []
    for name in MODULES:
        module = importlib.import_module(name)
        names = getattr(module, "__all__", [])
        if not module.__doc__ or len(set(names)) < len(names) or not all(hasattr(module, n) for n in names):
            wrong.append(name)
    assert not wrong


def test_every_name_has_a_sentence():
    wrong = [
        path
        for path, obj in each(MODULES)
        if not inspect.cleandoc(obj.__doc__ or "").split("\n\n")[0].endswith((".", ":"))
    ]
    assert not wrong


def test_every_parameter_is_documented():
    missing = {path: undocumented(obj) for path, obj in each(PACKAGES) if needs_sections(path)}
    assert not {path: names for path, names in missing.items() if names}


def test_no_parameter_is_documented_that_is_not_there():
    wrong = {
        path: documented(sections(obj.__doc__).get("Parameters", "")) - parameters(obj)
        for path, obj in each(PACKAGES)
    }
    assert not {path: names for path, names in wrong.items() if names}


EXCUSED = set().union(*NO_EXAMPLE.values())


def test_every_name_has_an_example_or_an_excuse():
    has_example = {
        path: ">>>" in sections(obj.__doc__).get("Examples", "") for path, obj in each(WITH_EXAMPLES)
    }
    excused = {path for path in has_example if path.rpartition(".")[2] in EXCUSED}
    assert not [path for path, found in has_example.items() if found == (path in excused)]


def test_no_excuse_is_left_over():
    names = {name for package in WITH_EXAMPLES for name in public(package)}
    assert EXCUSED <= names


def test_public_methods_have_docstrings():
    missing = [
        f"{cls.__module__}.{cls.__name__}.{name}"
        for package in PACKAGES
        for cls in public(package).values()
        if inspect.isclass(cls)
        for name, member in vars(cls).items()
        if not name.startswith("_") and inspect.isfunction(member) and not member.__doc__
    ]
    assert not missing


def test_internal_names():
    internal = {f"ortlearn.models.{name}" for name in ("Parameter", "Parameter.write", "ModelWriter.step")}
    assert not any(map(needs_sections, internal))
    assert all(map(needs_sections, ("ortlearn.losses.HuberLoss", "ortlearn.models.ModelWriter.write")))


def test_the_checks_can_fail():
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
