"""A limit of time ends a training on a cluster after a round, in a state that can be resumed."""

import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge, SGDRegressor

from ortlearn.distributed import DaskOrtGradientOptimizer
from tests.distributed.shards import cut, same_bits

SIZES = [250, 200, 150]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "options"),
    [
        (SGDRegressor(), {"learning_rate": "Adam", "batch_size": 32, "max_iter": 4}),
        (
            SGDRegressor(),
            {"learning_rate": "SGD", "batch_size": 16, "max_iter": 4, "sync_every": "2 batches"},
        ),
        (Ridge(), {"learning_rate": 0.01, "batch_size": 1000, "max_iter": 4}),
        (Ridge(), {"learning_rate": "LBFGS", "max_iter": 20}),
    ],
    ids=["rounds of passes", "rounds of batches", "gradients of all shards", "solver"],
)
@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.FewUpdatesWarning")
def test_training_ends_and_is_resumed_bit_for_bit(client, regression, model, options):
    X, y = (cut(part, SIZES) for part in regression)
    options = {"client": client, "random_state": 0, **options}
    short = DaskOrtGradientOptimizer(model, max_seconds=1e-9, **options)
    with pytest.warns(ConvergenceWarning, match="ended after max_seconds=1e-09"):
        short.fit(X, y)
    assert short.n_iter_ <= 1
    short.predict(regression[0][:5])
    whole = DaskOrtGradientOptimizer(model, **options).fit(X, y)
    assert whole.n_iter_ > 1
    short.set_params(max_seconds=None).fit(X, y, resume_from=short)
    assert same_bits(short, whole) and short.n_iter_ == whole.n_iter_
    unlimited = DaskOrtGradientOptimizer(model, max_seconds=3600, **options).fit(X, y)
    assert same_bits(unlimited, whole)
