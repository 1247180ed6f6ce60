"""Boosters of XGBoost as JSON: what is in them, and what is written back.

The format is that of "Introduction to Model IO" of its documentation, with the schema of the document;
"Categorical Data" tells where categories go.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import Access
from ..trees import Nodes
from .splits import CategorySplit

#: Objectives whose raw scores are logits, or logarithms, of what base_score is.
LOGITS = {"binary:logistic", "reg:logistic"}
LOGARITHMS = {"count:poisson", "reg:gamma", "reg:tweedie"}


def booster_of(model: Any) -> Booster:
    """Return what is in the booster of a fitted estimator."""
    return Booster(_document(model))


def _document(model: Any) -> dict[str, Any]:
    """Return the booster of an estimator as JSON has it."""
    return json.loads(bytes(model.get_booster().save_raw(raw_format="json")))


def _texts(known: dict[str, Any]) -> list[str]:
    """Return the texts whose bytes lie one after the other."""
    text, ends = np.array(known["values"]).astype(np.uint8).tobytes(), known["offsets"]
    return [text[begin:end].decode() for begin, end in zip(ends[:-1], ends[1:], strict=True)]


def _set_document(model: Any, document: dict[str, Any]) -> None:
    model.get_booster().load_model(bytearray(json.dumps(document), "utf-8"))


@dataclass(frozen=True)
class Place:
    """A tree that predictions add up, and its reachable nodes: the splits, the root first, and the leaves."""

    tree: int
    splits: list[int]
    leaves: list[int]


class Booster:
    """What is in the JSON of a booster, and where."""

    def __init__(self, document: dict[str, Any]):
        learner = document["learner"]
        self.booster = learner["gradient_booster"]
        self.objective = learner["objective"]["name"]
        self.sizes = learner["learner_model_param"]
        self.attributes = learner["attributes"]
        #: Raw scores of a sample.
        self.n_scores = max(int(self.sizes["num_class"]), int(self.sizes.get("num_target", 1)), 1)

    @property
    def is_linear(self) -> bool:
        """Whether it is a linear model."""
        return self.booster["name"] == "gblinear"

    @property
    def model(self) -> dict[str, Any]:
        """Trees, or weights."""
        return self.booster["gbtree"]["model"] if self.booster["name"] == "dart" else self.booster["model"]

    @property
    def has_vectors(self) -> bool:
        """Whether leaves have a value for each score."""
        return any(int(tree["tree_param"]["size_leaf_vector"]) > 1 for tree in self.model["trees"])

    @property
    def n_trees(self) -> int:
        """Number of trees up to the best iteration."""
        rounds = int(self.attributes.get("best_iteration", -2)) + 1
        return self.model["iteration_indptr"][rounds]

    def categories(self) -> dict[int, list[Any]]:
        """Return the categories that a fit on a frame made codes of, by the positions of their columns."""
        return {
            place: _texts(known) if "offsets" in known else known["values"]
            for place, known in enumerate(self.model.get("cats", {}).get("enc", ()))
            if known["values"]
        }

    def places(self) -> list[Place]:
        """Return the trees, of each round that of the first score first."""
        rank: dict[int, int] = {}
        order = []
        for number, score in enumerate(self.model["tree_info"][: self.n_trees]):
            rank[score] = rank.get(score, -1) + 1
            order.append((rank[score], score, number))
        return [self._place(number) for _, _, number in sorted(order)]

    def _place(self, number: int) -> Place:
        tree, waiting = self.model["trees"][number], [0]
        for node in waiting:
            if tree["left_children"][node] >= 0:
                waiting += [tree["left_children"][node], tree["right_children"][node]]
        splits = [node for node in waiting if tree["left_children"][node] >= 0]
        return Place(number, splits, [node for node in waiting if tree["left_children"][node] < 0])

    def factors(self, places: list[Place]) -> np.ndarray | None:
        """Return the weight of the tree of each leaf, as dropout of trees gives them; None for ones."""
        weights = self.model.get("weight_drop") or self.booster.get("weight_drop") or [1.0]
        if set(weights) == {1.0}:
            return None
        return np.concatenate([np.full(len(place.leaves), weights[place.tree]) for place in places])

    def nodes(self, place: Place) -> Nodes:
        """Return a tree as arrays; splits on categories compare nothing yet."""
        tree, n_splits = self.model["trees"][place.tree], len(place.splits)
        number = {node: i for i, node in enumerate(place.splits)}
        number |= {node: n_splits + i for i, node in enumerate(place.leaves)}
        values = np.array([tree["split_conditions"][node] for node in place.splits], dtype=np.float32)
        return Nodes.of_splits(
            left=[number[tree["left_children"][node]] for node in place.splits],
            right=[number[tree["right_children"][node]] for node in place.splits],
            feature=[tree["split_indices"][node] for node in place.splits],
            threshold=np.nextafter(values, np.float32(-np.inf)),  # smaller ones go left
            missing_left=[bool(tree["default_left"][node]) for node in place.splits],
        )

    def on_categories(self, place: Place, first: int) -> Iterator[CategorySplit]:
        """Yield the splits on categories of a tree whose first node has a number among those of all trees.

        Named categories go right, others left.
        """
        tree = self.model["trees"][place.tree]
        number = {node: i for i, node in enumerate(place.splits)}
        parts = zip(
            tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True
        )
        for node, begin, size in parts:
            if node in number:
                yield CategorySplit(
                    first + number[node],
                    tree["split_indices"][node],
                    tuple(tree["categories"][begin : begin + size]),
                    left=False,
                    missing_left=bool(tree["default_left"][node]),
                )


class LeafValues(Access):
    """Values of the leaves, in the order of the trees of :meth:`Booster.places`.

    They have the shape (n_leaves,), or (n_leaves, n_scores) where each leaf has a value for every score.
    """

    def read(self, owner: Any) -> np.ndarray:
        booster = booster_of(owner)
        values = [values[begin:end] for values, begin, end in self._entries(booster)]
        return np.array(values, dtype=np.float64).reshape(
            (-1, booster.n_scores) if booster.has_vectors else -1
        )

    def write(self, owner: Any, value: np.ndarray) -> None:
        document = _document(owner)
        entries = self._entries(Booster(document))
        for (values, begin, end), own in zip(entries, value, strict=True):
            values[begin:end] = np.ravel(own).astype(np.float32).astype(float).tolist()
        _set_document(owner, document)

    @staticmethod
    def _entries(booster: Booster) -> Iterator[tuple[list[float], int, int]]:
        """Yield the list that has the value of each leaf, and where it begins and ends."""
        size = booster.n_scores
        for place in booster.places():
            tree = booster.model["trees"][place.tree]
            for leaf in place.leaves:
                if booster.has_vectors:
                    row = tree["right_children"][leaf]
                    yield tree["leaf_weights"], row * size, (row + 1) * size
                else:
                    yield tree["split_conditions"], leaf, leaf + 1


class LinearWeights(Access):
    """Weights of a linear booster, of shape (n_features, n_scores), or the last row: the intercepts."""

    def __init__(self, rows: slice):
        self.rows = rows

    def _table(self, document: dict[str, Any]) -> np.ndarray:
        booster = Booster(document)
        return np.reshape(np.array(booster.model["weights"], dtype=np.float64), (-1, booster.n_scores))

    def read(self, owner: Any) -> np.ndarray:
        return self._table(_document(owner))[self.rows].copy()

    def write(self, owner: Any, value: np.ndarray) -> None:
        document = _document(owner)
        table = self._table(document)
        table[self.rows] = value
        Booster(document).model["weights"] = table.astype(np.float32).astype(float).ravel().tolist()
        _set_document(owner, document)


class BaseScore(Access):
    """Raw scores that boosting starts from, of shape (1 or n_scores,)."""

    def read(self, owner: Any) -> np.ndarray:
        booster = booster_of(owner)
        text = booster.sizes["base_score"].strip("[]")
        value = np.array([np.float32(number) for number in text.split(",")], dtype=np.float64)
        if booster.objective in LOGITS:
            return np.log(value) - np.log1p(-value)
        return np.log(value) if booster.objective in LOGARITHMS else value

    def write(self, owner: Any, value: np.ndarray) -> None:
        document = _document(owner)
        booster = Booster(document)
        if booster.objective in LOGITS:
            value = 1 / (1 + np.exp(-value))
        elif booster.objective in LOGARITHMS:
            value = np.exp(value)
        text = ",".join(f"{np.float32(number):.9g}" for number in value)
        in_brackets = booster.sizes["base_score"].startswith("[")
        booster.sizes["base_score"] = f"[{text}]" if in_brackets else text
        _set_document(owner, document)
