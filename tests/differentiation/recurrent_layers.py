"""RNN, GRU and LSTM of the ONNX specification, for the reference evaluator."""

from __future__ import annotations

import numpy as np
from onnx.reference.op_run import OpRun

__all__ = ["GRU", "LSTM", "RNN"]

ACTIVATIONS = {
    "relu": lambda x, a, b: np.maximum(x, 0),
    "tanh": lambda x, a, b: np.tanh(x),
    "sigmoid": lambda x, a, b: 1 / (1 + np.exp(-x)),
    "affine": lambda x, a, b: a * x + b,
    "leakyrelu": lambda x, a, b: np.where(x >= 0, x, a * x),
    "thresholdedrelu": lambda x, a, b: np.where(x > a, x, 0),
    "scaledtanh": lambda x, a, b: a * np.tanh(b * x),
    "hardsigmoid": lambda x, a, b: np.clip(a * x + b, 0, 1),
    "elu": lambda x, a, b: np.where(x >= 0, x, a * (np.exp(x) - 1)),
    "softsign": lambda x, a, b: x / (1 + np.abs(x)),
    "softplus": lambda x, a, b: np.log1p(np.exp(x)),
}
DEFAULTS = {
    "affine": (1.0, 0.0),
    "leakyrelu": (0.01,),
    "thresholdedrelu": (1.0,),
    "scaledtanh": (1.0, 1.0),
    "hardsigmoid": (0.2, 0.5),
    "elu": (1.0,),
}


class Recurrent(OpRun):
    op_domain = ""

    def run_layer(self, inputs, options):
        x, w, r, b, lengths, h0, c0, p = [*inputs, *[None] * (8 - len(inputs))]
        if options["layout"]:
            x, h0, c0 = (None if a is None else np.swapaxes(a, 0, 1) for a in (x, h0, c0))
        self.hidden, self.options, directions = r.shape[2], options, len(w)
        steps, batch = x.shape[:2]
        lengths = np.full(batch, steps) if lengths is None else lengths
        functions = self.functions(directions)
        y = np.zeros((steps, directions, batch, self.hidden), x.dtype)
        last = [np.zeros((directions, batch, self.hidden), x.dtype) for _ in range(2)]
        for d in range(directions):
            backwards = d == 1 or options["direction"] == "reverse"
            for n in range(batch):
                state = [np.zeros(self.hidden, x.dtype) if s is None else s[d, n] for s in (h0, c0)]
                order = range(lengths[n])
                for t in reversed(order) if backwards else order:
                    weights = w[d], r[d], np.zeros(2 * len(w[d])) if b is None else b[d]
                    state = self.step(functions[d], x[t, n], state, weights, None if p is None else p[d])
                    y[t, d, n] = state[0]
                if lengths[n]:
                    last[0][d, n], last[1][d, n] = state
        if options["layout"]:
            y, last = y.transpose(2, 0, 1, 3), [np.swapaxes(a, 0, 1) for a in last]
        return tuple(np.asarray(a, x.dtype) for a in (y, *last))[: 3 if self.gates == 4 else 2]

    def functions(self, directions):
        alphas, betas = (iter(self.options[f"activation_{k}"] or ()) for k in ("alpha", "beta"))
        names = self.options["activations"] or self.defaults * directions

        def read(name):
            given = zip((alphas, betas), DEFAULTS.get(name.lower(), ()), strict=False)
            a, b = [*(next(values, default) for values, default in given), None, None][:2]
            clip = self.options["clip"]
            return lambda s, clipped=True: ACTIVATIONS[name.lower()](
                s if clip is None or not clipped else np.clip(s, -clip, clip), a, b
            )

        found = [read(name) for name in names]
        size = len(self.defaults)
        return [found[size * d : size * (d + 1)] for d in range(directions)]


class RNN(Recurrent):
    gates, defaults = 1, ["Tanh"]

    def _run(self, *inputs, activation_alpha=None, activation_beta=None, activations=None, clip=None,
             direction=None, hidden_size=None, layout=0):  # fmt: skip
        return self.run_layer(inputs, {**locals(), "direction": direction or "forward"})

    def step(self, functions, x, state, weights, peepholes):
        w, r, b = weights
        h = functions[0](w @ x + r @ state[0] + b[: self.hidden] + b[self.hidden :])
        return h, h


class GRU(Recurrent):
    gates, defaults = 3, ["Sigmoid", "Tanh"]

    def _run(self, *inputs, activation_alpha=None, activation_beta=None, activations=None, clip=None,
             direction=None, hidden_size=None, layout=0, linear_before_reset=0):  # fmt: skip
        return self.run_layer(inputs, {**locals(), "direction": direction or "forward"})

    def step(self, functions, x, state, weights, peepholes):
        f, g = functions
        (wz, wr, wh), (rz, rr, rh) = (np.split(a, 3) for a in weights[:2])
        bz, br, bh, cz, cr, ch = np.split(weights[2], 6)
        h = state[0]
        z, reset = f(wz @ x + rz @ h + bz + cz), f(wr @ x + rr @ h + br + cr)
        if self.options["linear_before_reset"]:
            new = g(wh @ x + reset * (rh @ h + ch) + bh)
        else:
            new = g(wh @ x + rh @ (reset * h) + ch + bh)
        h = (1 - z) * new + z * h
        return h, h


class LSTM(Recurrent):
    gates, defaults = 4, ["Sigmoid", "Tanh", "Tanh"]

    def _run(self, *inputs, activation_alpha=None, activation_beta=None, activations=None, clip=None,
             direction=None, hidden_size=None, layout=0, input_forget=0):  # fmt: skip
        return self.run_layer(inputs, {**locals(), "direction": direction or "forward"})

    def step(self, functions, x, state, weights, peepholes):
        f, g, h_of = functions
        w, r, b = weights
        h, c = state
        s_i, s_o, s_f, s_c = np.split(w @ x + r @ h + b[: 4 * self.hidden] + b[4 * self.hidden :], 4)
        p_i, p_o, p_f = np.zeros((3, self.hidden)) if peepholes is None else np.split(peepholes, 3)
        i = f(s_i + p_i * c)
        forget = 1 - i if self.options["input_forget"] else f(s_f + p_f * c)
        c = forget * c + i * g(s_c)
        return f(s_o + p_o * c) * h_of(c, clipped=False), c
