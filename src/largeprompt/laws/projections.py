r"""Quadrature rules for the laws of one coordinate, made for softmax weights.

The rules are trapezoid sums, fine enough for the double exponential
$e^{-t e^{\ell}}$ of the logit, and keep their *relative* accuracy in the tails: a rare
token may carry most of the weight.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from largeprompt.laws.exact import check_range
from largeprompt.laws.laplace import NORMAL_REACH, NORMAL_STEP, STEP

Array = NDArray[np.float64]

FURTHEST_TILT = 6.0  # standard deviations: a prompt of 1e15 holds no token beyond
LARGEST_NORMAL_SCALE = 20.0
CIRCLE_POINTS = 64  # on half the circle
LARGEST_SPHERE_SCALE = 400.0  # the rule grows with it
SPHERE_STEP = 0.16  # of artanh: the poles of 1/cosh, pi/2 away, have order d - 1
SPHERE_NORMAL_STEP = 0.5  # in units of the width, 1/sqrt(d)
SPHERE_REACH = 24.0  # of artanh: one to rounding
RAREST = 90.0  # nats: a prompt of 1e15 holds no rarer token
DEPTH = 45.0  # nats below the peak of the tilted law at which it is cut


class Rule(NamedTuple):
    """Nodes and probabilities of a law on the line."""

    nodes: Array
    probability: Array


def normal_rule(scale: float) -> Rule:
    r"""Return a rule for $g \sim N(0, 1)$ when the logit is `scale` times $g$.

    Args:
        scale: The standard deviation of the logit, from 0 to 20.

    Raises:
        ValueError: `scale` is outside its range.
    """
    check_range("scale", np.array(float(scale)), 0.0, LARGEST_NORMAL_SCALE)
    step = min(NORMAL_STEP, STEP / max(scale, STEP))
    # the limit is tilted by the scale, squared weights by twice that
    top = max(scale, min(2 * scale, FURTHEST_TILT)) + NORMAL_REACH
    first, last = math.floor(-NORMAL_REACH / step), math.ceil(top / step)
    nodes = step * np.arange(first, last + 1, dtype=float)
    density = np.exp(-(nodes**2) / 2)
    return Rule(nodes, density / density.sum())


def sphere_rule(dim: int, scale: float) -> Rule:
    r"""Return a rule for one coordinate of a uniform point of the unit sphere.

    Its density is proportional to $(1 - t^2)^{(d - 3)/2}$ on $[-1, 1]$; with
    $t = \tanh x$ it is $\cosh^{1 - d} x$, analytic for every $d \ge 2$, with tails that
    are short from $d = 3$ on. In the plane equal angles do better, and in one dimension
    the sphere is two points.

    Args:
        dim: The dimension $d$ of the space.
        scale: The logit is `scale` times $t$; from 0 to 400.

    Raises:
        ValueError: `scale` is outside its range.
    """
    check_range("scale", np.array(float(scale)), 0.0, LARGEST_SPHERE_SCALE)
    if dim == 1:
        return Rule(np.array([-1.0, 1.0]), np.array([0.5, 0.5]))
    if dim == 2:
        count = math.ceil(max(CIRCLE_POINTS, math.pi * scale / STEP))
        angles = math.pi * (np.arange(count) + 0.5) / count
        return Rule(np.cos(angles), np.full(count, 1 / count))
    step = min(
        SPHERE_STEP, SPHERE_NORMAL_STEP / math.sqrt(dim), STEP / max(scale, STEP)
    )
    x = step * np.arange(math.ceil(SPHERE_REACH / step) + 1)
    log_density = (1 - dim) * (x + np.log1p(np.exp(-2 * x)) - math.log(2))
    tilted = scale * np.tanh(x) + log_density
    kept = (log_density > -RAREST) | (tilted > tilted.max() - DEPTH)
    nodes, density = np.tanh(x[kept]), np.exp(log_density[kept])
    nodes = np.concatenate([-nodes[:0:-1], nodes])
    density = np.concatenate([density[:0:-1], density])
    return Rule(nodes, density / density.sum())
