"""Gradient rules of the standard operators, by kind; each module holds one ``RULES`` set.

The comment that opens a rule gives the function, then its gradient; ``dx`` is the gradient
of ``x``, ``*`` is elementwise and ``@`` the matrix product.
"""
