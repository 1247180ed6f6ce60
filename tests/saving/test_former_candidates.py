"""Candidates of warm starts in saved files, of this version and of version 0.2.0."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor

from ortlearn import OrtGradientOptimizer, saving
from ortlearn.callbacks import ModelCheckpoint
from ortlearn.comparison import candidates
from ortlearn.exceptions import SavedFileError
from ortlearn.fitting.saved_types import TYPES
from ortlearn.losses import QuantileLoss
from ortlearn.saving.decoder import Decoder
from ortlearn.saving.encoder import Encoder
from ortlearn.saving.files import read, write
from tests.saving.checkpoints import training_state


def label(X):
    return np.sin(X @ [1.0, -2.0, 0.5, 0.1])


X, OTHERS = (np.random.default_rng(seed).normal(size=(90, 4)) for seed in (0, 5))
Y = label(X)
#: Fields of records of version 0.2.0, and what they are now.
FORMER = {
    (np.inf, "start", 0.0): candidates.KeptStart(),
    (10.0, "start", 0.0): candidates.Pull(10.0),
    (0.03, "fresh", 0.0): candidates.FreshPull(0.03),
    (1.0, "restandardised", 0.0): candidates.RestandardisedPull(1.0),
    (0.1, "shifted", 0.0): candidates.ShiftedPull(0.1),
    (16.0, "shares", 0.0): candidates.LeafMeans(16.0),
    (np.inf, "start", 0.5): candidates.Grown(0.5, candidates.KeptStart()),
    (4.0, "shares", 1.0): candidates.Grown(1.0, candidates.LeafMeans(4.0)),
}
#: A model of these, with lower labels, gets a share of new trees, and its leaves are trained.
EXCHANGED = X[:60, [1, 0, *range(2, X.shape[1])]]
MODELS = {
    "pull": (Ridge().fit(X[:20], Y[:20] - 1), {}),
    "fresh": (Ridge().fit(X, -5 * Y), {}),
    "shift": (KNeighborsRegressor().fit(OTHERS, label(OTHERS)), {"learning_loss": QuantileLoss(0.05)}),
    "grown": (HistGradientBoostingRegressor(max_iter=20, min_samples_leaf=5).fit(EXCHANGED, Y[:60] - 1), {}),
}


@pytest.mark.parametrize(("values", "expected"), FORMER.items())
def test_records(values, expected):
    record = dict(zip(("pull", "center", "share"), values, strict=True))
    assert TYPES["Candidate"].make(record) == expected
    encoder = Encoder(TYPES)
    encoded = encoder.encode(expected)
    assert encoded["name"] != "Candidate"
    assert Decoder(TYPES, {}, ()).decode(encoded) == expected


@pytest.mark.parametrize(
    "changed", [{"pull": "10"}, {"center": "nowhere"}, {"center": []}, {"share": None}, {"more": 1}]
)
def test_forged_records_are_rejected(changed):
    with pytest.raises(SavedFileError, match="A record Candidate has"):
        TYPES["Candidate"].make({"pull": 10.0, "center": "start", "share": 0.0, **changed})


def former_record(candidate):
    """Return the record of version 0.2.0 of a candidate."""
    values = next(values for values, own in FORMER.items() if type(own) is type(candidate))
    share = getattr(candidate, "share", 0.0)
    base = getattr(candidate, "base", candidate)
    fields = {"pull": base.strength, "center": values[1], "share": share}
    return {"$": "record", "name": "Candidate", "fields": fields}


@pytest.mark.slow
@pytest.mark.sweep(2)
@pytest.mark.needs_callbacks
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_resuming_from_a_former_record(name, tmp_path):
    model, options = MODELS[name]

    def make():
        return OrtGradientOptimizer(model, warm_start=True, random_state=0, max_iter=12, **options)

    checkpoint = ModelCheckpoint(tmp_path / "run", every=2)
    expected = make().set_callbacks(checkpoint).fit(X, Y)
    path = tmp_path / "run" / "epoch-000002.zip"
    content = read(path)
    own = content.manifest["record"]["state"]["fields"]["fingerprint"]["fields"]
    found = Decoder(TYPES, content.files, ()).decode(own["candidate"])
    own["candidate"] = former_record(found)
    write(tmp_path / "former.zip", content)
    for source in (path, tmp_path / "former.zip"):
        resumed = make().fit(X, Y, resume_from=source)
        assert training_state(resumed) == training_state(expected)
        np.testing.assert_array_equal(resumed.predict(X), expected.predict(X))
    assert saving.load(tmp_path / "former.zip").n_iter_ == 2
