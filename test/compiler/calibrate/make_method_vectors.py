#!/usr/bin/env python3
"""Writes MethodVectors.inc: what GPTQ and AWQ should come to, by numpy alone.

An independent implementation of the two papers for the symmetric encodings of
this project (codes of 4 or 8 bits, a float16 scale for each row and group). Only
the errors of the outputs are kept: the C++ must come within 1 % of them. The
inputs are made by a small generator that both sides have, so that no data is
committed.

  python3 make_method_vectors.py > MethodVectors.inc
"""
import numpy as np


def numbers(seed, count):
    """xorshift32, as halves of a sum of four uniforms: near normal, exact in both."""
    state = np.uint32(seed)
    out = np.empty(count, np.float32)
    mask = 0xFFFFFFFF
    s = int(state)
    for i in range(count):
        total = 0
        for _ in range(4):
            s ^= (s << 13) & mask
            s ^= s >> 17
            s ^= (s << 5) & mask
            total += s >> 16
        out[i] = np.float32((total - 131070) / 65536.0)
    return out


def inputs(seed, tokens, columns):
    """Correlated columns, a few of them large."""
    x = numbers(seed, tokens * columns).reshape(tokens, columns)
    mixed = x.copy()
    for k in range(1, columns):
        mixed[:, k] = np.float32(0.6) * mixed[:, k - 1] + x[:, k]
    mixed[:, ::17] *= np.float32(8.0)
    return mixed


def scale_int8(v):
    return np.float16(np.abs(v).max() / np.float32(127))


def scale_int4(v):
    """The least squared error of a few scales around the one for -8."""
    extreme = v[np.argmax(np.abs(v))]
    best, best_error = None, np.inf
    for target in (-8, -7.75, -7.5, -7.25, -7, -8.25, -8.5, -8.75, 7):
        s = np.float16(extreme / np.float32(target))
        if s == 0:
            continue
        s32 = np.float32(s)
        q = np.clip(np.rint(v / s32), -8, 7)
        error = float(((v - q * s32) ** 2).sum())
        if error < best_error:
            best, best_error = s, error
    return best


def choose(v, bits):
    s = scale_int8(v) if bits == 8 else scale_int4(v)
    return np.float32(1 if s is None or s == 0 else s)


def quantize(value, s, bits):
    low, high = (-127, 127) if bits == 8 else (-8, 7)
    return np.clip(np.rint(value / s), low, high) * s


def nearest(w, bits, group):
    out = np.empty_like(w)
    for r in range(w.shape[0]):
        for g in range(0, w.shape[1], group):
            v = w[r, g:g + group]
            out[r, g:g + group] = quantize(v, choose(v, bits), bits)
    return out


def weighted_int4(v, importance):
    """The least error of a list of scales, then twice what least squares makes of it."""
    def fit(s):
        q = np.clip(np.rint(v / s), -8, 7)
        i = importance
        return ((i * (v - q * s) ** 2).sum(), (i * v * q).sum() / max((i * q * q).sum(), 1e-300))
    extreme = v[np.argmax(np.abs(v))]
    best = choose(v.astype(np.float32), 4)
    targets = [-(8 + step / 4) for step in range(-6, 23)] + [7 + step / 4 for step in range(-4, 23)]
    for target in targets:
        s = np.float64(np.float16(extreme / target))
        if s != 0 and fit(s)[0] < fit(best)[0]:
            best = s
    for _ in range(2):
        s = np.float64(np.float16(fit(best)[1]))
        if s != 0 and fit(s)[0] < fit(best)[0]:
            best = s
    return best


def gptq(w, h, bits, group, damping=0.01):
    """Columns by the size of their inputs; scales of the weights as they are, with 4 bits
    by what is left of each column's error."""
    n = w.shape[1]
    order = np.argsort(-np.diag(h).astype(np.float32), kind="stable")
    h = h[np.ix_(order, order)].astype(np.float64)
    h[np.arange(n), np.arange(n)] += damping * np.trace(h) / n
    upper = np.linalg.cholesky(np.linalg.inv(h)).T  # H^-1 = U'U
    left = (1 / np.diag(upper) ** 2)[np.argsort(order)]
    scales = np.array([[weighted_int4(row[g:g + group].astype(np.float64), left[g:g + group])
                        if bits == 4 else choose(row[g:g + group].astype(np.float32), bits)
                        for g in range(0, n, group)] for row in w])
    scales = np.repeat(scales, group, axis=1)[:, :n][:, order]
    w = w[:, order].astype(np.float64)
    out = np.empty_like(w)
    for q in range(n):
        out[:, q] = quantize(w[:, q], scales[:, q], bits)
        error = (w[:, q] - out[:, q]) / upper[q, q]
        w[:, q + 1:] -= np.outer(error, upper[q, q + 1:])
    return out[:, np.argsort(order)]


def error_of(w, out, h):
    d = w.astype(np.float64) - out
    return float(np.einsum("ri,ij,rj->", d, h.astype(np.float64), d))


def awq(w, x, h, bits, group, steps=20):
    size = np.maximum(np.abs(x.astype(np.float64)).mean(0), 1e-4)
    best = None
    for step in range(steps):
        s = size ** (step / steps)
        s = (s / np.sqrt(s.max() * s.min())).astype(np.float32)
        out = nearest(w * s, bits, group) / s
        e = error_of(w, out, h)
        if best is None or e < best[0]:
            best = (e, step / steps)
    return best


CASES = [  # rows, columns, tokens, bits, group
    (48, 160, 512, 4, 32),
    (33, 192, 512, 4, 128),
    (20, 96, 300, 4, 64),
    (40, 160, 512, 8, 64),
    (17, 131, 512, 4, 32),
]

print("// Made by make_method_vectors.py: rows, columns, tokens, bits, group, and the")
print("// output's error by round-to-nearest, GPTQ and AWQ, then AWQ's power.")
for i, (rows, columns, tokens, bits, group) in enumerate(CASES):
    w = numbers(101 + i, rows * columns).reshape(rows, columns) * np.float32(0.05)
    x = inputs(1001 + i, tokens, columns)
    h = (x.astype(np.float64).T @ x.astype(np.float64)) / tokens
    e_awq, power = awq(w, x, h, bits, group)
    print("{%d, %d, %d, %d, %d, %.9g, %.9g, %.9g, %.2f}," % (
        rows, columns, tokens, bits, group, error_of(w, nearest(w, bits, group), h),
        error_of(w, gptq(w, h, bits, group), h), e_awq, power))
