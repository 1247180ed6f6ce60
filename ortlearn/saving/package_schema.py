"""JSON schema of the manifest of a training package."""

from __future__ import annotations

from typing import Any

__all__ = ["PACKAGE_SCHEMA"]

_TEXT: dict[str, Any] = {"type": "string"}
_CHECKSUM: dict[str, Any] = {"type": "string", "pattern": "[0-9a-f]{8}"}
_TENSOR: dict[str, Any] = {
    "type": "object",
    "required": ["name", "type", "shape"],
    "properties": {"name": _TEXT, "type": _TEXT, "shape": {"type": "array", "items": {}}},
}
_ENDS: dict[str, Any] = {
    "type": "object",
    "required": ["input", "output"],
    "properties": {"input": _TEXT, "output": _TEXT},
}
_COLUMNS: dict[str, Any] = {"type": "array", "items": {"type": "integer", "minimum": 0}}
_FEATURE: dict[str, Any] = {**_TENSOR, "properties": {**_TENSOR["properties"], "missing": _COLUMNS}}
#: JSON schema of ``training.json``.
PACKAGE_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Training package of ortlearn",
    "type": "object",
    "required": [
        "kind",
        "format",
        "tensors",
        "batch_size",
        "dtype",
        "features",
        "label",
        "step",
        "epoch",
        "evaluate",
        "predict",
        "carried",
        "schedule",
        "record",
    ],
    "properties": {
        "kind": {"type": "string", "pattern": "ortlearn training package"},
        "format": {"type": "integer", "minimum": 1},
        "versions": {"type": "object", "additionalProperties": _TEXT},
        "runtime": {"type": "object"},
        "ortlearn_crc32": _CHECKSUM,
        "files": {"type": "object", "additionalProperties": _CHECKSUM},
        "tensors": {
            "type": "array",
            "items": {"type": "string", "pattern": "(values|weights|state)\\.safetensors"},
        },
        "batch_size": {"type": "integer", "minimum": 1},
        "dtype": {"type": "string", "pattern": "float(32|64)"},
        "features": {"type": "array", "items": _FEATURE},
        "label": {},
        "sample_weight": {},
        "penalty_in_objective": {"type": "boolean"},
        "step": {
            "type": "object",
            "required": ["rows", "rate", "objective"],
            "properties": {"rows": _TEXT, "rate": _TEXT, "objective": _TEXT},
        },
        "epoch": {
            "type": "object",
            "required": ["rows", "rate", "objective"],
            "properties": {"rows": _TEXT, "rate": _TEXT, "objective": _TEXT},
        },
        "evaluate": {
            "type": "object",
            "required": ["loss", "score", "inputs"],
            "properties": {"loss": _TEXT, "score": {}, "inputs": {"type": "array", "items": _TEXT}},
        },
        "predict": {"type": "array", "items": _TEXT},
        "carried": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "type", "shape", "weight", "state", "step", "epoch"],
                "properties": {
                    **_TENSOR["properties"],
                    "weight": _TEXT,
                    "original": _TEXT,
                    "state": {},
                    "minimum": {"type": "number"},
                    "step": _ENDS,
                    "epoch": _ENDS,
                },
            },
        },
        "schedule": {
            "type": "object",
            "required": ["learning_rate", "rates"],
            "properties": {
                "learning_rate": _TEXT,
                "parameters": {"type": "object"},
                "rates": {"type": "array", "items": {"type": "number"}},
            },
        },
        "record": {},
    },
}
