"""Train with one graph."""

from __future__ import annotations

from .base import BaseOrtGradientEstimator

__all__ = ["OrtGradientOptimizer"]


class OrtGradientOptimizer(BaseOrtGradientEstimator):
    """Train a scikit-learn model or an ONNX graph by gradient; a step is one ONNX graph.

    Forward, loss, penalty, gradient and update are one graph, which takes the whole data set once
    and the indices of a batch at every call.

    Parameters
    ----------
    estimator : estimator, onnx.ModelProto, bytes, str or os.PathLike
        Model to train: a scikit-learn estimator or pipeline, or an ONNX model. It is not changed.
        An unfitted estimator is cloned and fitted to get its shapes; with ``warm_start=False``, and if all
        learned weights are trained, as cheaply as possible.
    weights_to_train : str or list of str, default=None
        Names or patterns of the weights to train, such as ``"coef*"``: names in the ONNX graph, fitted
        attributes (``"estimators_[3].coef_"``), step and attribute (``"pca.mean_"``), or a step
        (``"pca"``, ``"columns__pca"`` inside of another one) for all of its weights. ``*`` matches any text
        and ``?`` any character; brackets are indices (``"coefs_[*]"``). For an ONNX file, names of nodes,
        operators (``"Conv"``) and layers (``"/encoder/layer.0"``, ``"encoder.layer.*"``) select the learned
        weights there. Weights after the scores, constants of formulas and running statistics of a batch
        normalization are selected only by their exact names, not by wildcards. By default, the learned
        weights of the last step are trained, not the parameters of preprocessing. Other weights are frozen.
    learning_loss : str or BaseLoss, default="auto"
        Loss; ``"auto"`` is the loss that the model minimises (quantile, Huber, Poisson, hinge, ...), or else
        ``"squared_error"`` for a regressor and ``"log_loss"`` for a classifier.
    learning_rate : str, float or BaseLearningRate, default="auto"
        Schedule and update; a number is SGD with that ``eta0``. ``"LBFGS"`` is a solver, which uses all
        samples at once: ``batch_size`` and ``shuffle`` have no effect, and ``max_iter`` counts iterations.
        ``"auto"`` is safe for features and labels of any scale: ``"LBFGS"`` for linear models, for others up
        to 10,000 samples, and for trees and neighbours up to 100,000, and ``"Adam"`` on standardised features
        otherwise, in ``partial_fit``, and for images and sequences. Models that could overfit few samples
        hold some out to decide when to stop; training from a model's own weights is regularised towards them
        as far as cross-validation requires.
    learning_penalty : str, BasePenalty, dict or None, default="auto"
        Penalty on the weights; ``"auto"`` is the penalty of the model, so that ``alpha`` or ``C`` have the
        same effect as in scikit-learn; None is no penalty. A dictionary has penalties by names of weights, as
        ``weights_to_train`` takes them: ``{"coefs_[0]": "l1", "pca": L2Penalty(0.1)}``.
    max_iter : int, default=100
        Number of epochs, or of iterations of a solver; some schedules of learning rates depend on it.
    batch_size : int or "auto", default="auto"
        Number of samples in a batch; the last batch of an epoch may be smaller. ``"auto"`` is 10, and with
        ``learning_rate="auto"`` a hundredth of the samples, from 10 to 200.
    shuffle : bool, default=True
        Whether samples are shuffled before every epoch.
    random_state : int, RandomState instance or None, default=None
        Seed of fresh weights and of the order of samples.
    warm_start : bool, default=False
        Whether the first call starts from the model's own weights and a later ``fit`` from the last solution;
        otherwise every ``fit`` starts from fresh weights. With ``learning_rate="auto"``, gradient boosting
        also adds trees fitted on the new samples, and forests replace some trees by such ones, if this
        improves the predictions of held-out samples.
    keep_better : bool, default=True
        Whether ``fit`` from a model's own weights restores them, with a warning, if the trained weights are
        not better: on samples that flexible models hold out, or otherwise by the training objective.
    gradient : {"auto", "rules", "ort"}, default="auto"
        Gradient backend: ``"rules"`` and ``"auto"`` are the rules of ortlearn, ``"ort"`` is the C++ builder
        of onnxruntime-training, which ended with version 1.19.2, for graphs that it is known to be right on;
        other graphs raise a ``GradientError``.
    device : str or (str, dict), default="cpu"
        ``"cpu"``, ``"cuda"`` or ``"cuda:1"``, or an execution provider of onnxruntime, built in or a plugin,
        such as ``"openvino"``; a pair has options of the provider, too.
    n_jobs : int, default=None
        Number of threads of onnxruntime: None is one, -1 all cores. Training on batches that are too small to
        benefit from several threads uses one.
    validation_every : float or int, default=0.1
        Interval between two validations, as a share of ``max_iter`` (float) or a number of epochs (int).
    verbose : int, default=0
        Whether to show a progress bar; calls of ``partial_fit`` share one line.
    exc : bool, default=True
        Whether a loss that is not finite raises ConvergenceError. Otherwise it is a warning, and the last
        finite weights are kept.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Type in which a scikit-learn estimator is converted and trained. ``"auto"`` is float32, or float64 if
        float32 changes predictions of the fitted estimator, with a ``PrecisionWarning``.
    precompute : bool, default=True
        Whether to compute parts of the graph that depend only on X and on frozen weights, such as
        preprocessing, once before the training. Results that exceed 2 GiB and the size of X are computed for
        each batch. ``hoist`` is another name of this parameter.
    early_stopping : bool, default=False
        Whether to stop when ``scoring`` does not improve on validation samples, which are ``X_val`` or a
        ``validation_fraction`` of X, and to keep the best weights.
    validation_fraction : float, default=0.1
        Share of the samples that ``early_stopping`` holds out if ``X_val`` is not given, stratified by class.
        The same share is held out for flexible models, to decide when to stop and which weights are better.
    n_iter_no_change : int, default=10
        Number of consecutive validations (epochs without ``early_stopping``) that improve by no more than
        ``tol``, after which the training stops.
    tol : float, default=None
        Smallest change that counts as an improvement, 1e-4 by default with ``early_stopping``. Without
        ``early_stopping``, a given ``tol`` applies to the training loss; with None all epochs are run, unless
        ``learning_rate="auto"`` holds samples out.
    scoring : str, callable or None, default="loss"
        Criterion of ``early_stopping``: ``"loss"`` is the validation loss, None the ``score`` of the
        estimator, others are scorers of scikit-learn. ``validation_scores_`` has the values of the scorer;
        with ``"loss"``, those of ``score``.
    average : bool or int, default=False
        Whether the trained weights are the mean of the weights after each update (averaged SGD). With a
        number, averaging begins with the update that contains the sample of that number.
    clip_norm : float, default=None
        Largest Euclidean norm of the gradient of all trained weights; a larger gradient is scaled down.
    clip_value : float, default=None
        Largest absolute value of an element of the gradient, which is clipped before the norm.
    class_weight : dict, list of dict, "balanced", "auto" or None, default="auto"
        Weights of classes, by which ``sample_weight`` is multiplied; a list has one dictionary for each
        output. ``"auto"`` takes the class weights of the model. ``"balanced"`` is ``n / (k * n_c)`` for a
        class with ``n_c`` of ``n`` samples, counted by their weights, and k classes. The initial fit of an
        unfitted estimator uses the estimator's own class weights.
    loss_output_name, label_name, weight_name : str, default="loss", "label" and "sample_weight"
        An ONNX model with an output and a label input of these names is trained on its own loss; an input for
        sample weights gets ``sample_weight``.
    straight_through : bool, default=False
        Whether to differentiate quantisation, and casts to integers and back, between a weight and the loss
        as if they did not round; by default they are an error. Weights that an ONNX model stores as integers
        in front of a DequantizeLinear are then trained, rounded in every step, and stored as integers of the
        same scale.
    lora : LoRA, int or None, default=None
        Low-rank adapters of an ONNX model, which are trained instead of its weights
        (:class:`ortlearn.onnx_files.LoRA`); a number is their rank. Weights that ``weights_to_train`` names
        are trained, too, without an adapter.
    output_name : str, default=None
        Output of an ONNX model to train and to predict, if it has several; an output of labels that depends
        on the same weights belongs to it. By default it is the output of a sigmoid or a softmax for a
        classifier, and the first output of numbers for a regressor.
    max_seconds : float, default=None
        Seconds after which ``fit`` and ``fit_stream`` end with the weights that they have reached, and a
        ``ConvergenceWarning``; ``resume_from=self`` continues the training. At least one update is made, and
        candidates of a warm start are compared before. The weights are not compared with the start.

    Attributes
    ----------
    onnx_ : onnx.ModelProto
        Trained model, for inference: a scikit-learn model with fused operators if available, an ONNX file
        with the original names of its weights. ``get_trained_onnx()`` returns a copy of it, and with
        ``fused=False`` the model without fused operators.
    trained_coef_ : dict of str to ndarray
        Trained weights by name, in the form that they have in the graph, which ``weights_to_train_``
        describes.
    weights_to_train_ : dict of str to str
        Origin of each trained weight: ``"ridge: coef_"`` for an attribute of a step, ``"coef_"`` without
        steps, ``"log(weights_)"`` or ``"1 / scale_"`` if the graph has this function of the attribute, and
        empty if the origin is not known.
    history_ : list of dict
        Record of each epoch: ``epoch`` (from 1), ``loss`` (mean, penalty included), ``validation_loss``,
        ``validation_score``, ``rate`` and ``seconds`` (without the validation); values that were not measured
        are None. ``pandas.DataFrame(model.history_)`` is a table of it.
    train_losses_ : list of float
        Mean loss of each epoch, penalty included.
    validation_losses_, validation_scores_ : list of float
        Mean loss, without penalty, and score of each validation.
    n_iter_ : int
        Number of epochs run.
    start_kept_ : bool
        Whether the last ``fit`` restored its starting weights.
    best_epoch_ : int
        Epoch whose weights were kept, from 1; only if held-out samples decided it.
    stopped_ : bool
        Whether ``early_stopping`` recommends no further calls of ``partial_fit``.
    loss_, penalty_, learning_rate_ : BaseLoss, BasePenalty, BaseLearningRate
        Plugins that were used.
    classes_ : ndarray of shape (n_classes,)
        Classes of a classifier.
    coef_, intercept_, feature_importances_ : ndarray
        Attributes of the scikit-learn model with the trained weights (:meth:`to_sklearn`), if it has them;
        pipelines and ONNX models do not. Feature importances are those of the splits of trees, which training
        does not change.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has names.

    See Also
    --------
    OrtGradientForwardBackwardOptimizer : Training with separate calls of forward and backward.

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

    _step_path = "ortlearn.training.steps.epoch_step:EpochStep"
