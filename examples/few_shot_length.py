"""How long must my few-shot prompt be?

Each example in the prompt is a pair (x, y) of a linear regression that differs from
prompt to prompt. Three predictors read n of them: linear attention at its optimum,
softmax attention with the same parameters, and Bayes, which no predictor beats. No
prompt is drawn for the first two; the answer is the first length at which the excess of
softmax attention over the noise is below a share of what it is without a prompt.

    python examples/few_shot_length.py
"""

from collections.abc import Sequence
from pathlib import Path

import altair as alt
import torch

from largeprompt import icl
from largeprompt.report.rendering import rendered

OUT = Path("out/examples/few_shot_length.svg")
LENGTHS = (5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560)


def main(
    out: Path = OUT,
    lengths: Sequence[int] = LENGTHS,
    share: float = 0.1,
    draws: int = 4000,
) -> int | None:
    """Draw the excess risks against n; return the first length below the share."""
    task = icl.preset("paper-intended").task
    floor = task.target_noise_variance
    blind = float((task.task_cov * task.query_cov).sum())  # predicting 0
    rows, enough = [], None
    for n in lengths:
        bilinear, value = icl.reading_head(icl.linear_optimum(task, n))
        source = torch.Generator().manual_seed(0)
        softmax = icl.population_risk(task, n, source).estimate(bilinear, value)
        risks = {
            "softmax attention": softmax.value,
            "linear attention": float(icl.linear_risk(task, n, bilinear, value)),
            "Bayes": icl.bayes_risk(task, n, draws, source).value,
        }
        rows += [
            {"n": n, "predictor": name, "excess": (risk - floor) / blind}
            for name, risk in risks.items()
        ]
        if enough is None and (softmax.value - floor) / blind <= share:
            enough = n
    answer = (
        f"{enough:,} examples" if enough else f"more than {max(lengths):,} examples"
    )
    x = alt.X("n:Q", title="examples in the prompt").scale(type="log", nice=False)
    y = alt.Y("excess:Q", title="excess risk over that without a prompt")
    legend = alt.Legend(title=None, symbolType="stroke", orient="top")
    lines = alt.Chart(alt.InlineData(values=rows)).mark_line(point=True)
    target = alt.Chart(alt.InlineData(values=[{"excess": share}]))
    chart = lines.encode(
        x=x.axis(values=list(lengths), format=",d"),
        y=y.scale(type="log").axis(tickCount=5),
        color=alt.Color("predictor:N", sort=None, legend=legend),
        strokeDash=alt.StrokeDash("predictor:N", sort=None, legend=legend),
    ) + target.mark_rule(strokeDash=[2, 3]).encode(y="excess:Q")
    picture = chart.properties(width=560, height=320).to_dict()
    title = f"Softmax attention needs {answer} to be within {share:.0%}"
    about = "regression in 5 dimensions, covariance 0.5^|i-j|, noise variance 0.1"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(rendered(picture, title, about, out.suffix))
    return enough


if __name__ == "__main__":
    print(main(), OUT)
