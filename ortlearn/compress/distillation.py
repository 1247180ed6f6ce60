"""A small student of a large teacher: ``distill``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import ModelProto
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _num_samples

from ..estimators import OrtGradientOptimizer
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
from .teachers import Teachers

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
    teachers = Teachers(teacher if isinstance(teacher, list | tuple) else [teacher], X_test)
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
    facts = teachers.fidelity(new, X_new, answers, random_state) | {"alpha": alpha}
    old = teachers.files(X_test)
    before = answer_metrics(answers, y_test, teachers.classes)
    return report(old, new, (X_new, y_test), random_state, before=before, facts=facts, model=model)


def _goodness(file: File, X: Any, y: Any) -> list[float]:
    """Return the score, and minus the log loss or the error for ties."""
    found = [metric(np.ones(len(y))) for metric in file.metrics(X, y).values()]
    return [found[0], *(-value for value in found[1:])]


class _Lesson:
    """What the student is taught with, for any share of the teacher."""

    def __init__(
        self,
        teachers: Teachers,
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
            wanted = File(extract_model(file.reader.model, [other])).run(X)[other]
            wanted = wanted.reshape(_num_samples(X), -1)
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
    """Return samples followed by others."""
    if not hasattr(X, "iloc"):
        return np.concatenate([np.asarray(X), drawn])
    rows = np.arange(len(X) + len(drawn))
    result = X.iloc[rows % len(X)].reset_index(drop=True)
    for name in X.columns:
        result[name] = np.concatenate([X[name].to_numpy(), drawn[name].to_numpy()])
    return result.astype(X.dtypes.to_dict())
