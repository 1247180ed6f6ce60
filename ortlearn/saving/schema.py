"""JSON schema of the manifest of a saved estimator, and validation of manifests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..exceptions import SavedFileError

__all__ = ["FORMAT", "SCHEMA", "check_manifest"]

#: Number of the format, 1 in version 0.2.0; files with a higher number are rejected.
FORMAT = 2

_DIGEST: dict[str, Any] = {"type": "string", "pattern": "[0-9a-f]{64}"}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
#: JSON schema of ``manifest.json``; ``record`` is a value as :mod:`ortlearn.saving.encoder` writes it.
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Saved estimator of ortlearn",
    "type": "object",
    "required": ["kind", "format", "versions", "summary", "omitted", "files", "record", "sha256"],
    "properties": {
        "kind": {"type": "string", "pattern": "ortlearn"},
        "format": {"type": "integer", "minimum": 1},
        "versions": {"type": "object", "additionalProperties": {"type": "string"}},
        "summary": {
            "type": "object",
            "required": ["estimator", "epochs", "batches", "finished"],
            "properties": {
                "estimator": {"type": "string"},
                "epochs": _COUNT,
                "batches": _COUNT,
                "finished": {"type": "boolean"},
            },
        },
        "omitted": {"type": "array", "items": {"type": "string"}},
        "files": {
            "type": "object",
            "propertyNames": {"pattern": "[a-z][a-z0-9-]{0,40}\\.(onnx|npz|skops)"},
            "additionalProperties": {
                "type": "object",
                "required": ["bytes", "sha256"],
                "properties": {"bytes": _COUNT, "sha256": _DIGEST},
            },
        },
        "record": {"type": "object"},
        "sha256": _DIGEST,
    },
}
TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}


def check_manifest(value: Any, schema: Mapping[str, Any] = SCHEMA, where: str = "manifest") -> None:
    """Validate a value against a schema; only the keywords of our schemas are supported."""
    if not schema:  # any value
        return
    kind: str = schema["type"]
    if not _is_a(value, kind):
        raise SavedFileError(f"The {where} must be of type {kind}, and is {type(value).__name__}.")
    if "pattern" in schema and not re.fullmatch(schema["pattern"], value):
        raise SavedFileError(
            f"The {where} is {value[:80]!r}, which does not match the pattern {schema['pattern']}."
        )
    if "minimum" in schema and value < schema["minimum"]:
        raise SavedFileError(f"The {where} is {value}, below {schema['minimum']}.")
    if kind == "array":
        for number, item in enumerate(value):
            check_manifest(item, schema["items"], f"{where}[{number}]")
    if kind == "object":
        _check_object(value, schema, where)


def _is_a(value: Any, kind: str) -> bool:
    return isinstance(value, TYPES[kind]) and not (kind in ("integer", "number") and isinstance(value, bool))


def _check_object(value: dict[str, Any], schema: Mapping[str, Any], where: str) -> None:
    missing = [name for name in schema.get("required", ()) if name not in value]
    if missing:
        raise SavedFileError(f"The {where} lacks {', '.join(missing)}.")
    names = schema.get("propertyNames")
    for name, item in value.items():
        if names is not None:
            check_manifest(name, {"type": "string", **names}, f"name in {where}")
        known = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
        if known is not None:
            check_manifest(item, known, f"{where}.{name}")
