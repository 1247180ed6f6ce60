"""Parameters, attributes and methods named by pages exist, with the defaults in tables."""

import ast
import importlib
import inspect
import re
from functools import cache

from sklearn.utils import all_estimators

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from tests.docs.pages import Page, Table, code_in, each, pages
from tests.docs.test_docstrings import PACKAGES

ESTIMATORS = (OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer)
#: Pages about other packages or ONNX operators; only their tables are checked.
OTHERS = (
    *("docs/howto/from_", "docs/decisions/", "docs/explanation/commands.md"),
    "CONTRIBUTING.md",
)
KEYWORD = re.compile(r"(?<![\w.])([A-Za-z]\w*)=(?!=)")
#: Calls without nested calls.
CALL = re.compile(r"(?<![\w.])([A-Za-z_]\w*)\(([^()]*)\)")
every_page = each(pages())


def parameters(obj):
    try:
        return {name: p.default for name, p in inspect.signature(obj).parameters.items()}
    except (TypeError, ValueError):
        return {}


@cache
def all_public():
    """Return pairs of the name and the object of all public ones; two rooms may use one name."""
    modules = [importlib.import_module(package) for package in PACKAGES]
    return [(name, getattr(module, name)) for module in modules for name in getattr(module, "__all__", ())]


@cache
def public():
    """Return public objects by name."""
    return dict(all_public())


@cache
def known_keywords():
    """Return the parameters of public functions, classes and methods, and of scikit-learn's estimators."""
    found = set()
    for _, obj in all_public():
        methods = [getattr(obj, name) for name in dir(obj) if not name.startswith("__")]
        for function in (obj, *(methods if inspect.isclass(obj) else ())):
            found.update(parameters(function))
    return found.union(*(parameters(estimator) for _, estimator in all_estimators()))


def unknown_keywords(code):
    """Return keywords in a piece of code that no function here or estimator of scikit-learn has."""
    own = {
        (name, keyword)
        for name, arguments in CALL.findall(code)
        if inspect.isclass(public().get(name)) or inspect.isfunction(public().get(name))
        for keyword in KEYWORD.findall(arguments)
    }
    wrong = {keyword for name, keyword in own if keyword not in parameters(public()[name])}
    others = {keyword for keyword in KEYWORD.findall(code) if keyword.split("__")[0] not in known_keywords()}
    return wrong | others


@every_page
def test_keywords_exist(page):
    if page.name.startswith(OTHERS):
        code = [
            code for table in page.tables() for code in code_in(" ".join(table.column("ortlearn", "here")))
        ]
    else:
        code = [code for code in page.code() if "lambda" not in code]
    assert not {found: wrong for found in code if (wrong := unknown_keywords(found))}


@every_page
def test_tables_of_parameters(page):
    for table in page.tables():
        defaults = table.column("default")
        for row, cell in enumerate(table.column("parameter")):
            for name, estimator in ((n, e) for n in code_in(cell) for e in ESTIMATORS):
                assert name in parameters(estimator), f"{estimator.__name__} has no {name}"
                if defaults:
                    given = ast.literal_eval(defaults[row].strip("`"))
                    assert given == parameters(estimator)[name], f"{name} is {parameters(estimator)[name]!r}"


@every_page
def test_tables_of_attributes_and_methods(page):
    for table in page.tables():
        for name in code_in(" ".join(table.column("attribute"))):
            assert all(
                re.search(rf"\b{name}\b", cls.__doc__.partition("Attributes\n")[2]) for cls in ESTIMATORS
            )
        for name in code_in(" ".join(table.column("method"))):
            assert all(hasattr(cls, name) for cls in ESTIMATORS), name


def test_unknown_keywords_are_found():
    assert unknown_keywords("OrtGradientOptimizer(model, batchsize=3)") == {"batchsize"}
    assert unknown_keywords("HuberLoss(quantile=0.1)") == {"quantile"}
    assert unknown_keywords('learning_rate=LearningRateAdam(learning_rate="cosine")') == set()
    assert unknown_keywords("learning_rate__eta0=0.1, Ridge(alpha=1), a == b") == set()


def test_tables_are_parsed(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("# A\n\n| parameter | default |\n|---|---|\n| `a`, `b` | 1 |\n| `c` | `None` |\n\ntext\n")
    (table,) = Page(path).tables()
    assert isinstance(table, Table) and table.column("parameter") == ["`a`, `b`", "`c`"]
    assert table.column("default") == ["1", "`None`"] and table.column("names") == []
    assert code_in(table.column("parameter")[0]) == ["a", "b"]
