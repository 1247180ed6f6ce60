"""A batch as one call: gather, objective, gradient and update in one graph."""

from __future__ import annotations

from ...runtime.buffers import Carried
from ...runtime.sessions import make_session
from ..graphs.step_graphs import step_graph
from .batch_step import BatchStep, Plan

__all__ = ["SingleGraphStep"]


class SingleGraphStep(BatchStep):
    """Train with one graph per batch; all samples are bound once."""

    def build(self) -> list[Carried]:
        """Build graph and session."""
        graph = step_graph(self.task)
        session = make_session(graph.model, self.device, self.n_jobs)
        self.plan = Plan({"step": graph.model}, graph.carried, lambda size: [session])
        return graph.carried
