"""Pipelines, and transformers side by side."""

from collections.abc import Iterator, Sequence
from typing import Any

from .base import ModelDefinition, Route
from .columns import Columns
from .objectives import Objective, objective_of
from .registry import definition_of, find_definition
from .scores import Scores, joined, transformation
from .writer import ModelWriter

#: Steps that give what they take.
IDLE = (None, "passthrough")


class PipelineDefinition(ModelDefinition):
    """Pipeline: each step takes what the one before gives."""

    takes_columns = True

    def children(self, model: Any) -> Iterator[Any]:
        yield from (step for _, step in _working_steps(model))

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        """Return the objective of the last step."""
        return objective_of(model.steps[-1][1], total_weight)

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        scores: Scores | None = None
        steps = _working_steps(model)
        for name, step in steps:
            if scores is not None:
                if scores.transformed is None:
                    raise op.fail(model, f"the step before {name!r} does not transform.")
                x = scores.transformed
            scores = op.step(name, step, x, last=name == steps[-1][0])
        if scores is None:
            return transformation(op, x, _width(op, x))
        return scores

    def routes(self, model: Any, columns: Sequence[int]) -> Iterator[Route]:
        steps = [step for _, step in model.steps if not _passes_through(step)]
        imputed = False
        while len(steps) > 1 and _fills_gaps_only(steps[0]):
            steps, imputed = steps[1:], True
        yield Route(steps[0] if steps else None, columns, imputed)

    def write_inverse(self, op: ModelWriter, model: Any, y: str) -> str:
        for _, step in reversed(_working_steps(model)):
            y = definition_of(step).write_inverse(op, step, y)
        return y

    def shape_predictions(self, model: Any, n_dimensions: int) -> Any:
        return model.steps[-1][1]


def _working_steps(model: Any) -> list[tuple[str, Any]]:
    return [(name, step) for name, step in model.steps if step not in IDLE]


def _passes_through(step: Any) -> bool:
    found = None if step in IDLE else find_definition(step)
    return step in IDLE or (found is not None and [r.part for r in found.routes(step, ())] == [None])


def _fills_gaps_only(step: Any) -> bool:
    found = find_definition(step)
    return found is not None and found.fills_gaps_only(step)


class _SideBySide(ModelDefinition):
    """Transformers whose results are put side by side."""

    takes_columns = True

    def parts(self, model: Any) -> Iterator[tuple[str, Any, list[int] | None]]:
        """Yield the name, the transformer and the positions of the columns of each part."""
        raise NotImplementedError

    def place(self, name: str) -> str:
        """Return the expression of a part in its owner."""
        return f"['{name}']"

    def routes(self, model: Any, columns: Sequence[int]) -> Iterator[Route]:
        """Yield each transformer with its columns."""
        for _, step, positions in self.parts(model):
            # the members of a chain are given predictions, too
            own = columns if positions is None else [columns[i] for i in positions if i < len(columns)]
            yield Route(None if step in IDLE else step, own)

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        """Append the transformers, and what they give side by side."""
        found: list[tuple[Any, int]] = []
        for name, step, positions in self.parts(model):
            own = x if positions is None else op.columns(x, positions)
            if step in IDLE:
                width = model.n_features_in_ if positions is None else len(positions)
            else:
                with op.inside(self.place(name)):
                    scores = op.write(step, own)
                own, width = scores.transformed, scores.n_outputs
                if own is None:
                    raise op.fail(model, f"its part {name!r} does not transform.")
            factor = (model.transformer_weights or {}).get(name)
            if factor is not None:
                own = op.Mul(op.matrix(own), float(factor))
            if width:
                found.append((own, width))
        return transformation(op, _joined(op, found), sum(width for _, width in found))


def _width(op: ModelWriter, x: Any) -> int:
    """Return the number of columns that only pass."""
    if isinstance(x, Columns):
        return len(x.tensors)
    shape = op.shape(x)
    assert shape is not None and isinstance(shape[-1], int)
    return shape[-1]


def _joined(op: ModelWriter, parts: list[tuple[Any, int]]) -> str | Columns:
    """Return some parts side by side: as columns where one is text, a matrix otherwise."""
    if not any(op.has_text(own) for own, _ in parts):
        return joined(op, [op.matrix(own) for own, _ in parts])
    return Columns(tuple(op.column(own, i) for own, width in parts for i in range(width)))


class FeatureUnionDefinition(_SideBySide):
    """FeatureUnion: every transformer takes all columns."""

    def parts(self, model: Any) -> Iterator[tuple[str, Any, None]]:
        yield from ((name, step, None) for name, step in model.transformer_list if step != "drop")


class ColumnTransformerDefinition(_SideBySide):
    """ColumnTransformer: every transformer takes some of the columns."""

    selects_columns = True

    def place(self, name: str) -> str:
        return f"named_transformers_['{name}']"

    def parts(self, model: Any) -> Iterator[tuple[str, Any, list[int] | None]]:
        yield from column_positions(model)


def column_positions(model: Any) -> Iterator[tuple[str, Any, list[int]]]:
    """Yield name, transformer and column positions of what a fitted ColumnTransformer does not drop."""
    known = model._transformer_to_input_indices
    for name, step, _ in model.transformers_:
        positions = [int(position) for position in known.get(name, [])]
        if positions and not (isinstance(step, str) and step == "drop"):
            yield name, step, positions
