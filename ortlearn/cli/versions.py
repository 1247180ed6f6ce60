"""List the versions of a model folder, add a model, or go back to the version before.

FOLDER has the files of each version, and `current`, whose first line is the name of the ONNX file in use.
"""

from __future__ import annotations

import argparse

from ..evaluation.data_files import read_sample
from ..evaluation.model_files import load_model
from ..lifecycle import ModelFolder
from ..lifecycle.promotion import model_contents
from .parser import MOST_SAMPLES, UsageError
from .report import number, table

__all__ = ["add_arguments", "as_text", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("folder", metavar="FOLDER", help="folder of versions; --add creates it")
    parser.add_argument("--add", metavar="MODEL", help="add a model file, and put it into use")
    parser.add_argument(
        "--samples",
        metavar="DATA",
        help="samples for --add, from which the types of columns of text are read",
    )
    parser.add_argument("--switch", type=int, metavar="NUMBER", help="put a version into use")
    parser.add_argument("--rollback", action="store_true", help="put the version into use that was before")
    parser.add_argument("--trust", action="append", default=[], metavar="TYPE", help="type of a .skops file")


def run(options: argparse.Namespace) -> dict:
    """Change the folder, and return its versions."""
    if sum((options.add is not None, options.switch is not None, options.rollback)) > 1:
        raise UsageError("--add, --switch and --rollback cannot be combined.")
    folder = ModelFolder(options.folder)
    if options.add is not None:
        onnx, skops = _contents(options)
        folder.switch(folder.add(onnx, skops))
    elif options.switch is not None:
        folder.switch(options.switch)
    elif options.rollback:
        folder.rollback()
    elif not folder.path.is_dir():
        raise FileNotFoundError(2, "No such folder", options.folder)
    return {"folder": options.folder, "current": folder.current, "versions": folder.history()}


def _contents(options: argparse.Namespace) -> tuple[bytes, bytes | None]:
    """Return the contents of the files of the model to add."""
    model = load_model(options.add, options.trust)
    samples = None if options.samples is None else read_sample(options.samples, MOST_SAMPLES, 0)[0]
    try:
        return model_contents(model, samples)
    except ValueError as error:
        if samples is not None:
            raise
        raise ValueError(
            f"{options.add} has no ONNX form: {str(error).rstrip('.')}. Columns of text need --samples."
        ) from error


def as_text(result: dict) -> str:
    """Return the versions as a table."""
    if not result["versions"]:
        return f"{result['folder']} has no version: use --add MODEL"
    rows: list[tuple[str, ...]] = [("version", "created", "outcome", "candidate", "gain", "bytes")]
    for item in result["versions"]:
        gain = "" if item.get("gain") is None else f"{number(item['gain'], True)} {item.get('metric')}"
        mark = "*" if item["current"] else ""
        texts = (str(item.get(key) or "") for key in ("created", "outcome", "candidate"))
        rows.append((f"{item['number']}{mark}", *texts, gain, str(item.get("bytes", ""))))
    return f"{result['folder']} (* in use)\n{table(rows, '  ')}"
