"""Exact averages over prompts: every random number runs through a quadrature rule.

Shares no code with the library: the definition of a prediction on prompts made of
nodes, and their weights.
"""

import functools
import math

import numpy as np
import torch

from largeprompt.icl import Prompts, RegressionTask, TokenLaw


def tensor(values) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def normal_rule(nodes: int):
    x, weights = np.polynomial.hermite_e.hermegauss(nodes)
    return x, weights / weights.sum()


def coordinate_rule(law: TokenLaw, nodes: int):
    if law is TokenLaw.RADEMACHER:
        return np.array([-1.0, 1.0]), np.array([0.5, 0.5])
    if law is TokenLaw.UNIFORM:
        x, weights = np.polynomial.legendre.leggauss(nodes)
        return math.sqrt(3) * x, weights / 2
    return normal_rule(nodes)


def product(rules):
    """All combinations of nodes, one a row, and their weights."""
    nodes = np.stack(np.meshgrid(*(r[0] for r in rules), indexing="ij"), -1)
    weights = functools.reduce(np.multiply.outer, (r[1] for r in rules))
    return tensor(nodes.reshape(-1, len(rules))), tensor(weights.ravel())


def every_prompt(task: RegressionTask, n: int, nodes: int, query_nodes: int):
    """Prompts of all combinations of nodes; exact for polynomials of low degree."""
    d = task.dim
    inputs, query = (coordinate_rule(task.token_law, k) for k in (nodes, query_nodes))
    rules = [normal_rule(nodes)] * (d + n) + [inputs] * (n * d) + [query] * d
    values, weights = product(rules)
    w, noise, x, x_query = values.split([d, n, n * d, d], dim=-1)
    root = torch.linalg.cholesky
    w = w @ root(task.task_cov).mT
    x = x.reshape(-1, n, d) @ root(task.token_cov).mT
    x_query = x_query @ root(task.query_cov).mT
    y = (x * w.unsqueeze(1)).sum(-1) + math.sqrt(task.noise_variance) * noise
    return Prompts(x, y, x_query, (w * x_query).sum(-1), w), weights


def prompts_of_a_case(task: RegressionTask, w, x_query, n: int, nodes: int):
    """Prompts of all combinations of nodes, given the task vector and the query."""
    d = task.dim
    values, weights = product([normal_rule(nodes)] * (n * (d + 1)))
    noise, x = values.split([n, n * d], dim=-1)
    x = x.reshape(-1, n, d) @ torch.linalg.cholesky(task.token_cov).mT
    y = x @ w + math.sqrt(task.noise_variance) * noise
    many = len(weights), d
    answer = (w @ x_query).expand(many[0])
    return Prompts(x, y, x_query.expand(many), answer, w.expand(many)), weights


def square_error(prompts, weights, prediction, task):
    """The mean square error, target noise included."""
    error = weights @ (prediction - prompts.y_query).square()
    return error + task.target_noise_variance
