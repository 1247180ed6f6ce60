"""Half of the units of large networks, and two thirds of the trees of forests."""

from __future__ import annotations

from sklearn.datasets import load_breast_cancer, load_digits, make_friedman1
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn.compress import prune

TITLES = ("model", "before", "after", "lost", "what is left", "bytes of the file")


def rows() -> list[tuple[str, ...]]:
    """Return the rows of the table."""
    network = make_pipeline(StandardScaler(), MLPClassifier((256, 128), max_iter=60, random_state=0))
    cases = {
        "MLP, digits": (network, load_digits(return_X_y=True), 0.5),
        "forest, digits": (RandomForestClassifier(300, random_state=0), load_digits(return_X_y=True), 2 / 3),
        "forest, breast cancer": (
            RandomForestClassifier(300, random_state=0),
            load_breast_cancer(return_X_y=True),
            2 / 3,
        ),
        "forest, friedman1": (
            RandomForestRegressor(300, random_state=0),
            make_friedman1(3000, noise=1.0, random_state=0),
            2 / 3,
        ),
    }
    table = []
    for name, (model, (X, y), share) in cases.items():
        X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0)
        found = prune(
            model.fit(X_train, y_train), X_train, y_train, sparsity=share, held_out=(X_test, y_test)
        )
        scores = found.scores[found.metric]
        table.append(
            (
                name,
                f"{scores['old']['value']:.4f}",
                f"{scores['new']['value']:.4f}",
                f"{found.loss:+.4f}",
                *(f"{what}: {change}" for what, change in found.layers.items()),
                f"{found.n_bytes['new'] / found.n_bytes['old']:.2f}",
            )
        )
        print(table[-1], flush=True)
    return table
