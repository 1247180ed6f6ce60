"""Selection of the checkpoints to keep: the last ones and the best ones."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Ranking", "check_monitor"]

#: Criteria of the best model, and whether higher values are better.
MONITORED = {"validation_loss": False, "loss": False, "validation_score": True}


def check_monitor(monitor: Any) -> None:
    """Raise a ValueError if a criterion is unknown."""
    if monitor not in MONITORED:
        raise ValueError(f"monitor must be one of {sorted(MONITORED)}, not {monitor!r}.")


@dataclass
class Ranking:
    """Checkpoints by folder and cost, and the selection of those to keep."""

    monitor: str
    keep: int | None
    save_best: int | None
    _known: dict[Path, dict[Path, float]] = field(default_factory=dict)

    def forget(self, folder: Path) -> None:
        """Forget the files of a folder, which belong to an earlier training."""
        self._known[folder] = {}

    def cannot_rank(self, record: dict[str, Any]) -> bool:
        """Return whether only the best epochs are kept and this one has no value of the criterion."""
        return self.save_best is not None and self.keep is None and record[self.monitor] is None

    def check_measured(self, estimator: Any) -> None:
        """Raise a ValueError if the criterion should have been measured by now and was not."""
        due = estimator.validation_every
        due = max(1, round(due * estimator.max_iter)) if isinstance(due, float) else due
        values = [record[self.monitor] for record in estimator.history_]
        if len(values) >= due and values.count(None) == len(values):
            raise ValueError(
                f"save_best={self.save_best} keeps the best epochs by {self.monitor}, which is not "
                "measured. Pass X_val and y_val to fit, set early_stopping=True, or use "
                "ModelCheckpoint(monitor='loss')."
            )

    def wants(self, folder: Path, record: dict[str, Any]) -> bool:
        """Return whether to keep an epoch, as one of the last or of the best so far."""
        if self.save_best is None or self.keep is not None:
            return True
        cost, kept = self._cost(record[self.monitor]), self._costs(folder)
        return cost < math.inf and (len(kept) < self.save_best or cost < max(kept.values()))

    def add(self, path: Path, record: dict[str, Any]) -> None:
        """Add a new file, and remove those that are neither among the last nor among the best."""
        from . import checkpoint_files

        if self.keep is None and self.save_best is None:
            return
        kept = self._costs(path.parent)
        kept[path] = self._cost(record[self.monitor])
        wanted = set(sorted(kept)[-self.keep :] if self.keep else [])
        if self.save_best:
            best = sorted(kept, key=lambda one: kept[one])[: self.save_best]
            wanted |= {one for one in best if kept[one] < math.inf}
        for other in kept.keys() - wanted:
            checkpoint_files.remove_checkpoint(other)
            del kept[other]

    def best(self, paths: Iterable[Path], folder: Path) -> Path:
        """Return the best of some files, or raise a ValueError with the reason."""
        costs = {path: self._read(path) for path in paths}
        best = min(costs, key=lambda path: costs[path], default=None)
        if best is None:
            raise ValueError(f"There is no checkpoint in {folder}. Call fit first, or pass another folder.")
        if costs[best] == math.inf:
            raise ValueError(
                f"None of the {len(costs)} checkpoints in {folder} has a {self.monitor}. Pass X_val and "
                "y_val to fit, or set another monitor."
            )
        return best

    def _cost(self, value: float | None) -> float:
        """Return a cost that is lower for better epochs; infinity if the criterion was not measured."""
        if value is None or math.isnan(value):
            return math.inf
        return -value if MONITORED[self.monitor] else value

    def _read(self, path: Path) -> float:
        from . import checkpoint_files

        return self._cost(checkpoint_files.read_value(path, self.monitor))

    def _costs(self, folder: Path) -> dict[Path, float]:
        """Return the checkpoints in the folder of a run with their costs."""
        from . import checkpoint_files

        if folder not in self._known:
            paths = checkpoint_files.checkpoint_paths(folder, nested=False)
            self._known[folder] = {
                path: self._read(path) for path in filter(checkpoint_files.is_checkpoint, paths)
            }
        return self._known[folder]
