"""Learning rates on a small ill-conditioned quadratic, and schedules over epochs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from docs.reference_pages.pictures import Line, Panel, Picture
from docs.reference_pages.running import runner
from ortlearn.learning_rates import BaseLearningRate, BaseSchedule, BaseSolver
from ortlearn.testing.updates import Updates

__all__ = ["learning_rate_facts", "learning_rate_picture", "schedule_facts", "schedule_picture"]

STEPS, EPOCHS = 100, 100
#: Rates that are tried.
RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
START = np.array([-3.0, 2.5])
_turn = np.array([[np.cos(0.5), -np.sin(0.5)], [np.sin(0.5), np.cos(0.5)]])
#: Curvatures 1 and 25, along axes that are turned against those of the weights.
CURVATURE = _turn @ np.diag([1.0, 25.0]) @ _turn.T
#: Losses for the plots of adaptive schedules: they decrease for 30 epochs, then stay constant.
LOSSES = [0.97 ** min(epoch, 30) for epoch in range(EPOCHS)]


class Quadratic:
    """``w' C w / 2`` and its gradient, as the objective of a solver too."""

    has_kinks = False
    lower = absolute = anchor = None

    def __call__(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        return float(weights @ CURVATURE @ weights / 2), CURVATURE @ weights

    def rounded(self, width: float) -> Quadratic:
        """Return itself: there is no kink."""
        return self


def learning_rate_facts(learning_rate: BaseLearningRate) -> Iterator[str]:
    """Yield what a learning rate keeps and where it is used, in sentences."""
    if isinstance(learning_rate, BaseSolver):
        yield "A solver on all samples at once, without a schedule; `batch_size` has no effect."
        return
    weight = np.zeros((2, 3), np.float32)
    state = learning_rate.init(weight)
    kept = [f"`{key}`{'' if v.shape == weight.shape else ' (a scalar)'}" for key, v in state.items()]
    yield f"State per weight: {', '.join(kept) or 'none'}."
    scale = learning_rate.proximal_scale
    if scale is not None:
        times = "" if scale == 1 else f" times {scale:g}"
        yield f"Proximal steps of penalties have the length of the rate{times}."


def learning_rate_picture(learning_rate: BaseLearningRate) -> Picture:
    """Return the path of two weights, and the loss over the steps."""
    path, label = _best_path(learning_rate)
    losses = [max(Quadratic()(weights)[0], 1e-12) for weights in path]
    ticks = np.linspace(-4, 4, 81)
    grid = np.stack(np.meshgrid(ticks, ticks), axis=-1)
    heights = np.sqrt(np.einsum("yxi,ij,yxj->yx", grid, CURVATURE, grid))
    panels = [
        Panel(
            "path",
            "weight 1",
            "weight 2",
            [Line(path[:, 0], path[:, 1], label, "o")],
            (ticks, ticks, heights),
        ),
        Panel("loss", "step", "", [Line(np.arange(len(path)), losses, label)], log=True),
    ]
    return Picture(panels, "path and loss")


def _best_path(learning_rate: BaseLearningRate) -> tuple[np.ndarray, str]:
    """Return the path with the lowest mean loss among some rates, none of which changes on the way."""
    if isinstance(learning_rate, BaseSolver):
        noted = [START.copy()]
        learning_rate.minimize(Quadratic(), START.copy(), STEPS, lambda w: noted.append(np.array(w)), 1e-15)
        return np.array(noted), ""
    found = {}
    for rate in RATES:
        path = _path(learning_rate, rate)
        if path is not None:
            found[rate] = (np.mean([Quadratic()(weights)[0] for weights in path]), path)
    if not found:
        raise ValueError("every rate from 0.001 to 10 diverges on a quadratic")
    best = min(found, key=lambda rate: found[rate][0])
    return found[best][1], f"rate {best:g}"


def _path(learning_rate: BaseLearningRate, rate: float) -> np.ndarray | None:
    """Return the weights after each step, None where they diverge."""
    sessions: list = []

    def run_update(model, feeds):
        sessions[:] = sessions or [runner(model)]
        return list(sessions[0](feeds).values())

    updates = Updates(learning_rate, START.astype(np.float32), run_update)
    path = [START]
    for _ in range(STEPS):
        gradient = Quadratic()(path[-1])[1]
        updates.apply(gradient, rate)
        path.append(updates.weight.astype(np.float64))
        if not np.abs(path[-1]).max() < 1e6:  # nan is not below either
            return None
    return np.array(path)


def schedule_facts(schedule: BaseSchedule) -> Iterator[str]:
    """Yield what a schedule looks at, in sentences."""
    if schedule.start() is not None:
        yield "The rate depends on the training losses too."
    if schedule.shared:
        names = ", ".join(f"`{name}`" for name in schedule.shared)
        yield f"If it is given by name, the learning rate passes on {names}."


def schedule_picture(schedule: BaseSchedule) -> Picture:
    """Return the rate of each epoch for ``eta0=1``, and the losses if the schedule looks at them."""
    memory, rates = schedule.start(), []
    watches = memory is not None
    for epoch, loss in enumerate(LOSSES):
        rates.append(schedule.rate(epoch, 1.0, memory) if watches else schedule.rate(epoch, 1.0))
        memory = schedule.remember(memory, loss) if watches else None
    epochs = np.arange(EPOCHS)
    panels = [Panel("rate", "epoch", "rate, eta0 = 1", [Line(epochs, rates)], from_zero=True)]
    alt = "rate over epochs"
    if watches:
        panels.append(Panel("simulated losses", "epoch", "mean training loss", [Line(epochs, LOSSES)]))
        alt = "rate and simulated losses over epochs"
    return Picture(panels, alt)
