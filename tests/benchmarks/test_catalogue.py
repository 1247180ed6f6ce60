"""The catalogue has every estimator of scikit-learn, or a reason for its absence."""

import pytest

from benchmarks.model_zoo.case import KINDS
from benchmarks.model_zoo.cases import NO_CASE, catalogue, choose, estimator_classes
from benchmarks.model_zoo.data import DATA, load


@pytest.fixture(scope="module")
def cases():
    return catalogue()


def test_every_estimator_has_a_case_or_a_reason(cases):
    measured = {case.estimator for case in cases.values() if case.kind != "pipeline"}
    assert set(estimator_classes()) == measured | (NO_CASE.keys() & estimator_classes().keys())
    assert measured.isdisjoint(NO_CASE)
    assert all(len(reason) > 10 for reason in NO_CASE.values())


def test_every_estimator_has_one_main_case(cases):
    mains = [case.estimator for case in cases.values() if case.main]
    assert sorted(mains) == sorted({c.estimator for c in cases.values() if c.kind != "pipeline"})


def test_pipelines_and_variants_are_included(cases):
    kinds = [case.kind for case in cases.values()]
    assert set(kinds) <= set(KINDS)
    assert kinds.count("pipeline") >= 50
    assert sum(not case.main for case in cases.values()) >= 150


def test_every_case_names_a_data_set(cases):
    assert {case.data for case in cases.values()} == set(DATA)


@pytest.mark.parametrize("name", DATA)
def test_data_are_reproducible(name):
    first, second = load(name), load(name)
    assert str(first.X) == str(second.X) and str(first.y) == str(second.y)
    assert 60 <= len(first.X) <= 150


def test_cases_by_name_and_estimator(cases):
    assert {case.estimator for case in choose(cases, ["Ridge"])} == {"Ridge"}
    assert [case.name for case in choose(cases, ["Ridge:reg*"])] == ["Ridge:regression"]
    assert len(choose(cases, [])) == len(cases)
