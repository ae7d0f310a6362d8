r"""The risk of a head whose logits do not read labels: one integral, no draws at all.

When $U$ sends the query $(x_q, 0)$ to tilts $(A x_q, 0)$ the logit variance
$s^2 = x_q^\top A^\top S A x_q$ does not depend on the task, so the task is averaged in
closed form, and what is left depends on the query through the law of one quadratic form
(docs/theory.md, section 11.3). Trained and constructed heads are of this kind.
"""

import math

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.icl.cases import check_gaussian
from largeprompt.icl.estimates import RiskEstimate, exact
from largeprompt.icl.polynomials import limit_prediction, limit_risk, value_quadratic
from largeprompt.icl.tasks import RegressionTask
from largeprompt.laws import gaussian_law
from largeprompt.laws.exact import LARGEST_LOGIT_VARIANCE
from largeprompt.laws.quadratic_form import density

NODES = 64  # of Gauss and Legendre over the standard deviation of the logits
NEGLIGIBLE = 40.0  # nats: queries as rare add nothing
SMALLEST_SHARE = 1e-12  # of the largest eigenvalue: smaller ones are zero


def label_blind_risk(
    task: RegressionTask,
    n: float,
    bilinear: Float[Tensor, "d+1 d+1"],
    value: Float[Tensor, " d+1"],
) -> RiskEstimate:
    r"""Return the exact risk of a softmax head whose logits do not read labels.

    Args:
        task: The law of the prompts, with Gaussian inputs.
        n: Prompt length from 1 to $10^{15}$, or infinity.
        bilinear: $U$ with every scale folded in; its last row acts on labels and is
            zero.
        value: $v$.

    Raises:
        ValueError: The last row of `bilinear` is not zero, the shapes do not fit, or
            logit variances above 400 matter.

    Source: derived in docs/theory.md, section 11.3.
    """
    check_gaussian(task)
    limit = limit_prediction(task, bilinear, value)
    if bool((bilinear[-1, :-1] != 0).any()):
        raise ValueError(
            "the logits of a label-blind head must not read labels: the last row of "
            f"bilinear must be zero; got {bilinear[-1].tolist()}"
        )
    risk = limit_risk(task, bilinear, value)
    if n == math.inf:
        return exact(risk)
    w, variance = task.task_cov, value_quadratic(task, value, value).mean(task.task_cov)
    answers = limit.linear @ w  # E_w a c = x_q' (M_1 W) x_q
    squares = torch.outer(limit.constant, limit.constant) + answers @ limit.linear.mT
    form = bilinear[:-1, :-1]
    root = torch.linalg.cholesky(task.query_cov)
    spectrum, axes = torch.linalg.eigh(root.mT @ form.mT @ task.token_cov @ form @ root)
    seen = (root @ axes).numpy()
    # signs of the coordinates are fair coins: only the diagonals matter
    response = ((seen.T @ squares.numpy()) * seen.T).sum(-1)
    overlap = ((seen.T @ answers.numpy()) * seen.T).sum(-1)
    rest = _average(n, spectrum.numpy(), response, overlap, float(variance))
    return exact(risk + rest)


def _average(
    n: float,
    spectrum: np.ndarray,
    response: np.ndarray,
    overlap: np.ndarray,
    variance: float,
) -> float:
    r"""Return $E[\epsilon(s^2) P + \phi(s^2)(t - 2 P + 2 Q)]$.

    $s^2 = \sum \lambda_i \xi_i^2$, $P = \sum p_i \xi_i^2$, $Q = \sum q_i \xi_i^2$.
    """
    alive = spectrum > SMALLEST_SHARE * max(spectrum[-1], 1e-300)
    missed = 2 * (response - overlap)
    constant = response[~alive].sum(), missed[~alive].sum()
    if not alive.any():
        law = gaussian_law(n, 0.0)
        plain = law.parallel_excess * constant[0]
        return float(plain + law.inverse_ess * (variance - constant[1]))
    eigenvalues = spectrum[alive]
    largest = 2 * NEGLIGIBLE * eigenvalues[-1] + 2 * eigenvalues.sum()
    if largest > LARGEST_LOGIT_VARIANCE:
        raise ValueError(
            f"logit variances above {LARGEST_LOGIT_VARIANCE:g} must not matter; "
            f"got queries up to {largest:g}: the bilinear form is too large"
        )
    nodes, measure = np.polynomial.legendre.leggauss(NODES)
    deviation = math.sqrt(largest) * (nodes + 1) / 2
    measure = measure * math.sqrt(largest) * deviation  # ds^2 = 2 s ds
    law = gaussian_law(n, deviation**2)
    responses = density(deviation**2, eigenvalues, response[alive])
    misses = density(deviation**2, eigenvalues, missed[alive])
    plain = responses.plain
    total = law.parallel_excess * (responses.weighted + constant[0] * plain)
    total += law.inverse_ess * ((variance - constant[1]) * plain - misses.weighted)
    return float(measure @ total)
