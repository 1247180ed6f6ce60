"""A small student of a large teacher: ``distill``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..comparison.evidence import bounded
from .files import File, answer_metrics, check_samples, label_columns, split_samples
from .lessons import Answers, Lesson
from .objectives import tempered, training_options
from .results import Compressed, report
from .teachers import Teachers, cross_fitted_answers

__all__ = ["distill"]

#: Shares of the teacher that are compared if alpha is "auto", and the weight of labels in the loss.
SHARES, LABELS = np.linspace(0, 1, 21), 0.5
#: Temperatures that are compared to calibrate answers, and parts of the samples that networks are trained on.
TEMPERATURES, FOLDS = np.geomspace(0.25, 2.0, 19), 5


def distill(
    teacher: Any,
    student: Any,
    X: Any,
    y: Any = None,
    *,
    temperature: float = 1.0,
    alpha: float | str = "auto",
    extra: float = 3.0,
    hints: Mapping[str, str] | None = None,
    cross_fit: int = 3,
    held_out: Any = 0.3,
    max_iter: int = 100,
    batch_size: int = 64,
    eta0: float = 3e-3,
    random_state: int = 0,
) -> Compressed:
    """Return a student that is trained on the answers of a teacher.

    A classifier learns probabilities: the loss is ``alpha * T**2 * H(p_T, q_T) + (1 - alpha) * H(y, q)``,
    with the cross entropy H of the probabilities p of the teacher and q of the student, at the temperature T.
    A regressor learns ``alpha`` times the teacher's prediction plus ``1 - alpha`` times the label; without
    labels, all columns that the teacher predicts, such as quantiles.

    The teacher's answers for the samples of X are those that it would give had it not seen them: members of
    bagged ensembles answer for samples that they have not drawn, and other estimators are fitted again on
    parts of X. With labels, probabilities for such samples are calibrated by a temperature.

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
    temperature : float, default=1.0
        Temperature T of a classifier trained by gradient.
    alpha : float or "auto", default="auto"
        Share of the teacher. With ``"auto"``, five students learn four fifths of the labels alone, and p is a
        mean of teacher and students in which the teacher has the share with the lowest loss on samples that
        neither has seen; labels have the weight 1/2. Five that learn all labels answer for drawn samples.
    extra : float, default=3.0
        Number of samples that are drawn between neighbours, with noise, for the teacher to answer, per sample
        of X; at least 5,000 in all, unless it is 0. Boosting takes more than forests.
    hints : dict of str to str, default=None
        Tensors of the ONNX file of the student, and those of the ONNX file of the teacher that they learn, by
        their mean squared distance; both have equal sizes.
    cross_fit : int, default=3
        Number of parts of X for a teacher that is fitted again; 0 if it has not seen X.
    held_out : float or tuple, default=0.3
        Share of X that scores are measured on, or the samples ``(X, y)``.
    max_iter, batch_size, eta0 : int, int and float
        Largest number of epochs, size of batches and first rate of Adam. Students of labels alone, without
        drawn samples, may take as many updates.
    random_state : int, default=0
        Seed.

    Returns
    -------
    Compressed
        ``model`` is the fitted student of scikit-learn, or None for an ONNX file, and ``onnx`` its file.
        ``facts`` has the fidelity on the held-out samples with intervals: ``"agreement"`` and ``"kl"``, the
        Kullback-Leibler divergence, or ``"fidelity r2"``; the share ``"alpha"`` of the teacher; and
        ``"calibration"``, the temperature of its answers.

    Raises
    ------
    ValueError
        If there are no samples, if X or y has values that are not finite and that the models do not take,
        for an unknown size or option, or for teachers with different classes.

    References
    ----------
    Hinton, G., Vinyals, O. and Dean, J., "Distilling the knowledge in a neural network", 2015. Romero, A. et
    al., "FitNets: hints for thin deep nets", ICLR 2015. Dao, T. et al., "Knowledge distillation as
    semiparametric inference", ICLR 2021. Guo, C. et al., "On calibration of modern neural networks", 2017.

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
    check_samples(X, y, held_out)
    teachers = Teachers(teacher if isinstance(teacher, list | tuple) else [teacher], X, y)
    options = training_options(max_iter, batch_size, eta0, random_state)
    lesson = Lesson(teachers, student, float(temperature), float(extra), options, dict(hints or {}))
    if lesson.hints and not (isinstance(teachers.models[0], File) and lesson.is_file):
        raise ValueError("hints name tensors of ONNX files: teacher and student must be files.")
    if not lesson.is_file:
        lesson.model(X)  # before anything is computed
    known, is_unseen = teachers.unseen(X, y, cross_fit, random_state)
    width = None if y is None else label_columns(y, teachers.classes).shape[1]
    if width not in (None, known.shape[1]):
        raise ValueError(
            f"y has {width} numbers per sample, the teacher answers {known.shape[1]}: leave y out."
        )
    (X_fit, y_fit, own), (X_test, y_test, *_) = split_samples(X, y, held_out, random_state, known)
    answers, old = teachers.answers(X_test), teachers.files(X_test)
    y_test = teachers.labels(answers) if y_test is None else y_test
    before = answer_metrics(answers, y_test, teachers.classes)
    taught, facts = _prepared(lesson, X_fit, y_fit, own, alpha, is_unseen)
    model, file, transform = lesson.taught(X_fit, taught)
    new, X_new = File(file), transform(X_test)
    facts |= teachers.fidelity(new, X_new, answers, random_state)
    if teachers.classes is not None and not new.classifies:  # a file of scores numbers the classes
        y_test = label_columns(y_test, teachers.classes).argmax(axis=1)
    return report(old, new, (X_new, y_test), random_state, before, {}, facts, model)


def _prepared(
    lesson: Lesson, X: Any, y: Any, own: np.ndarray, alpha: float | str, is_unseen: bool
) -> tuple[Answers, dict[str, Any]]:
    """Return what is taught: answers of the teacher, and of networks trained on labels."""
    teachers, seed = lesson.teachers, lesson.options["random_state"]
    if y is None:
        return Answers(own, own, teachers.answers), {"alpha": 1.0}
    labels, heat = label_columns(y, teachers.classes), 1.0
    if teachers.classes is not None and is_unseen:
        heat = min(TEMPERATURES, key=lambda T: _loss(teachers, tempered(own, T), labels))
        own = tempered(own, heat)

    def answered(X: Any) -> np.ndarray:
        return teachers.answers(X) if heat == 1 else tempered(teachers.answers(X), heat)

    facts: dict[str, Any] = {"calibration": float(heat)}
    if alpha != "auto":
        return Answers(own, labels, answered, float(alpha), float(alpha)), facts | {"alpha": alpha}

    def peer(X: Any, y: Any, number: int = 0) -> Any:
        """Return the answers of a student that learns the labels alone."""
        shown = label_columns(y, teachers.classes)
        one = replace(lesson, options={**lesson.options, "random_state": seed + number})
        _, file, transform = one.taught(X, Answers(shown, shown, answered, 0.0, 0.0))
        return lambda X: teachers.of_model(File(file), transform(X))

    theirs = cross_fitted_answers(peer, X, y, teachers.classes is not None, FOLDS, seed)
    if theirs is None:  # a class with few samples
        return Answers(own, labels, answered, 1 - LABELS), facts | {"alpha": 1 - LABELS}
    share = min(SHARES, key=lambda a: _loss(teachers, a * own + (1 - a) * theirs, labels))
    count = (1 if lesson.solver else FOLDS) if share < 1 else 0
    parts = [(share, answered), *(((1 - share) / count, peer(X, y, i + 1)) for i in range(count))]

    def mixed(X: Any) -> np.ndarray:
        return np.asarray(sum(weight * of(X) for weight, of in parts if weight))

    own = share * own + (1 - share) * theirs
    return Answers(own, labels, mixed, 1 - LABELS), facts | {"alpha": float(share)}


def _loss(teachers: Teachers, answers: np.ndarray, labels: np.ndarray) -> float:
    """Return the mean bounded log loss of probabilities, or the mean squared error of numbers."""
    if teachers.classes is None:
        return float(np.square(answers - labels).mean())
    with np.errstate(divide="ignore"):
        return float(bounded(-np.log((answers * labels).sum(axis=1))).mean())
