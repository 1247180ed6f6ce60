"""A small student of a large teacher: ``distill``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _num_samples

from ..estimators import OrtGradientOptimizer
from ..evaluation.bootstrap import Bootstrap
from ..exceptions import OrtlearnError
from ..graphs import extract_model
from ..learning_rates import LearningRateAdam
from ..onnx_files.loading import is_onnx_source, load_onnx
from ..preprocessing.initial_fit import fit_clone, is_fitted
from ..quiet import quiet
from ..trainable.conversion import to_trainable
from ..trainable.from_estimator import write_weights
from .files import File, answer_metrics, as_file, split_samples
from .objectives import ScoreGraph, Term, fit_answers, tempered
from .results import Compressed, report
from .students import more_samples, student_of_size

__all__ = ["distill"]

#: Shares of the teacher's answers that are tried if alpha is "auto".
ALPHAS = (0.5, 0.9, 1.0)


def distill(
    teacher: Any,
    student: Any,
    X: Any,
    y: Any = None,
    *,
    temperature: float = 2.0,
    alpha: float | str = "auto",
    extra: float = 3.0,
    hints: Mapping[str, str] | None = None,
    held_out: Any = 0.3,
    max_iter: int = 100,
    batch_size: int = 64,
    eta0: float = 3e-3,
    random_state: int = 0,
) -> Compressed:
    """Return a student that is trained on the answers of a teacher.

    A classifier learns probabilities: the loss is ``alpha * T**2 * H(p_T, q_T) + (1 - alpha) * H(y, q)``,
    with the cross entropy H of the probabilities p of the teacher and q of the student, at the temperature T.
    A regressor learns ``alpha`` times the teacher's prediction plus ``1 - alpha`` times the label.

    Parameters
    ----------
    teacher : estimator, onnx.ModelProto, bytes, str, os.PathLike, or list of them
        Fitted model with ``predict_proba`` or ``predict``, or an ONNX file. Answers of several are averaged.
    student : estimator, str, onnx.ModelProto, bytes or os.PathLike
        Estimator that is trained here, fitted or not; an ONNX file, whose weights are the start; or a size:
        ``"linear"``, ``"mlp:64,32"`` (units of hidden layers) or ``"trees:20x4"`` (iterations and depth of
        boosting).
    X : array-like or frame
        Samples, as the teacher takes them; they need no labels.
    y : array-like, default=None
        Labels. Without them only the teacher is learned from, and scores are measured on its answers.
    temperature : float, default=2.0
        Temperature T of a classifier trained by gradient.
    alpha : float or "auto", default="auto"
        Share of the teacher; ``"auto"`` tries 0.5, 0.9 and 1 on a fifth of the samples.
    extra : float, default=3.0
        Number of samples that are drawn between neighbours, with noise, for the teacher to answer, per sample
        of X.
    hints : dict of str to str, default=None
        Tensors of the ONNX file of the student, and those of the ONNX file of the teacher that they learn, by
        their mean squared distance; both have equal sizes.
    held_out : float or tuple, default=0.3
        Share of X that scores are measured on, or the samples ``(X, y)``.
    max_iter, batch_size, eta0 : int, int and float
        Largest number of epochs, size of batches and first rate of Adam.
    random_state : int, default=0
        Seed.

    Returns
    -------
    Compressed
        ``model`` is the fitted student of scikit-learn, or None for an ONNX file, and ``onnx`` its file.
        ``facts`` has the fidelity on the held-out samples with intervals: ``"agreement"`` and ``"kl"``, the
        Kullback-Leibler divergence, or ``"fidelity r2"``; and ``"alpha"``.

    References
    ----------
    Hinton, G., Vinyals, O. and Dean, J., "Distilling the knowledge in a neural network", 2015. Romero, A. et
    al., "FitNets: hints for thin deep nets", ICLR 2015.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from ortlearn.compress import distill
    >>> X, y = load_wine(return_X_y=True)
    >>> forest = RandomForestClassifier(100, random_state=0).fit(X[::2], y[::2])
    >>> found = distill(forest, "mlp:8", X[::2], y[::2], alpha=0.9, held_out=(X[1::2], y[1::2]), max_iter=30)
    >>> type(found.model[-1]).__name__, found.n_bytes["new"] < 0.1 * found.n_bytes["old"]
    ('MLPClassifier', True)
    """
    if not temperature > 0:
        raise ValueError(f"temperature={temperature!r} must be positive.")
    if alpha != "auto" and not (isinstance(alpha, int | float) and 0 <= alpha <= 1):
        raise ValueError(f'alpha={alpha!r} must be "auto" or between 0 and 1.')
    (X_fit, y_fit), (X_test, y_test) = split_samples(X, y, held_out, random_state)
    teachers = _Teachers(teacher if isinstance(teacher, list | tuple) else [teacher], X_test)
    options = {"max_iter": max_iter, "batch_size": batch_size, "random_state": random_state}
    lesson = _Lesson(teachers, student, float(temperature), float(extra), hints, options, eta0)
    tried: dict[float, tuple[float, ...]] = {}
    if y_fit is None:
        alpha = 1.0
    elif alpha == "auto":
        inner, outer = split_samples(X_fit, y_fit, 0.2, random_state)
        for value in ALPHAS:
            made = lesson.taught(*inner, value)
            tried[value] = tuple(_goodness(File(made[1]), made[2](outer[0]), outer[1]))
        alpha = max(tried, key=lambda value: tried[value])
    model, file, transform = lesson.taught(X_fit, y_fit, float(alpha))
    new, X_new = File(file), transform(X_test)
    answers = teachers.answers(X_test)
    y_test = teachers.labels(answers) if y_test is None else y_test
    facts = _fidelity(new, X_new, teachers, answers, random_state) | {"alpha": alpha}
    old = teachers.files(X_test)
    before = answer_metrics(answers, y_test, teachers.classes)
    return report(old, new, (X_new, y_test), random_state, before=before, facts=facts, model=model)


def _goodness(file: File, X: Any, y: Any) -> list[float]:
    """Return the score, and minus the log loss or the error for ties."""
    found = [metric(np.ones(len(y))) for metric in file.metrics(X, y).values()]
    return [found[0], *(-value for value in found[1:])]


class _Teachers:
    """Teachers, whose answers are averaged."""

    def __init__(self, teachers: Sequence[Any], X: Any) -> None:
        if not teachers:
            raise ValueError("teacher is an empty list: pass at least one model.")
        self.models = [File(load_onnx(one)) if is_onnx_source(one) else one for one in teachers]
        found = [self._classes_of(model, X) for model in self.models]
        if any(not np.array_equal(np.asarray(one), np.asarray(found[0])) for one in found):
            raise ValueError("The teachers have different classes, or are classifiers and regressors.")
        self.classes = found[0]

    @staticmethod
    def _classes_of(model: Any, X: Any) -> np.ndarray | None:
        """Return the classes; indices for an output of probabilities, None for a regressor."""
        if isinstance(model, File):
            if model.classifies:
                return model.reader.classes
            found = model.matrix(X)
            is_share = (
                found.shape[1] > 1 and found.min() >= 0 and np.allclose(found.sum(axis=1), 1, atol=1e-3)
            )
            return np.arange(found.shape[1]) if is_share else None
        return np.asarray(model.classes_) if is_classifier(model) else None

    def answers(self, X: Any) -> np.ndarray:
        """Return mean probabilities, or predictions of shape (n_samples, k)."""
        return np.asarray(np.mean([self._answers(model, X) for model in self.models], axis=0))

    def _answers(self, model: Any, X: Any) -> np.ndarray:
        if isinstance(model, File):
            found = model.matrix(X)
            if self.classes is not None and not np.allclose(found.sum(axis=1), 1, atol=1e-3):
                return tempered(np.exp(found - found.max(axis=1, keepdims=True)), 1.0)
            return found
        if self.classes is None:
            return np.asarray(model.predict(X)).reshape(_num_samples(X), -1)
        if hasattr(model, "predict_proba"):
            return np.asarray(model.predict_proba(X))
        return (np.asarray(model.predict(X))[:, None] == self.classes).astype(np.float64)

    def labels(self, answers: np.ndarray) -> np.ndarray:
        """Return the predicted classes or numbers."""
        if self.classes is not None:
            return np.asarray(self.classes[answers.argmax(axis=1)])
        return answers[:, 0] if answers.shape[1] == 1 else answers

    def files(self, X: Any) -> list[tuple[File, Any]]:
        """Return the files of the teachers with the samples that they take; none without an ONNX form."""
        try:
            found = [as_file(m.model if isinstance(m, File) else m, X, fused=True) for m in self.models]
        except OrtlearnError:
            return []
        return [(File(file), samples) for file, samples in found]


class _Lesson:
    """What the student is taught with, for any share of the teacher."""

    def __init__(
        self,
        teachers: _Teachers,
        student: Any,
        temperature: float,
        extra: float,
        hints: Mapping[str, str] | None,
        options: dict[str, Any],
        eta0: float,
    ) -> None:
        self.teachers, self.student, self.options = teachers, student, options
        self.temperature, self.extra, self.hints, self.eta0 = temperature, extra, dict(hints or {}), eta0
        if self.hints and not (isinstance(teachers.models[0], File) and _is_file(student)):
            raise ValueError("hints name tensors of ONNX files: teacher and student must be files.")

    def taught(self, X: Any, y: Any, alpha: float) -> tuple[Any, ModelProto, Any]:
        """Return the student, its file, and the function from X to the samples of the file."""
        samples, answers, truth = self._samples(X, y)
        if self.teachers.classes is None and not _is_file(self.student):
            return self._regressor(samples, alpha * answers + (1 - alpha) * truth)
        if isinstance(self.student, str) and self.student.startswith("trees"):
            return self._trees(samples, alpha * answers + (1 - alpha) * truth)
        return self._network(samples, answers, truth, alpha)

    def _samples(self, X: Any, y: Any) -> tuple[Any, np.ndarray, np.ndarray]:
        """Return the samples and those drawn, the teacher's answers, and labels, or answers without them."""
        count = int(self.extra * _num_samples(X)) if np.ndim(X) == 2 else 0
        answers = self.teachers.answers(X)
        classes, values = self.teachers.classes, np.asarray(y)
        if y is None:
            truth = answers
        else:
            truth = values.reshape(len(values), -1) if classes is None else values[:, None] == classes
        if not count:
            return X, answers, truth.astype(np.float64)
        drawn = more_samples(X, count, check_random_state(self.options["random_state"]))
        more = self.teachers.answers(drawn)
        return _joined(X, drawn), np.vstack([answers, more]), np.vstack([truth, more]).astype(np.float64)

    def _start(self, X: Any, y: np.ndarray) -> Any:
        """Return the fitted student, as cheaply as its shapes can be had."""
        model = self.student
        if isinstance(model, str):
            seed = self.options["random_state"]
            model = student_of_size(model, X, self.teachers.classes is not None, seed)
        if not isinstance(model, BaseEstimator):
            raise ValueError(
                f"student must be an estimator, an ONNX file or a size, not {type(model).__name__}."
            )
        if is_fitted(model):
            return model
        fitted = fit_clone(model, X, y, shapes_only=True, random_state=check_random_state(0))
        plain = {k: v for k, v in model.get_params().items() if isinstance(v, int | float | str | tuple)}
        return fitted.set_params(**plain)  # not those of a single iteration

    def _network(self, X: Any, answers: np.ndarray, truth: np.ndarray, alpha: float) -> tuple:
        """Return a student whose graph is trained on soft labels, or an ONNX file on numbers."""
        is_file = _is_file(self.student)
        start = load_onnx(self.student) if is_file else self._start(X, self.teachers.labels(answers))
        classifies = self.teachers.classes is not None
        forced = "classification" if is_file and classifies else None
        trainable = to_trainable(start, X=None if is_file else X, forced_task=forced)
        steps = trainable.entry.sklearn_steps
        graph, T = ScoreGraph.of(trainable), self.temperature if classifies else 1.0
        terms = [Term(alpha, T), Term(1 - alpha)]
        parts = [graph.targets(tempered(answers, T) if classifies else answers), graph.targets(truth)]
        used = [i for i, term in enumerate(terms) if term.weight > 0]
        labels, hints = [parts[i] for i in used], []
        X = X if steps is None else steps.transform(X)
        for own, other in self.hints.items():
            file = self.teachers.models[0]
            found = File(extract_model(file.reader.model, [other])).run(X)[other]
            wanted = found.reshape(_num_samples(X), -1)
            made = File(extract_model(start, [own])).run(_safe_indexing(X, np.arange(1)))[own]
            if made.size != wanted.shape[1]:
                raise ValueError(
                    f"hints: {own!r} has {made.size} numbers per sample, and {other!r} of the teacher "
                    f"{wanted.shape[1]}: choose tensors of equal size."
                )
            labels.append(wanted)
            hints.append((own, wanted.shape[1], 1.0))
        names = {trainable.original_names[name]: name for name in trainable.trained}
        loss = graph.with_loss(graph.model, [terms[i] for i in used], hints)
        rate = LearningRateAdam(eta0=self.eta0, schedule="cosine")
        found, _ = fit_answers(loss, X, np.hstack(labels), list(names), learning_rate=rate, **self.options)
        if is_file:
            return None, trainable.with_weights({names[name]: found[name] for name in names}), lambda X: X
        return self._finished(write_weights(start, trainable, {name: found[name] for name in names}), X)

    def _regressor(self, X: Any, y: np.ndarray) -> tuple:
        """Return a student trained on numbers."""
        y = y[:, 0] if y.shape[1] == 1 else y
        rate = LearningRateAdam(eta0=self.eta0, schedule="cosine")
        options = {"learning_rate": rate, "early_stopping": True, **self.options}
        model = self._start(X, y)
        if isinstance(self.student, str) and not self.student.startswith("mlp"):
            return self._finished(clone(model).fit(X, y), X)
        with quiet(ConvergenceWarning):
            return self._finished(OrtGradientOptimizer(model, **options).fit(X, y).to_sklearn(), X)

    def _trees(self, X: Any, shares: np.ndarray) -> tuple:
        """Return boosting that is fitted on each sample once per class, weighted by its share."""
        rows, columns = np.nonzero(shares > 1e-3)
        assert self.teachers.classes is not None
        model = student_of_size(self.student, X, True, self.options["random_state"])
        weights = {f"{model.steps[-1][0]}__sample_weight": shares[rows, columns]}
        return self._finished(
            model.fit(_safe_indexing(X, rows), self.teachers.classes[columns], **weights), X
        )

    def _finished(self, model: Any, X: Any) -> tuple:
        """Return a fitted estimator with its file."""
        file, _ = as_file(model, _safe_indexing(X, np.arange(1)), fused=True)
        return model, file, lambda samples: as_file(model, samples)[1]


def _is_file(student: Any) -> bool:
    """Return whether a student is an ONNX file; texts are sizes unless they end in .onnx."""
    return is_onnx_source(student) and not (isinstance(student, str) and not student.endswith(".onnx"))


def _joined(X: Any, drawn: Any) -> Any:
    if hasattr(X, "iloc"):
        import pandas as pd

        return pd.concat([X, drawn], ignore_index=True)
    return np.concatenate([np.asarray(X), drawn])


def _fidelity(new: File, X: Any, teachers: _Teachers, answers: np.ndarray, seed: int) -> dict[str, Any]:
    """Return agreement and divergence, or R2, of a student's answers from those of the teacher."""
    labels = teachers.labels(answers)
    if teachers.classes is None:
        found = {"fidelity r2": new.metrics(X, labels)["r2"]}
    else:
        own = new.matrix(X)
        shares = np.hstack([1 - own, own]) if own.shape[1] == 1 else own
        agree = (np.asarray(teachers.classes)[shares.argmax(axis=1)] == labels).astype(float)
        p, q = (np.clip(part, 1e-7, None) for part in (answers, shares))
        kl = (answers * np.log(p / q)).sum(axis=1)
        found = {
            "agreement": lambda weights: float(weights @ agree / weights.sum()),
            "kl": lambda weights: float(weights @ kl / weights.sum()),
        }
    both = Bootstrap(seed=seed).compare(found, found, np.ones(len(labels)))
    return {name: part["new"] for name, part in both.items()}
