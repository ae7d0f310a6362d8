r"""Linear attention trained on finitely many tasks, in the proportional limit.

Lu, Letey, Zavatone-Veth, Maiti and Pehlevan (2024): dimension $d$, prompts of length
$\alpha d$, $\tau d^2$ of them in training, $\kappa d$ distinct tasks, all growing
together.
"""

import math


def ridgeless_risk(
    prompts: float, length: float, diversity: float, noise_variance: float
) -> float:
    r"""Return the risk on new tasks after ridgeless training, in the limit.

    With $x = (1 + \rho)/\alpha$, $\mu = x M(x, \kappa/\tau)$ and
    $M(x, k) = 2 / [(x + 1 - 1/k) + \sqrt{(x + 1 - 1/k)^2 + 4 x/k}]$,

    $$ \frac{\tau (1 + x)}{1 - \tau} \Big[1 - \tau (1 - \mu)^2
       - \mu \frac{x - \rho}{x}\Big] - 2 \tau (1 - \mu) + \rho + 1 . $$

    Args:
        prompts: $\tau$, training prompts over $d^2$; strictly between 0 and 1.
        length: $\alpha$, prompt length over $d$; above 0.
        diversity: $\kappa$, distinct training tasks over $d$; above 0.
        noise_variance: $\rho \ge 0$.

    Raises:
        ValueError: An argument is outside its range.

    Source: Lu et al. (2024), arXiv:2405.11751.
    """
    if not 0 < prompts < 1:
        raise ValueError(f"prompts must be strictly between 0 and 1; got {prompts}")
    if not (0 < length < math.inf and 0 < diversity < math.inf):
        raise ValueError(
            "length and diversity must be finite numbers above 0; "
            f"got {length} and {diversity}"
        )
    if not 0 <= noise_variance < math.inf:
        raise ValueError(
            "noise_variance must be a finite number of at least 0; "
            f"got {noise_variance}"
        )
    x = (1 + noise_variance) / length
    share = prompts / diversity  # 1/k
    centre = x + 1 - share
    mu = 2 * x / (centre + math.sqrt(centre**2 + 4 * x * share))
    kept = 1 - prompts * (1 - mu) ** 2 - mu * (x - noise_variance) / x
    return (
        prompts * (1 + x) / (1 - prompts) * kept
        - 2 * prompts * (1 - mu)
        + noise_variance
        + 1
    )
