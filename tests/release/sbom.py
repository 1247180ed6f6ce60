"""The bill of materials of an installation, in the format CycloneDX."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.release.environments import Environment

__all__ = ["about", "write"]

NAME = "ortlearn"
#: Packages that a virtual environment has without being asked.
_TOOLS = {"pip", "setuptools", "wheel"}


def about(name: str, bill: dict[str, Any]) -> dict[str, Any]:
    """Return a bill of an environment as that of one of its components, which the others are parts of."""
    own = [part for part in bill["components"] if part["name"] == name]
    if len(own) != 1:
        raise ValueError(f"{name} is {len(own)} times among the components, instead of once.")
    tools = {part["bom-ref"] for part in bill["components"] if part["name"] in _TOOLS}
    kept = [part for part in bill["components"] if part is not own[0] and part["bom-ref"] not in tools]
    links = [link for link in bill.get("dependencies", []) if link["ref"] not in tools]
    metadata = {**bill.get("metadata", {}), "component": {**own[0], "type": "library"}}
    return {**bill, "metadata": metadata, "components": kept, "dependencies": links}


def write(dist: Path, target: Path) -> list[str]:
    """Install the wheel of a folder with its extra ``onnxruntime``, and write the bill; return the errors."""
    wheels = sorted(dist.glob("*.whl"))
    if len(wheels) != 1:
        return [f"{dist} has {len(wheels)} wheels, instead of one: run make dist."]
    with tempfile.TemporaryDirectory(prefix="ortlearn-sbom-") as name:
        environment = Environment(Path(name) / "environment", sys.executable)
        if not environment.install(f"{wheels[0].resolve()}[onnxruntime]"):
            return [f"{wheels[0].name} cannot be installed."]
        tool = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", "--of", "JSON"]
        found = subprocess.run([*tool, str(environment.python)], capture_output=True, text=True)
    if found.returncode:
        return [f"cyclonedx-py fails: {found.stderr}"]
    bill = about(NAME, json.loads(found.stdout))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(bill, indent=2) + "\n", encoding="utf-8")
    print(f"{target}: {len(bill['components'])} components")
    return []
