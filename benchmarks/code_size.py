"""Code lines of each package, and their budgets: ``python -m benchmarks.code_size [--check]``.

Code lines are those that are neither blank nor part of a comment or a docstring.
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import tokenize
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "ortlearn"
#: Tokens that are no code.
SPACE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
#: Largest number of lines of a file, and of files in a folder.
LINES, FILES = 320, 22


def docstring_lines(source: str) -> set[int]:
    """Return the numbers of the lines of docstrings."""
    lines: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            first = node.body[0]
            lines |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return lines


def code_lines(source: str) -> int:
    """Return the number of code lines of a source."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in SPACE:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - docstring_lines(source))


@cache
def sizes() -> dict[str, int]:
    """Return the code lines of each package, and of the modules beside them together."""
    found: dict[str, int] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).parts
        part = parts[0] if len(parts) > 1 else "ortlearn"
        found[part] = found.get(part, 0) + code_lines(path.read_text(encoding="utf-8"))
    return found


def budgets() -> Mapping[str, int]:
    """Return the largest number of code lines of each package."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return settings["tool"]["ortlearn"]["code-lines"]


def faults(allowed: Mapping[str, int]) -> Iterator[str]:
    """Yield packages over their budget, long files and crowded folders."""
    found = sizes()
    for part in sorted(found.keys() ^ allowed.keys()):
        yield f"{part}: [tool.ortlearn.code-lines] in pyproject.toml must have the packages of ortlearn"
    for part, lines in found.items():
        if lines > allowed.get(part, lines):
            yield (
                f"{part} has {lines} code lines, and its budget in pyproject.toml is {allowed[part]}: remove "
                "some, or raise it with a note in docs/decisions"
            )
    for folder in sorted({path.parent for path in PACKAGE.rglob("*.py")}):
        files = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
        if len(files) > FILES:
            yield f"{folder.relative_to(ROOT)} has {len(files)} files, more than {FILES}: split it"
        for path in files:
            if (lines := path.read_text(encoding="utf-8").count("\n")) > LINES:
                yield f"{path.relative_to(ROOT)} has {lines} lines, more than {LINES}: split it"


def table() -> str:
    """Return the sizes and budgets as a table in Markdown."""
    found, allowed = sizes(), budgets()
    rows = [f"| `{part}` | {found[part]:,} | {allowed[part]:,} |" for part in sorted(found)]
    total = f"| together | {sum(found.values()):,} | {sum(allowed.values()):,} |"
    return "\n".join(["| package | code lines | budget |", "|---|---|---|", *rows, total])


def main() -> int:
    """Print the table, or the faults with ``--check``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if a budget or a limit is exceeded")
    if not parser.parse_args().check:
        print(table())
        return 0
    found = list(faults(budgets()))
    print("\n".join(found), end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
