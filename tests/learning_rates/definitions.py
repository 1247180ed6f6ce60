"""Updates in numpy: each function returns the last weight for given gradients and rates."""

import numpy as np


def sgd(w, gradients, rates):
    for g, rate in zip(gradients, rates, strict=True):
        w = w - rate * g
    return w


def momentum(w, gradients, rates, momentum=0.9, nesterov=True):
    v = np.zeros_like(w)
    for g, rate in zip(gradients, rates, strict=True):
        v = momentum * v - rate * g
        w = w + (momentum * v - rate * g if nesterov else v)
    return w


def adam(w, gradients, rates, beta_1=0.9, beta_2=0.999, epsilon=1e-8, weight_decay=0.0):
    m = v = np.zeros_like(w)
    for t, (g, rate) in enumerate(zip(gradients, rates, strict=True), start=1):
        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g**2
        w = w - rate * weight_decay * w
        w = w - rate * (m / (1 - beta_1**t)) / (np.sqrt(v / (1 - beta_2**t)) + epsilon)
    return w


def rmsprop(w, gradients, rates, rho=0.99, epsilon=1e-8, momentum=0.0, centered=False):
    s = m = b = np.zeros_like(w)
    for g, rate in zip(gradients, rates, strict=True):
        s = rho * s + (1 - rho) * g**2
        m = rho * m + (1 - rho) * g
        root = np.sqrt(s - m**2 if centered else s)
        b = momentum * b + g / (root + epsilon)
        w = w - rate * b
    return w


def adagrad(w, gradients, rates, initial_total=0.0, epsilon=1e-10):
    for t, (g, rate) in enumerate(zip(gradients, rates, strict=True), start=1):
        total = initial_total + sum(earlier**2 for earlier in gradients[:t])
        w = w - rate * g / (np.sqrt(total) + epsilon)
    return w


def adadelta(w, gradients, rates, rho=0.9, epsilon=1e-6):
    s = u = np.zeros_like(w)
    for g, rate in zip(gradients, rates, strict=True):
        s = rho * s + (1 - rho) * g**2
        d = np.sqrt(u + epsilon) / np.sqrt(s + epsilon) * g
        u = rho * u + (1 - rho) * d**2
        w = w - rate * d
    return w


def lion(w, gradients, rates, beta_1=0.9, beta_2=0.99, weight_decay=0.0):
    m = np.zeros_like(w)
    for g, rate in zip(gradients, rates, strict=True):
        w = w - rate * (np.sign(beta_1 * m + (1 - beta_1) * g) + weight_decay * w)
        m = beta_2 * m + (1 - beta_2) * g
    return w
