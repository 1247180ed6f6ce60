"""Boosters of XGBoost as JSON ("Introduction to Model IO" and "Categorical Data" of its documentation)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .. import Access
from ..trees import Nodes
from .boosters import CategorySplit

__all__ = ["XGBoostBaseScore", "Document", "XGBoostLeaves", "XGBoostWeights", "document_of"]

#: Objectives whose raw scores are logits, or logarithms, of base_score.
LOGITS = {"binary:logistic", "reg:logistic"}
LOGARITHMS = {"count:poisson", "reg:gamma", "reg:tweedie"}


def document_of(model: Any) -> Document:
    """Return the booster of a fitted estimator."""
    return Document(json.loads(bytes(model.get_booster().save_raw(raw_format="json"))))


def _texts(known: dict[str, Any]) -> list[str]:
    """Return texts stored as concatenated bytes and offsets."""
    text, ends = np.array(known["values"]).astype(np.uint8).tobytes(), known["offsets"]
    return [text[begin:end].decode() for begin, end in zip(ends[:-1], ends[1:], strict=True)]


@dataclass(frozen=True)
class Tree:
    """Index and reachable nodes of a tree used in predictions; the root is the first split."""

    index: int
    splits: list[int]
    leaves: list[int]


class Document:
    """The JSON of a booster."""

    def __init__(self, content: dict[str, Any]):
        self.content, learner = content, content["learner"]
        self.booster = learner["gradient_booster"]
        self.objective = learner["objective"]["name"]
        self.sizes = learner["learner_model_param"]
        self.attributes = learner["attributes"]
        self.n_scores = max(int(self.sizes["num_class"]), int(self.sizes.get("num_target", 1)), 1)

    def load_into(self, model: Any) -> None:
        """Load this booster into an estimator."""
        model.get_booster().load_model(bytearray(json.dumps(self.content, ensure_ascii=False), "utf-8"))

    @property
    def is_linear(self) -> bool:
        """Whether it is a linear model."""
        return self.booster["name"] == "gblinear"

    @property
    def model(self) -> dict[str, Any]:
        """Trees, or weights."""
        return self.booster["gbtree"]["model"] if self.booster["name"] == "dart" else self.booster["model"]

    @cached_property
    def has_vectors(self) -> bool:
        """Whether leaves have a value for each score."""
        return any(int(tree["tree_param"]["size_leaf_vector"]) > 1 for tree in self.model["trees"])

    @property
    def n_trees(self) -> int:
        """Number of trees up to the best iteration."""
        rounds = int(self.attributes.get("best_iteration", -2)) + 1
        return self.model["iteration_indptr"][rounds]

    def categories(self) -> dict[int, list[Any]]:
        """Return the categories of a fit on a frame in the order of their codes, by column position."""
        return {
            position: _texts(known) if "offsets" in known else known["values"]
            for position, known in enumerate(self.model.get("cats", {}).get("enc", ()))
            if known["values"]
        }

    def trees(self) -> list[Tree]:
        """Return the trees in the order of round and score."""
        rank: dict[int, int] = {}
        order = []
        for number, score in enumerate(self.model["tree_info"][: self.n_trees]):
            rank[score] = rank.get(score, -1) + 1
            order.append((rank[score], score, number))
        return [self._tree(number) for _, _, number in sorted(order)]

    def _tree(self, number: int) -> Tree:
        tree, waiting = self.model["trees"][number], [0]
        for node in waiting:
            if tree["left_children"][node] >= 0:
                waiting += [tree["left_children"][node], tree["right_children"][node]]
        splits = [node for node in waiting if tree["left_children"][node] >= 0]
        return Tree(number, splits, [node for node in waiting if tree["left_children"][node] < 0])

    def factors(self, trees: list[Tree]) -> np.ndarray | None:
        """Return the weight of the tree of each leaf, by dropout of trees (DART); None if all are one."""
        weights = self.model.get("weight_drop") or self.booster.get("weight_drop") or [1.0]
        if set(weights) == {1.0}:
            return None
        return np.concatenate([np.full(len(tree.leaves), weights[tree.index]) for tree in trees])

    def nodes(self, tree: Tree) -> Nodes:
        """Return a tree as arrays; the thresholds of splits on categories are not set."""
        content, n_splits = self.model["trees"][tree.index], len(tree.splits)
        number = {node: i for i, node in enumerate(tree.splits)}
        number |= {node: n_splits + i for i, node in enumerate(tree.leaves)}
        values = np.array([content["split_conditions"][node] for node in tree.splits], dtype=np.float32)
        return Nodes.of_splits(
            left=[number[content["left_children"][node]] for node in tree.splits],
            right=[number[content["right_children"][node]] for node in tree.splits],
            feature=[content["split_indices"][node] for node in tree.splits],
            threshold=np.nextafter(values, np.float32(-np.inf)),  # smaller values go left
            missing_left=[bool(content["default_left"][node]) for node in tree.splits],
        )

    def category_splits(self, tree: Tree) -> Iterator[CategorySplit]:
        """Yield the splits on categories of a tree: named categories go right, others left."""
        content = self.model["trees"][tree.index]
        number = {node: i for i, node in enumerate(tree.splits)}
        parts = (content[f"categories_{name}"] for name in ("nodes", "segments", "sizes"))
        for node, begin, size in zip(*parts, strict=True):
            if node in number:
                named, low = content["categories"][begin : begin + size], bool(content["default_left"][node])
                yield CategorySplit(number[node], content["split_indices"][node], tuple(named), False, low)


class XGBoostLeaves(Access):
    """Values of the leaves in the order of :meth:`Document.trees`, (n_leaves,) or (n_leaves, n_scores)."""

    def read(self, owner: Any) -> np.ndarray:
        document = document_of(owner)
        values = [values[begin:end] for values, begin, end in self._entries(document)]
        shape = (-1, document.n_scores) if document.has_vectors else (-1,)
        return np.array(values, dtype=np.float64).reshape(shape)

    def write(self, owner: Any, value: np.ndarray) -> None:
        document = document_of(owner)
        for (values, begin, end), own in zip(self._entries(document), value, strict=True):
            values[begin:end] = np.ravel(own).astype(np.float32).astype(float).tolist()
        document.load_into(owner)

    @staticmethod
    def _entries(document: Document) -> Iterator[tuple[list[float], int, int]]:
        """Yield the list with the values of each leaf, and their begin and end."""
        size = document.n_scores
        for tree in document.trees():
            content = document.model["trees"][tree.index]
            for leaf in tree.leaves:
                if document.has_vectors:
                    row = content["right_children"][leaf]
                    yield content["leaf_weights"], row * size, (row + 1) * size
                else:
                    yield content["split_conditions"], leaf, leaf + 1


@dataclass(frozen=True)
class XGBoostWeights(Access):
    """Rows of the weights of a linear booster, (n_features + 1, n_scores); the last are intercepts."""

    rows: slice

    def _table(self, document: Document) -> np.ndarray:
        return np.array(document.model["weights"], dtype=np.float64).reshape(-1, document.n_scores)

    def read(self, owner: Any) -> np.ndarray:
        return self._table(document_of(owner))[self.rows].copy()

    def write(self, owner: Any, value: np.ndarray) -> None:
        document = document_of(owner)
        table = self._table(document)
        table[self.rows] = value
        document.model["weights"] = table.astype(np.float32).astype(float).ravel().tolist()
        document.load_into(owner)


class XGBoostBaseScore(Access):
    """Initial raw scores, of shape (1 or n_scores,)."""

    def read(self, owner: Any) -> np.ndarray:
        document = document_of(owner)
        text = document.sizes["base_score"].strip("[]")
        value = np.array([np.float32(number) for number in text.split(",")], dtype=np.float64)
        if document.objective in LOGITS:
            return np.log(value) - np.log1p(-value)
        return np.log(value) if document.objective in LOGARITHMS else value

    def write(self, owner: Any, value: np.ndarray) -> None:
        document = document_of(owner)
        if document.objective in LOGITS:
            value = 1 / (1 + np.exp(-value))
        elif document.objective in LOGARITHMS:
            value = np.exp(value)
        text = ",".join(f"{np.float32(number):.9g}" for number in value)
        in_brackets = document.sizes["base_score"].startswith("[")
        document.sizes["base_score"] = f"[{text}]" if in_brackets else text
        document.load_into(owner)
