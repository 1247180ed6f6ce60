"""Layout of graphs: arrows point down, boxes do not overlap, neighbours are close."""

import itertools
import random

import pytest

from ortlearn.graphs.elements import Arrow, Element
from ortlearn.inspection.graph_layout import lay_out


def random_graph(seed, operators=25):
    """Return a random graph whose operators read earlier elements."""
    rng = random.Random(seed)
    elements = [Element(f"t{i}", rng.choice(["input", "weight"]), "t" * rng.randint(1, 12)) for i in range(6)]
    arrows = []
    for i in range(operators):
        for source in rng.sample(elements, rng.randint(1, 2)):
            arrows.append(Arrow(source.key, f"n{i}"))
        elements.append(Element(f"n{i}", "operator", "n" * rng.randint(1, 9)))
    elements.append(Element("out", "output", "out"))
    return elements, [*arrows, Arrow(f"n{operators - 1}", "out")]


def widths_of(elements):
    return {element.key: len(element.name) + 2.0 for element in elements}


@pytest.mark.parametrize("seed", range(8))
def test_random_graph(seed):
    elements, arrows = random_graph(seed)
    widths = widths_of(elements)
    layout = lay_out(elements, arrows, widths)
    assert layout.places.keys() == widths.keys()
    for (a, (xa, ya)), (b, (xb, yb)) in itertools.combinations(layout.places.items(), 2):
        assert ya != yb or abs(xa - xb) >= (widths[a] + widths[b]) / 2
    for arrow, path in zip(arrows, layout.paths, strict=True):
        assert path[0] == layout.places[arrow.source] and path[-1] == layout.places[arrow.target]
        assert [y for _, y in path] == list(range(int(path[0][1]), int(path[-1][1]) + 1)) and len(path) > 1
        for x, y in path[1:-1]:  # it goes through no element
            inside = [
                key for key, (cx, cy) in layout.places.items() if cy == y and abs(cx - x) < widths[key] / 2
            ]
            assert not inside
    assert lay_out(elements, arrows, widths) == layout


def test_chain_is_straight():
    elements = [Element("a", "input", "a"), Element("b", "operator", "Relu"), Element("c", "output", "c")]
    layout = lay_out(elements, [Arrow("a", "b"), Arrow("b", "c")], widths_of(elements))
    assert layout.places == {"a": (0.0, 0.0), "b": (0.0, 1.0), "c": (0.0, 2.0)}


def test_weight_is_one_layer_above_its_first_reader():
    elements = [Element("x", "input", "x"), Element("w", "weight", "w")]
    elements += [Element(f"n{i}", "operator", "Add") for i in range(3)]
    arrows = [Arrow("x", "n0"), Arrow("n0", "n1"), Arrow("n1", "n2"), Arrow("w", "n2")]
    assert lay_out(elements, arrows, widths_of(elements)).places["w"][1] == 2.0


def test_neighbours_are_ordered_so_that_arrows_do_not_cross():
    elements = [Element(f"t{i}", "input", "t") for i in range(4)]
    elements += [Element(f"n{i}", "operator", "Neg") for i in range(4)]
    layout = lay_out(elements, [Arrow(f"t{i}", f"n{3 - i}") for i in range(4)], widths_of(elements))
    assert all(layout.places[f"t{i}"][0] == layout.places[f"n{3 - i}"][0] for i in range(4))


def test_empty_graph():
    layout = lay_out([], [], {})
    assert layout.places == {} and layout.paths == []
    alone = lay_out([Element("x", "input", "x")], [], {"x": 3.0})
    assert alone.places == {"x": (0.0, 0.0)}
