"""Statements of the page on several machines hold for its tables."""

import csv

import pytest

from tests.docs.pages import DOCS, Page

PAGE = Page(DOCS / "explanation/scaling.md")
SIMPLE = ("linear, SGD", "boosting's leaves, Adam", "sparse text, Adam")
NETWORKS = ("network, Adam", "network, Adam's default rate")


def losses(samples):
    """Return losses by problem, averaging and number k of shards, for rates times 1, root of k, and k."""
    with (DOCS / "explanation/scaling.csv").open(encoding="utf-8", newline="") as file:
        return {
            (row["problem"], row["averages"], int(row["shards"])): [
                float(cell) for title, cell in row.items() if "rate" in title and cell[0].isdigit()
            ]
            for row in csv.DictReader(file)
            if row["samples"] == samples
        }


@pytest.fixture(scope="module")
def mixed():
    return losses("shuffled")


def test_losses_of_the_page_are_those_of_the_file(mixed):
    tables = [table for table in PAGE.tables() if any("rate times 1" in title for title in table.header)]
    for table, found in zip(tables, (mixed, losses("sorted by label")), strict=True):
        for problem, averages, *cells in table.rows:
            for title, cell in zip(table.header[2:], cells, strict=True):
                values = [float(part) for part in cell.split(" / ") if part[0].isdigit()]
                assert found.get((problem, averages, int(title.split()[0])), []) == values


@pytest.mark.parametrize("problem", SIMPLE)
def test_loss_of_simple_models_at_the_root_of_the_number_of_shards(mixed, problem):
    assert mixed[problem, "once a pass", 4][1] <= 1.015
    assert mixed[problem, "once a pass", 16][1] <= 1.045


@pytest.mark.parametrize("problem", NETWORKS)
def test_networks_need_smaller_batches(mixed, problem):
    once = mixed[problem, "once a pass", 4]
    assert min(once) > 2
    assert mixed[problem, "once a pass, batches of 32 / k", 4][0] < 0.6 * once[0]
    assert mixed[problem, "none: one shard alone", 4][0] < 1.15 * once[0]


@pytest.mark.parametrize("problem", (*SIMPLE, *NETWORKS))
def test_number_of_averages_has_no_effect_at_the_rate_of_one_machine(mixed, problem):
    for count in (4, 16):
        once, often = (mixed[problem, f"{name} a pass", count][0] for name in ("once", "16 times"))
        assert often == pytest.approx(once, rel=0.1)


def test_different_shards_need_more_averages():
    by_label = losses("sorted by label")
    once, often = (by_label["network, Adam", f"{name} a pass", 16][0] for name in ("once", "16 times"))
    assert often < 0.55 * once


def test_extrapolated_values_are_named():
    (plans,) = [table for table in PAGE.tables() if "extrapolated" in table.header]
    for workers, outside in zip(plans.column("workers"), plans.column("extrapolated"), strict=True):
        assert (outside == "nothing") == (workers == "2")
        assert ("effect of a pass" in outside) == (int(workers.replace(",", "")) > 64)
