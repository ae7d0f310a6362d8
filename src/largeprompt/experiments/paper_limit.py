"""The limit identity: over a long Gaussian prompt softmax attention is affine."""

import itertools
import math

import numpy as np
import pyarrow as pa
import torch

from largeprompt.attention import Head
from largeprompt.experiments.verdicts import (
    Claim,
    Finding,
    Progress,
    at_least,
    at_most,
)
from largeprompt.laws import gaussian_law
from largeprompt.measures import Gaussian, Rademacher

LEMMA = "Boursier and Boyer (2026), Lemma 2.1"
LENGTHS = (10, 100, 1000, 100_000)
NODES = 40  # of Gauss and Hermite in each dimension
SIGNS = 0.9640275800758169  # tanh 2


def limit_identity(*, fast: bool, progress: Progress) -> Finding:
    """Compare attention over a law, by quadrature, with the affine formula."""
    queries = np.linspace(-3, 3, 31 if fast else 121)
    curves = {
        f"{n:,} tokens": (1 - gaussian_law(n, queries**2).inverse_ess) * queries
        for n in LENGTHS
    }
    curves |= {"Gaussian limit": queries, "signs, limit": np.tanh(queries)}
    rows = [
        {"tokens": name, "query": float(z), "output": float(value)}
        for name, values in curves.items()
        for z, value in zip(queries, values, strict=True)
    ]
    claims = _claims()
    progress(1, 1)
    return Finding(
        name="limit",
        title="Softmax attention over a long Gaussian prompt is affine",
        note="The mean output of a head in one dimension (K = Q = V = 1, tokens of "
        "variance 1) against the query, exact at each length; over tokens that are "
        "signs the limit is no line.",
        table=pa.Table.from_pylist(rows),
        claims=claims,
    )


def _claims() -> tuple[Claim, ...]:
    generator = torch.Generator().manual_seed(0)
    draw = lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)
    head = Head(draw(2, 3), draw(2, 4), draw(2, 3), scale=0.3)
    query, mean = draw(4), draw(3)
    full, thin = draw(3, 3) / 2, draw(3, 2) / 2
    signs = Rademacher(torch.ones(1, dtype=torch.float64))
    two = torch.tensor([2.0], dtype=torch.float64)
    output = float(signs.tilted_mean(two))
    return (
        at_most(
            "limit-identity",
            "attention over N(m, G) maps a query z to V m + V G U z (relative error "
            "against quadrature)",
            LEMMA,
            _error(head, mean, full, query),
            1e-10,
        ),
        at_most(
            "limit-identity-singular",
            "the same for a covariance of rank two in dimension three",
            LEMMA,
            _error(head, mean, thin, query),
            1e-10,
        ),
        at_most(
            "signs-value",
            "over tokens that are signs the output at u = 2 is tanh 2 (difference)",
            "negative control; published reproduction of the paper",
            abs(output - SIGNS),
            1e-12,
        ),
        at_least(
            "signs-not-affine",
            "over tokens that are signs the output is not affine (distance from the "
            "Gaussian formula at u = 2)",
            "negative control",
            abs(output - 2.0),
            1.0,
        ),
    )


def _error(
    head: Head, mean: torch.Tensor, root: torch.Tensor, query: torch.Tensor
) -> float:
    r"""Return how far the affine formula is from $E[x e^{u.x}]/E[e^{u.x}]$."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    dim = root.shape[1]
    grid = torch.tensor(list(itertools.product(nodes, repeat=dim)))
    mass = torch.tensor([math.prod(w) for w in itertools.product(weights, repeat=dim)])
    tokens = mean + grid @ root.mT
    tilted = torch.softmax(mass.log() + tokens @ head.tilt(query), dim=0)
    direct = head.value @ (tilted @ tokens)
    formula = head.linear_limit(Gaussian(mean, root @ root.mT))
    affine = formula(query)
    return float((direct - affine).norm() / direct.norm())
