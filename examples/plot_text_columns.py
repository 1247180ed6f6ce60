"""
Text columns in front of what is trained
========================================

Adverts for flats hold text, categories and numbers with gaps. Everything that turns them into
numbers, such as the table of words, is fitted by scikit-learn once and then stays as it is.
Only the last step is trained again, here on another loss: **the frozen part is computed once,
and the trained ONNX model takes the columns as they come.**
"""

# %%
# The adverts
# -----------
#
# A frame with a district, a size that is sometimes missing, and a line of free text. One rent
# of twenty was typed with a zero too many.

import matplotlib.pyplot as plt
import numpy as np
import pandas

rng = np.random.RandomState(0)
n = 800
words = {
    "quiet": 0,
    "balcony": 90,
    "garden": 160,
    "renovated": 120,
    "noisy": -110,
    "cellar": 30,
    "lift": 60,
}
adverts = pandas.DataFrame(
    {
        "district": rng.choice(["harbour", "centre", "hill", "station"], size=n),
        "size": rng.uniform(25, 120, size=n).round(),
        "text": [
            " ".join(rng.choice(list(words), size=rng.randint(1, 5), replace=False))
            for _ in range(n)
        ],
    }
)
worth = adverts["district"].map({"harbour": 150, "centre": 300, "hill": 200, "station": 0})
worth += adverts["text"].map(lambda text: sum(words[word] for word in text.split()))
rent = (200 + 9 * adverts["size"] + worth + 40 * rng.randn(n)).to_numpy()
adverts.loc[rng.rand(n) < 0.1, "size"] = np.nan
typed = np.where(rng.rand(n) < 0.05, 10 * rent, rent)
adverts.assign(rent=typed.round()).head()

# %%
# The pipeline
# ------------
#
# One column transformer, with a way for each kind of column, and a linear model behind it.

from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

columns = make_column_transformer(
    (OneHotEncoder(), ["district"]),
    (make_pipeline(SimpleImputer(), StandardScaler()), ["size"]),
    (CountVectorizer(), "text"),
)
ridge = make_pipeline(columns, Ridge(alpha=1.0)).fit(adverts, typed)

# %%
# What would be trained
# ---------------------
#
# ``explain`` tells, before anything is trained, what a gradient can reach and why it does not
# reach the rest.

from ortlearn.conversion import explain

for row in explain(ridge, adverts).rows:
    print(
        f"{row.attribute.rpartition('.')[2]:>11} {'trained' if row.trainable else row.reason}"
    )

# %%
# Train it on another loss
# ------------------------
#
# Ridge minimises squares, and a rent that is ten times too high weighs more than all the
# others. Huber's loss hardly minds it. The training begins with ridge's weights; columns and
# words keep their meaning.

from ortlearn import OrtGradientOptimizer
from ortlearn.learning_rates import LearningRateAdam
from ortlearn.losses import HuberLoss

trainer = OrtGradientOptimizer(
    ridge,
    warm_start=True,
    learning_loss=HuberLoss(delta=50.0),
    learning_rate=LearningRateAdam(5.0, learning_rate="cosine"),
    batch_size=32,
    max_iter=100,
    random_state=0,
).fit(adverts, typed)
for name, model in {"ridge": ridge, "trained on Huber's loss": trainer}.items():
    wrong = np.abs(model.predict(adverts).ravel() - rent)
    print(f"{name}: every other rent is wrong by less than {np.median(wrong):.0f}")

# %%
# The trained ONNX model
# ----------------------
#
# It takes the columns by their names, text as text, and onnxruntime needs nothing else to run
# it.

import onnxruntime

session = onnxruntime.InferenceSession(
    trainer.get_trained_onnx().SerializeToString(), providers=["CPUExecutionProvider"]
)
for value in session.get_inputs():
    print(value.name, value.type, value.shape)
advert = {
    "district": np.array([["hill"]], dtype=object),
    "size": np.array([[60.0]], dtype=np.float32),
    "text": np.array([["quiet garden"]], dtype=object),
}
print(f"{session.run(None, advert)[0].item():.0f} a month")

# %%
# What a word is worth
# --------------------
#
# The weights have kept their places, so that the names of the columns tell what each of them
# belongs to. The words were worth what the black marks say; ridge was led astray by the wrong
# zeros.

names = list(ridge[0].get_feature_names_out())
places = [names.index(f"countvectorizer__{word}") for word in words]
bars = {
    "ridge": ridge[-1].coef_[places],
    "trained on Huber's loss": trainer.trained_coef_["coef"].ravel()[places],
}
_, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
for shift, (name, values) in zip((0.2, -0.2), bars.items(), strict=True):
    ax.barh(np.arange(len(words)) + shift, values, height=0.4, label=name)
ax.scatter(
    list(words.values()),
    range(len(words)),
    marker="|",
    s=900,
    color="black",
    zorder=3,
    label="true worth",
)
ax.set_yticks(range(len(words)), words)
ax.axvline(0, color="0.6", linewidth=0.8)
ax.set(xlabel="rent a month", title="What a word is worth: ridge, Huber's loss, truth")
ax.legend(markerscale=0.3)
plt.show()
# sphinx_gallery_thumbnail_number = -1
