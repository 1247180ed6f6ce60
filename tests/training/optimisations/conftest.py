"""Calls of the graphs that compute results before training."""

import pytest

from ortlearn.training.optimisations import hoisting


@pytest.fixture
def sizes_of_calls(monkeypatch):
    """Return a function that starts a list of the numbers of samples of an input, one per call."""

    def counting(name):
        sizes, make = [], hoisting.open_session

        def counted(*args):
            session = make(*args)
            run = session.run

            def run_counted(outputs, feeds):
                if outputs is not None:
                    sizes.append(len(feeds[name]))
                return run(outputs, feeds)

            session.run = run_counted
            return session

        monkeypatch.setattr(hoisting, "open_session", counted)
        return sizes

    return counting
