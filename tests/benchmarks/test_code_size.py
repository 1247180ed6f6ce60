"""The counts of code lines, and the limits of files and folders."""

import pytest

from benchmarks import code_size

SOURCE = '''"""Docstring
of two lines."""

# a comment
import os


class A:
    """Docstring."""

    text = """not a docstring,
    two lines"""

    def f(self):
        """Docstring."""
        return (
            os
        )  # comment
'''


def test_code_lines():
    # import, class, two lines of text, def, return of three lines
    assert code_size.code_lines(SOURCE) == 8


@pytest.mark.slow
def test_no_package_is_over_its_budget():
    assert list(code_size.faults(code_size.budgets())) == []


@pytest.mark.slow
@pytest.mark.parametrize("change", [{"losses": 1}, {"unknown": 10}])
def test_faults_are_found(change):
    allowed = {**code_size.budgets(), **change}
    assert [text for text in code_size.faults(allowed) if next(iter(change)) in text]


@pytest.mark.slow
def test_table_has_all_packages():
    rows = code_size.table().splitlines()[2:-1]
    assert [row.split("`")[1] for row in rows] == sorted(code_size.budgets())
