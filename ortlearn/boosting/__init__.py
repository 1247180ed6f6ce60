"""Boosting with any loss: derivatives of losses, and estimators that grow trees on them."""
