"""Records of matrix products and convolutions."""

from __future__ import annotations

from tests.differentiation.records_base import Record, normal

__all__ = ["CONVOLUTIONS", "LINEAR_ALGEBRA"]

LINEAR_ALGEBRA = [
    *(
        Record("MatMul", (normal(*left), normal(*right)), empty=len(left) > 1 and left[0] > 1)
        for left, right in (
            ((4, 3), (3, 2)),
            ((3,), (3,)),
            ((3,), (3, 2)),
            ((4, 3), (3,)),
            ((5, 4, 3), (3,)),
            ((3,), (5, 3, 2)),
            ((5, 4, 3), (5, 3, 2)),
            ((5, 4, 3), (3, 2)),
            ((4, 3), (5, 3, 2)),
            ((2, 1, 4, 3), (5, 3, 2)),
            ((1, 4, 3), (5, 3, 2)),
        )
    ),
    *(
        Record(
            "Gemm", (normal(*a), normal(*b), normal(*c)), {"transA": ta, "transB": tb, **scales}, empty=not ta
        )
        for (ta, a) in ((0, (4, 3)), (1, (3, 4)))
        for (tb, b) in ((0, (3, 2)), (1, (2, 3)))
        for c, scales in (((4, 2), {}), ((2,), {"alpha": 0.5, "beta": 2.0}))
    ),
    Record("Gemm", (normal(4, 3), normal(3, 2))),
    Record("Gemm", (normal(4, 3), normal(3, 2), normal()), {"alpha": -1.5}),
    Record("Gemm", (normal(4, 3), normal(3, 2), normal(4, 1))),
    *(
        Record("Einsum", tuple(normal(*shape) for shape in shapes), {"equation": equation}, empty=False)
        for equation, shapes in (
            ("ij,jk->ik", ((4, 3), (3, 2))),
            ("ij,jk", ((4, 3), (3, 2))),
            ("ij->ji", ((4, 3),)),
            ("ij->", ((4, 3),)),
            ("ij->i", ((4, 3),)),
            ("i,i->", ((4,), (4,))),
            ("i,j->ij", ((4,), (3,))),
            ("bij,bjk->bik", ((2, 4, 3), (2, 3, 5))),
            ("...ij,jk->...ik", ((2, 4, 3), (3, 2))),
            ("...ij,...jk->...ik", ((2, 1, 4, 3), (5, 3, 2))),
            ("ij,kl->il", ((4, 3), (2, 5))),
            ("bhid,bhjd->bhij", ((2, 3, 4, 5), (2, 3, 2, 5))),
            ("ij,jk,kl->il", ((4, 3), (3, 2), (2, 5))),
        )
    ),
    # repeated labels
    *(
        Record(
            "Einsum", tuple(normal(*s) for s in shapes), {"equation": equation}, symbolic=False, empty=False
        )
        for equation, shapes in (
            ("ii,i->i", ((3, 3), (3,))),
            ("iij->ij", ((3, 3, 2),)),
            ("iij->j", ((3, 3, 2),)),
            ("iii->i", ((3, 3, 3),)),
            ("ii,jj->ij", ((3, 3), (2, 2))),
            ("iji,j->i", ((3, 2, 3), (2,))),
        )
    ),
    Record("Einsum", (normal(3, 3),), {"equation": "ii->i"}, symbolic=False, empty=False),
    Record("Einsum", (normal(3, 3),), {"equation": "ii->"}, symbolic=False, empty=False),
]

CONVOLUTIONS = [
    *(
        Record("Conv", (normal(*x), normal(*w), normal(w[0])), attributes, empty=False)
        for x, w, attributes in (
            ((2, 3, 7), (4, 3, 3), {}),
            ((2, 3, 5, 6), (4, 3, 3, 2), {"pads": [1, 0, 1, 1]}),
            ((2, 3, 7, 8), (4, 3, 3, 2), {"strides": [2, 3]}),
            ((2, 3, 7, 8), (4, 3, 3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
            ((2, 3, 8, 8), (4, 3, 2, 2), {"dilations": [2, 3], "pads": [0, 1, 2, 1]}),
            ((2, 3, 9, 8), (4, 3, 3, 2), {"dilations": [2, 1], "strides": [2, 2]}),
            ((2, 4, 6, 5), (6, 2, 3, 2), {"group": 2, "pads": [1, 1, 0, 0]}),
            ((2, 4, 6, 5), (4, 1, 3, 2), {"group": 4, "strides": [2, 1]}),
            ((2, 3, 5, 6), (4, 3, 3, 2), {"auto_pad": "SAME_UPPER"}),
            ((2, 3, 5, 6), (4, 3, 3, 2), {"auto_pad": "SAME_LOWER", "strides": [2, 2]}),
        )
    ),
    Record("Conv", (normal(2, 3, 7), normal(4, 3, 3)), empty=False),
    *(
        Record(
            "ConvTranspose",
            (normal(*x), normal(*w), normal(w[1] * attributes.get("group", 1))),
            attributes,
            empty=False,
        )  # fmt: skip
        for x, w, attributes in (
            ((2, 3, 5), (3, 4, 3), {}),
            ((2, 3, 4, 5), (3, 4, 3, 2), {"strides": [2, 3]}),
            ((2, 3, 4, 5), (3, 4, 3, 2), {"strides": [2, 2], "pads": [1, 0, 1, 1], "output_padding": [1, 0]}),
            ((2, 3, 4, 5), (3, 4, 3, 2), {"dilations": [2, 2]}),
            ((2, 4, 4, 5), (4, 3, 3, 2), {"group": 2}),
        )
    ),
]
