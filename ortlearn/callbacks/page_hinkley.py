"""The test of Page and Hinkley for an increase of a mean."""

from __future__ import annotations

__all__ = ["PageHinkley"]

#: Largest distance from the mean that counts, in standard deviations.
LARGEST = 4.0


class PageHinkley:
    """Test of Page and Hinkley for an increase of the mean of a stream of numbers.

    The sum of ``z - delta`` over the values so far is compared with its minimum, where z is the distance of a
    value from the mean of all values, in their standard deviations (at most 4, so that a few outliers are no
    drift). A difference above ``threshold`` is a drift. Under a normal distribution without drift, the mean
    number of values until a false alarm is about ``exp(2 delta threshold) / (2 delta**2)``, a million by
    default; an increase by one standard deviation is found after about 55 values.

    Parameters
    ----------
    delta : float, default=0.1
        Increase that is not looked for, in standard deviations.
    threshold : float, default=50.0
        Difference that is a drift.
    min_samples : int, default=30
        Fewest values before a drift.

    Attributes
    ----------
    drift_detected : bool
        Whether the last value showed a drift. The next one begins a new test.
    n_samples : int
        Number of values of this test.

    References
    ----------
    Page, E. S., "Continuous inspection schemes", Biometrika 41 (1954), 100-115.

    Hinkley, D. V., "Inference about the change-point from cumulative sum tests", Biometrika 58 (1971),
    509-523.

    Examples
    --------
    >>> from ortlearn.callbacks import PageHinkley
    >>> detector = PageHinkley()
    >>> values = [0.0, 1.0] * 100 + [1.0, 2.0] * 100
    >>> [place for place, value in enumerate(values) if detector.update(value).drift_detected]
    [231]
    """

    def __init__(self, delta: float = 0.1, threshold: float = 50.0, min_samples: int = 30) -> None:
        for name, value in (("delta", delta), ("threshold", threshold), ("min_samples", min_samples)):
            if not value > 0:
                raise ValueError(f"{name}={value!r} must be positive.")
        self.delta, self.threshold, self.min_samples = delta, threshold, min_samples
        self._begin()

    def _begin(self) -> None:
        self.n_samples, self.drift_detected = 0, False
        self._mean = self._squares = self._sum = self._lowest = 0.0

    def update(self, x: float) -> PageHinkley:
        """Add a value.

        Parameters
        ----------
        x : float
            Value.

        Returns
        -------
        PageHinkley
            This object.
        """
        if self.drift_detected:
            self._begin()
        self.n_samples += 1
        before = x - self._mean
        self._mean += before / self.n_samples
        distance = x - self._mean
        self._squares += before * distance
        spread = (self._squares / self.n_samples) ** 0.5
        self._sum += (min(distance / spread, LARGEST) if spread else 0.0) - self.delta
        self._lowest = min(self._lowest, self._sum)
        is_long = self.n_samples >= self.min_samples
        self.drift_detected = is_long and self._sum - self._lowest > self.threshold
        return self
