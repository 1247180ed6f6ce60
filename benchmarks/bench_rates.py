"""Compare batch sizes, rates and updates by the loss after equal epochs and after equal time, on real data.

Trains a network 64-64-10 on the digits of scikit-learn (1347 training samples, 450 validation samples) with
constant rates; means of three seeds, one thread. Prints the tables of docs/howto/batch_size_and_rate.md and
draws its figure: ``python -m benchmarks.bench_rates docs/images/rates.png`` (some minutes).
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from ortlearn import OrtGradientOptimizer, learning_rates
from ortlearn.exceptions import ConvergenceError

__all__ = ["Curve", "first_below", "measure"]

TARGET, COMPARED, SEEDS = 0.12, 20, (0, 1, 2)
#: Epochs and rates of SGD to try, by batch size.
BATCHES = {
    1: (25, (0.003, 0.01, 0.02, 0.03, 0.05, 0.1)),
    8: (60, (0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 1.0)),
    32: (60, (0.01, 0.03, 0.1, 0.3, 0.5, 1.0)),
    128: (100, (0.03, 0.1, 0.3, 0.5, 1.0, 1.5)),
    512: (150, (0.1, 0.3, 0.5, 1.0, 1.5)),
}
#: Rates to try for each update, with batches of 32.
UPDATES = {
    "SGD": (0.1, 0.3, 0.5, 1.0),
    "SGDNesterov": (0.01, 0.03, 0.1, 0.2),
    "Adam": (0.001, 0.003, 0.01, 0.03),
    "AdamW": (0.001, 0.003, 0.01, 0.03),
    "RMSprop": (0.001, 0.003, 0.01, 0.03),
    "Adagrad": (0.01, 0.03, 0.1, 0.3),
    "Lion": (0.0001, 0.0003, 0.001, 0.003),
}


@dataclass
class Curve:
    """Validation losses of trainings with different seeds, and the time of an epoch.

    Attributes
    ----------
    losses : ndarray of shape (n_seeds, n_epochs)
        Validation losses.
    seconds : float
        Seconds of the fastest epoch, since other programs can only increase times.
    """

    losses: np.ndarray
    seconds: float

    @property
    def mean(self) -> np.ndarray:
        """Mean loss of each epoch."""
        return self.losses.mean(axis=0)

    @property
    def epochs(self) -> float:
        """Mean number of epochs to the target."""
        return float(np.mean([first_below(row, TARGET) for row in self.losses]))


def first_below(losses: np.ndarray, target: float) -> float:
    """Return the first epoch (from 1) whose loss is below a target, or infinity."""
    below = np.flatnonzero(np.asarray(losses) < target)
    return float(below[0] + 1) if len(below) else float("inf")


def measure(data, update: str, rate: float, batch_size: int, n_epochs: int) -> Curve:
    """Train with each seed.

    Parameters
    ----------
    data : tuple of ndarray
        X_train, X_val, y_train, y_val.
    update : str
        Name of a learning rate.
    rate : float
        Constant rate.
    batch_size, n_epochs : int
        Number of samples of a batch, number of epochs.

    Returns
    -------
    Curve
        Losses and time; losses of trainings that diverge are infinite.
    """
    X_train, X_val, y_train, y_val = data
    losses, seconds = np.full((len(SEEDS), n_epochs), np.inf), np.inf
    for row, seed in zip(losses, SEEDS, strict=True):
        trainer = OrtGradientOptimizer(
            MLPClassifier(hidden_layer_sizes=(64,)),
            learning_rate=getattr(learning_rates, f"LearningRate{update}")(rate, learning_rate="constant"),
            batch_size=batch_size,
            max_iter=n_epochs,
            validation_every=1,
            random_state=seed,
        )
        try:
            trainer.fit(X_train, y_train, X_val=X_val, y_val=y_val)
        except ConvergenceError:
            continue
        row[:] = trainer.validation_losses_
        seconds = min(seconds, *(record["seconds"] for record in trainer.history_))
    return Curve(losses, seconds)


def best_rate(curves: dict[float, Curve]) -> float:
    """Return the rate with the lowest loss after equal epochs."""
    return min(curves, key=lambda rate: curves[rate].mean[COMPARED - 1])


def print_table(title: str, found: dict) -> None:
    """Print the best rate of each row, and its loss and time."""
    print(f"| {title} | best rate | epochs | loss after {COMPARED} epochs | time of an epoch | time in all |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, curves in found.items():
        rate = best_rate(curves)
        best = curves[rate]
        cost = f"{1e3 * best.seconds:.1f} ms | {1e3 * best.seconds * best.epochs:.0f} ms"
        print(f"| {name} | {rate} | {best.epochs:.0f} | {best.mean[COMPARED - 1]:.2f} | {cost} |")


def draw(found: dict, path: str) -> None:
    """Plot the loss against the rate after equal epochs, and against time at the best rate."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    # Vertical arrangement, to be readable on a phone.
    figure, (above, below) = pyplot.subplots(2, 1, figsize=(6, 7), layout="constrained", sharey=True)
    for (name, curves), shade in zip(found.items(), np.linspace(0.1, 0.85, len(found)), strict=True):
        style = {"color": matplotlib.colormaps["viridis"](shade), "label": f"{name}"}
        above.plot(list(curves), [curve.mean[COMPARED - 1] for curve in curves.values()], "o-", ms=4, **style)
        best = curves[best_rate(curves)]
        times = 1e3 * best.seconds * np.arange(1, best.losses.shape[1] + 1)
        below.plot(times, np.minimum.accumulate(best.losses, axis=1).mean(axis=0), **style)
    above.set(xscale="log", yscale="log", xlabel="rate", ylabel="validation loss", ylim=(0.07, 2.6))
    above.set_title(f"after {COMPARED} epochs", fontsize="large")
    below.set(xscale="log", xlim=(1, 1000), xlabel="milliseconds of training", ylabel="validation loss")
    below.set_title("best so far, at the best rate of each", fontsize="large")
    below.axhline(TARGET, color="grey", linewidth=0.8, linestyle=":")
    above.legend(title="batch size")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def main(path: str) -> None:
    """Measure, print and draw."""
    X, y = load_digits(return_X_y=True)
    data = train_test_split(X / 16, y, random_state=0, stratify=y)
    batches = {
        size: {rate: measure(data, "SGD", rate, size, n_epochs) for rate in rates}
        for size, (n_epochs, rates) in BATCHES.items()
    }
    print_table("batch size", batches)
    draw(batches, path)
    updates = {
        name: {rate: measure(data, name, rate, 32, 60) for rate in rates} for name, rates in UPDATES.items()
    }
    print_table("update", updates)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture", nargs="?", default="docs/images/rates.png")
    main(parser.parse_args().picture)
