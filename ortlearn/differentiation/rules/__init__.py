"""Gradient rules of the standard operators, by kind; each module holds one ``RULES`` set.

The first comment of a rule is the function and its gradient; ``dx`` is the gradient
of ``x``, ``*`` is elementwise and ``@`` the matrix product.
"""
