"""Every public name has a summary, described parameters and an example."""

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
#: Names of ortlearn.models with sections, for authors of definitions. The others are internal: one sentence
#: is enough.
FOR_AUTHORS = {
    *("Access.read", "Access.write", "ModelDefinition.objective", "ModelDefinition.write"),
    *("ModelWriter.parameter", "ModelWriter.write", "Objective", "Scores"),
    *("objective_of", "public_path", "write_model"),
}
#: Records whose methods only ortlearn itself calls.
RECORDS = ("ortlearn.conversion.TrainableModel.", "ortlearn.conversion.Weight.")
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
    """Return whether the docstring of a public name or method must have sections."""
    package, _, name = path.partition("ortlearn.models.")
    return not path.startswith(RECORDS) and (bool(package) or not name or name in FOR_AUTHORS)


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
        path: ">>>" in sections(obj.__doc__).get("Examples", "") for path, obj in each(WITH_EXAMPLES)
    }
    excused = {path for path in has_example if path.rpartition(".")[2] in EXCUSED}
    assert not [path for path, found in has_example.items() if found == (path in excused)]


def test_excused_names_have_no_example():
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
