"""No file of the package evaluates text, unpickles, starts programs or opens connections."""

import ast
from pathlib import Path

import pytest

import ortlearn

ROOT = Path(ortlearn.__file__).parent
#: Builtins that run text.
BUILTINS = {"eval", "exec", "compile", "__import__"}
#: Modules whose formats hold code, and those that start programs or open connections.
MODULES = {
    *("pickle", "cPickle", "_pickle", "pickletools", "cloudpickle", "dill", "marshal", "shelve"),
    *("code", "codeop", "runpy", "subprocess", "socket", "ssl", "http", "urllib", "ftplib", "requests"),
}
#: Such functions of other modules, by their last two names.
ATTRIBUTES = {
    *("os.system", "os.popen", "os.execv", "os.spawnv", "joblib.load", "joblib.dump", "pandas.read_pickle"),
    *("pd.read_pickle", "hub.load", "yaml.load", "torch.load", "builtins.eval", "builtins.exec"),
}
#: The checks of plugins copy an object in memory, as worker processes do; they read no file.
ALLOWED = {("testing/parameters.py", "pickle")}


def findings(source):
    """Return the forbidden names in a source."""
    names, modules = [], []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=aliases):
                modules += [alias.name.partition(".")[0] for alias in aliases]
            case ast.ImportFrom(module=str(module), level=0, names=aliases):
                modules.append(module.partition(".")[0])
                names += [f"{module}.{alias.name}" for alias in aliases]
            case ast.Call(func=ast.Attribute(attr="import_module"), args=[ast.Constant(value=str(name)), *_]):
                modules.append(name.partition(".")[0])
            case ast.Name(id=name):
                names.append(name)
            case ast.Attribute(value=ast.Name(id=owner) | ast.Attribute(attr=owner), attr=name):
                names.append(f"{owner}.{name}")
            case ast.keyword(arg="allow_pickle", value=ast.Constant(value=True)):
                names.append("allow_pickle=True")
    forbidden = BUILTINS | ATTRIBUTES | {"allow_pickle=True"}
    return [name for name in names if name in forbidden] + [name for name in modules if name in MODULES]


@pytest.mark.slow
def test_no_file_runs_text_or_unpickles():
    found = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in ROOT.rglob("*.py")
        for name in findings(path.read_text(encoding="utf-8"))
    }
    assert found == ALLOWED


@pytest.mark.parametrize(
    "source",
    [
        "eval('1')",
        "run = exec",
        "compile('1', 'f', 'eval')",
        "import pickle as p",
        "from pickle import loads",
        "from joblib import load",
        "import joblib\njoblib.load('f')",
        "np.load('f', allow_pickle=True)",
        "__import__('os')",
        "importlib.import_module('pickle')",
        "import urllib.request",
        "os.system('ls')",
        "onnx.hub.load('model')",
    ],
)
def test_forbidden_names_are_found(source):
    assert findings(source)


@pytest.mark.parametrize("source", ["re.compile('a')", "model.eval()", "code = 1"])
def test_similar_names_are_allowed(source):
    assert not findings(source)
