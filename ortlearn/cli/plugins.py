"""List losses, penalties, learning rates and other plugins with their status."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from ..plugins import PluginInfo, list_plugins
from ..plugins.table import add_arguments, full_group, plugins_table

__all__ = ["add_arguments", "as_text", "run"]


def run(options: argparse.Namespace) -> dict:
    """Return the plugins."""
    group = full_group(options.group)
    infos = list_plugins(group, load=options.load)
    return {"group": group, "loaded": options.load, "plugins": [asdict(info) for info in infos]}


def as_text(result: dict) -> str:
    """Return one line per plugin."""
    infos = [PluginInfo(**info) for info in result["plugins"]]
    return plugins_table(infos, result["group"], result["loaded"])
