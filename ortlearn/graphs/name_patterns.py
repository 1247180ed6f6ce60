"""Patterns of names, in which only ``*`` and ``?`` are special."""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["matches_pattern"]


def matches_pattern(name: str, pattern: str) -> bool:
    """Return whether a name matches a pattern; case matters.

    Brackets are index notation in the names of attributes, not sets of characters: ``coefs_[*]`` matches
    every element of ``coefs_``.
    """
    return name == pattern or _expression(pattern).fullmatch(name) is not None


@lru_cache(maxsize=256)
def _expression(pattern: str) -> re.Pattern:
    wild = {"*": ".*", "?": "."}
    return re.compile("".join(wild.get(letter) or re.escape(letter) for letter in pattern), re.DOTALL)
