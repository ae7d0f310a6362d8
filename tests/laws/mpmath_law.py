"""The exact law by mpmath, sharing neither formulas nor rules with the library.

Nested Gauss-Legendre panels in 26 digits. The error along the tilt is written as the
second moment of g - s, with one square and one pair term, where the library integrates
by parts until nothing cancels. Run as a script it writes the table that the tests
compare with:

    python -m tests.laws.mpmath_law
"""

import itertools
import json
import pathlib

import numpy as np
from mpmath import mp

TABLE = pathlib.Path(__file__).with_name("mpmath_law.json")
POINTS = 16  # of one Gauss-Legendre panel


def panels(low, high, width):
    """Nodes and weights of Gauss-Legendre panels that cover [low, high]."""
    count = int(mp.ceil((high - low) / width))
    base = list(legendre())
    for i in range(count):
        start, size = low + (high - low) * i / count, (high - low) / count
        for x, w in base:
            yield start + size * (x + 1) / 2, w * size / 2


def legendre():
    """Nodes and weights on [-1, 1]: float64 starting values, then Newton."""
    for start in np.polynomial.legendre.leggauss(POINTS)[0]:
        x = mp.mpf(float(start))
        for _ in range(3):
            x -= mp.legendre(POINTS, x) / legendre_slope(x)
        yield x, 2 / ((1 - x**2) * legendre_slope(x) ** 2)


def legendre_slope(x):
    value, before = mp.legendre(POINTS, x), mp.legendre(POINTS - 1, x)
    return POINTS * (x * value - before) / (x**2 - 1)


def law(n, logit_variance, digits=26):
    """Return (phi, psi) of `n` Gaussian tokens with logits of this variance."""
    with mp.workdps(digits):
        n, s = mp.mpf(n), mp.sqrt(mp.mpf(logit_variance))
        reach = mp.sqrt(2 * mp.log(10) * (digits - 8))
        width = min(mp.mpf(1), 2 / s)
        top = reach + 2 * s if s < 6 else reach + 4
        rule = list(panels(-reach, top, width))
        normal = [(g, w * mp.npdf(g), mp.exp(s * g)) for g, w in rule]
        beyond = list(itertools.accumulate(w for _, w, _ in reversed(normal)))[::-1]

        def terms(tau):
            growth = mp.exp(tau)
            complement = shifted = square = along = mp.mpf(0)
            for (g, weight, factor), rest in zip(normal, beyond, strict=True):
                y = growth * factor
                if y > 3 * digits:
                    complement += rest
                    break
                lost = -weight * mp.expm1(-y)
                complement += lost
                survival = weight - lost
                ye = survival * y
                shifted += (g - s) * ye
                yye = ye * y
                square += yye
                along += (g - s) ** 2 * yye
            if complement > 1 - mp.mpf(10) ** (-digits // 2):
                return mp.mpf(0), mp.mpf(0)
            power = (1 - complement) ** (n - 1)
            pair = n * (n - 1) * shifted**2 * power / (1 - complement)
            return n * square * power, n * along * power + pair

        unit = list(legendre())

        def panel(index):
            total = [mp.mpf(0)] * 2
            for x, w in unit:
                values = terms(-mp.log(n) + 2 * index + x + 1)
                total = [t + w * v for t, v in zip(total, values, strict=True)]
            return total

        total, small = [mp.mpf(0)] * 2, mp.mpf(10) ** (-digits + 8)
        for direction, start in ((1, 0), (-1, -1)):
            index, quiet = start, 0
            while quiet < 3:
                value = panel(index)
                total = [t + v for t, v in zip(total, value, strict=True)]
                negligible = all(
                    abs(v) <= small * abs(t) for v, t in zip(value, total, strict=True)
                )
                quiet = quiet + 1 if negligible and any(total) else 0
                index += direction
        return total[0], total[1]


CELLS = [
    *((n, v) for n in (2, 3.5, 10) for v in (1e-12, 0.01, 0.25, 1, 4, 9, 25)),
    *((n, v) for n in (100, 4096, 1e6) for v in (1e-12, 0.1, 0.49, 1, 2, 9, 16, 36)),
    *((n, v) for n in (1e9, 1e12, 1e15) for v in (1e-12, 0.3, 1, 4, 9, 16, 25, 49)),
    *((n, 100) for n in (2, 1e3, 1e15)),
    *((n, 400) for n in (2, 1e15)),
]

if __name__ == "__main__":
    rows = []
    for n, logit_variance in CELLS:
        phi, psi = law(n, logit_variance)
        row = {"n": n, "logit_variance": logit_variance}
        row |= {"phi": mp.nstr(phi, 18), "psi": mp.nstr(psi, 18)}
        rows.append(row)
        print(row, flush=True)
    TABLE.write_text(json.dumps(rows, indent=1) + "\n")
