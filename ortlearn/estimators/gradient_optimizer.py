"""Train with one graph."""

from __future__ import annotations

from .base import BaseOrtGradientEstimator

__all__ = ["OrtGradientOptimizer"]


class OrtGradientOptimizer(BaseOrtGradientEstimator):
    """Train a scikit-learn model or an ONNX graph by gradient; a step is one ONNX graph.

    Forward, loss, penalty, gradient and update are one graph, which takes the whole data set once
    and the numbers of a batch's rows at every call.

    Parameters
    ----------
    estimator : estimator, onnx.ModelProto, bytes, str or os.PathLike
        What to train: a scikit-learn estimator or pipeline, or an ONNX model. It is never changed.
        An estimator that is not fitted is cloned and fitted to get its shapes; with
        ``warm_start=False`` and all learned weights trained, by as little work as possible.
    weights_to_train : str or list of str, default=None
        Names or patterns of the weights to train, such as ``"coef*"``: names in the ONNX graph, fitted
        attributes (``"estimators_[3].coef_"``), step and attribute (``"pca.mean_"``), or a step
        (``"pca"``, ``"columns__pca"`` inside of another one) for all of its weights. ``*`` stands for
        any text and ``?`` for any character; brackets are indices (``"coefs_[*]"``). In an ONNX file they
        may also name nodes, operators (``"Conv"``) and layers (``"/encoder/layer.0"``,
        ``"encoder.layer.*"``), and take the learned weights there. What comes after the scores is never
        meant by a wildcard, nor are constants of formulas and running statistics of a batch normalization,
        only by its name. By default what the last step has learned, not the
        parameters of preprocessing. What is not named stays as it is.
    learning_loss : str or BaseLoss, default="auto"
        Loss; ``"auto"`` is the one that the model minimises (quantile, Huber, Poisson, hinge, ...), else
        ``"squared_error"`` for a regressor and ``"log_loss"`` for a classifier.
    learning_rate : str, float or BaseLearningRate, default="auto"
        Schedule and update; a number is SGD with that ``eta0``. ``"LBFGS"`` is a solver, which takes all
        rows at once: ``batch_size`` and ``shuffle`` have no effect then, ``max_iter`` counts iterations.
        ``"auto"`` is safe for features and labels of any scale: ``"LBFGS"`` for linear models and up to
        10,000 rows, ``"Adam"`` on standardised features otherwise, in ``partial_fit``, and for images and
        sequences. Models that could follow the noise of few rows keep some apart to know when to stop;
        training from a model's own weights is held back as far as cross-validation asks for.
    learning_penalty : str, BasePenalty, dict or None, default="auto"
        Penalty on the weights; ``"auto"`` is that of the model, so that ``alpha`` or ``C`` mean what they
        do in scikit-learn, None no penalty. A dictionary has penalties by names of weights, as
        ``weights_to_train`` takes them: ``{"coefs_[0]": "l1", "pca": L2Penalty(0.1)}``.
    max_iter : int, default=100
        Epochs, or iterations of a solver; the schedules of some rates span them.
    batch_size : int, default=10
        Rows of a batch; the last one of an epoch may be short.
    shuffle : bool, default=True
        Whether rows come in a new random order every epoch.
    random_state : int, RandomState instance or None, default=None
        Draws fresh weights and the order of rows.
    warm_start : bool, default=False
        Whether the first ``fit`` starts from the model's own weights and a later one from the last
        solution; otherwise every ``fit`` starts from fresh weights. With ``learning_rate="auto"``, gradient
        boosting also takes trees in that are fitted on the new samples, where samples that are left out of
        them are predicted better then.
    keep_better : bool, default=True
        Whether ``fit`` from a model's own weights goes back to them, with a warning, where the trained ones
        are no better: on rows that were not trained on, which flexible models keep apart, or by the training
        objective.
    gradient : {"auto", "rules", "ort"}, default="auto"
        What builds the gradient: our own rules, onnxruntime-training's C++ builder, or our rules
        where they know every operator, else the builder where it is installed.
    device : str or (str, dict), default="cpu"
        ``"cpu"``, ``"cuda"`` or ``"cuda:1"``, or an execution provider of onnxruntime, built in or a plugin,
        such as ``"openvino"``; a pair has options of the provider, too.
    n_jobs : int, default=None
        Threads of onnxruntime: None is one, -1 all cores. A training on batches whose products are too small
        for several takes one.
    validation_every : float or int, default=0.1
        Epochs between two validations, as a share of ``max_iter`` (float) or a number (int).
    verbose : int, default=0
        Whether to show a progress bar; calls of ``partial_fit`` share one line.
    exc : bool, default=True
        Whether a loss that is not finite raises ConvergenceError; otherwise a warning, and the last
        finite weights are kept.
    dtype : {"float32", "float64"}, default="float32"
        Type a scikit-learn estimator is converted to and trained in.
    hoist : bool, default=True
        Whether what depends only on X and on weights that are not trained, such as preprocessing, is
        computed once before the training. Results of more than 2 GiB that are larger than X are computed
        batch by batch all the same.
    early_stopping : bool, default=False
        Whether to stop once what ``scoring`` names no longer gets better on rows that are not trained
        on, ``X_val`` or ``validation_fraction`` of X, and to keep the best weights.
    validation_fraction : float, default=0.1
        Share of the rows that ``early_stopping`` splits off where no ``X_val`` is given, classes in
        their shares; the same share is held out of flexible models, to know when to stop or which weights
        are better.
    n_iter_no_change : int, default=10
        Validations (epochs without ``early_stopping``) that get better by no more than ``tol``, after
        which the training stops.
    tol : float, default=None
        Least change that counts, 1e-4 by default with ``early_stopping``. Without it, the training
        loss is watched where a ``tol`` is given, and all epochs are run where none is, unless
        ``learning_rate="auto"`` holds rows out.
    scoring : str, callable or None, default="loss"
        What ``early_stopping`` watches: ``"loss"`` is the training's own loss, None the ``score`` of
        the estimator, others are scorers of scikit-learn. They give ``validation_scores_``, ``"loss"``
        the estimator's ``score``.
    average : bool or int, default=False
        Whether the trained weights are the mean of those after each update (averaged SGD); with a
        number, averaging begins with the update that sees the row of that number.
    clip_norm : float, default=None
        Largest Euclidean norm of the gradient of all trained weights together; longer ones are scaled.
    clip_value : float, default=None
        Largest absolute value of an entry of the gradient, cut before the norm.
    class_weight : dict, list of dict, "balanced", "auto" or None, default="auto"
        Weights of classes, by which ``sample_weight`` is multiplied; one dictionary for each output.
        ``"auto"`` are those of the model.
        ``"balanced"`` is ``n / (k * n_c)`` for a class of ``n_c`` of ``n`` rows, by their weights, and
        k classes. The first fit of an estimator that is not fitted goes by its own.
    loss_output_name, label_name, weight_name : str, default="loss", "label" and "sample_weight"
        An ONNX model with such an output and a label input is trained on its own loss; an input for
        the weights of the rows takes ``sample_weight``.
    straight_through : bool, default=False
        Whether quantisation, and casts to integers and back, between a weight and the loss are
        differentiated as if they did not round; by default they are an error. Weights that an ONNX model
        stores as integers in front of a DequantizeLinear are trained then, rounded in every step, and
        written back as integers of the same scale.
    lora : LoRA, int or None, default=None
        Low-rank adapters of an ONNX model, trained in the place of its weights
        (:class:`ortlearn.onnx_files.LoRA`); a number is their rank. Of its weights, only those that
        ``weights_to_train`` names are trained then; these get no adapter.
    output_name : str, default=None
        Output of an ONNX model that is trained and predicted, where it has several; an output of labels that
        is computed by the same weights goes with it. By default it is that of a classifier under a
        sigmoid or a softmax, and the first one with numbers of a regressor.

    Attributes
    ----------
    onnx_ : onnx.ModelProto
        Trained model, for inference, its weights under the names they came with.
    trained_coef_ : dict of str to ndarray
        Trained weights by name, as the graph holds them: ``weights_to_train_`` tells what of an
        attribute that is.
    weights_to_train_ : dict of str to str
        Where each trained weight comes from, by its name: ``"ridge: coef_"`` for an attribute of a
        step, ``"coef_"`` where there are no steps, ``"log(weights_)"`` or ``"1 / scale_"`` where the
        graph holds that of the attribute, empty where it is not known.
    history_ : list of dict
        Of each epoch: ``epoch`` (from 1), ``loss`` (mean, penalty included), ``validation_loss``,
        ``validation_score``, ``rate`` and ``seconds`` (without the validation); None where nothing was
        measured. ``pandas.DataFrame(model.history_)`` makes a table of it.
    train_losses_ : list of float
        Mean loss of each epoch, penalty included.
    validation_losses_, validation_scores_ : list of float
        Mean loss, without penalty, and score of each validation.
    n_iter_ : int
        Epochs run.
    start_kept_ : bool
        Whether the last ``fit`` went back to the weights it started from.
    best_epoch_ : int
        Epoch whose weights were kept, from 1; with ``early_stopping`` only.
    stopped_ : bool
        Whether ``early_stopping`` says that the calls of ``partial_fit`` have come to their end.
    loss_, penalty_, learning_rate_ : BaseLoss, BasePenalty, BaseLearningRate
        Plugins that were used.
    classes_ : ndarray of shape (n_classes,)
        Classes, of a classifier only.
    coef_, intercept_, feature_importances_ : ndarray
        Of the scikit-learn model with the trained weights (:meth:`to_sklearn`), where it has them:
        pipelines and ONNX models have none. Importances of features are those of the splits of trees,
        which training does not change.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Their names, where X has some.

    See Also
    --------
    OrtGradientForwardBackwardOptimizer : The same with forward and backward apart.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn.estimators import OrtGradientOptimizer
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = Ridge().fit(X[:300], y[:300])
    >>> X_new, y_new = X[300:330], y[300:330] + 50  # labels have drifted
    >>> trained = OrtGradientOptimizer(model, warm_start=True, random_state=0).fit(X_new, y_new)
    >>> model.score(X[330:], y[330:] + 50) < 0.1 < 0.3 < trained.score(X[330:], y[330:] + 50)
    True
    """

    _step_name = "EpochStep"
