"""Changes that no test can notice, each with the reason."""

__all__ = ["SURVIVORS"]

SURVIVORS: dict[str, str] = {
    "penalty:none": "it writes nothing",
}
