"""Decoding by its definition, a token and a set at a time, in float64 numpy."""

import numpy as np
import torch

from largeprompt.audit.limits import Answer
from largeprompt.compress.sets import LinearSets
from largeprompt.kernels import Tail

EPS = torch.finfo(torch.float32).eps


def set_answer(sets: LinearSets, head: int, group: int, c: int, u: np.ndarray):
    """Log-mass and output of one set."""

    def field(name: str) -> np.ndarray:
        return getattr(sets, name)[head].double().numpy()

    z = field("directions")[c] @ u
    s = np.sqrt(field("variances")[c] @ z**2)
    gain, damping = field("gain")[group, c], field("damping")[group, c]
    grid = np.linspace(0, field("reach")[c], len(gain))
    a = np.interp(s, grid, gain)
    if s > grid[-1]:
        slope = (gain[-1] - gain[-2]) / (grid[-1] - grid[-2])
        a = gain[-1] + (s - grid[-1]) * slope
    mass = field("base")[group, c] + field("key_mean")[c] @ u + a
    shift = field("responses")[c] @ z
    return mass, field("value_mean")[c] + np.interp(s, grid, damping) * shift


def decode(
    tilt: torch.Tensor,
    tokens: list[tuple[torch.Tensor, torch.Tensor]],
    sets: LinearSets | None,
    left: torch.Tensor | None,
    later: Tail | None,
) -> Answer:
    """Answer over each head's tokens, the sets marked in `left`, and the tail."""
    heads, groups = tilt.shape[:2]
    width = tokens[0][1].shape[-1]
    log_mass = torch.full((heads, groups), -torch.inf, dtype=torch.float64)
    output = torch.zeros(heads, groups, width, dtype=torch.float64)
    for head in range(heads):
        key, value = (tensor.double().numpy() for tensor in tokens[head])
        if later is not None:
            used = slice(int(later.lengths[head]))
            key = np.concatenate([key, later.key[head, used].double().numpy()])
            value = np.concatenate([value, later.value[head, used].double().numpy()])
        for group in range(groups):
            u = tilt[head, group].double().numpy()
            parts = list(zip(key @ u, value, strict=True))
            if sets is not None:
                parts += [
                    set_answer(sets, head, group, c, u)
                    for c in range(sets.key_mean.shape[1])
                    if left is None or left[head, c]
                ]
            masses = np.array([mass for mass, _ in parts])
            if len(masses) == 0 or np.isneginf(masses).all():
                continue
            weights = np.exp(masses - masses.max())
            outputs = np.array([out for _, out in parts])
            log_mass[head, group] = np.log(weights.sum()) + masses.max()
            output[head, group] = torch.from_numpy(weights @ outputs / weights.sum())
    return Answer(log_mass, output)


def agrees(answer: Answer, exact: Answer, largest_logit_sum: float, width: int) -> bool:
    """Whether an answer is as near as float32 sums in any order must be.

    A dot product of `width` terms errs by at most `width` roundings of the sum of the
    terms' sizes; weights err by as much, relatively, and so does a mean of values.
    """
    rounding = 2 * EPS * (width + 8) * (1 + largest_logit_sum)
    finite = exact.log_mass.isfinite()
    if not torch.equal(finite, answer.log_mass.isfinite()):
        return False
    mass_error = (answer.log_mass - exact.log_mass)[finite].abs()
    size = exact.output.abs().max().clamp_min(1)
    output_error = (answer.output - exact.output).abs() / size
    return bool((mass_error <= rounding).all() and (output_error <= rounding).all())
