"""Train at n = 20, deploy at n = 2000: what is lost?

A softmax head is trained on prompts of 20 examples, to the end of its gradient flow,
and then reads prompts of other lengths. Beside it: softmax attention with the optimum
of linear attention at each length, and the risk that the trained head keeps however
long the prompt.

    python examples/short_to_long.py
"""

from collections.abc import Sequence
from pathlib import Path

import altair as alt
import torch

from largeprompt import icl
from largeprompt.icl.curves import CurveSettings, training_curve
from largeprompt.icl.law_splines import law_splines
from largeprompt.icl.parameters import Separate
from largeprompt.report.rendering import rendered

OUT = Path("out/examples/short_to_long.svg")
LENGTHS = (5, 10, 20, 50, 100, 200, 500, 1000, 2000)


def main(
    out: Path = OUT,
    trained: int = 20,
    lengths: Sequence[int] = LENGTHS,
    time: float = 300.0,
    points: int = 1024,
) -> dict[str, float]:
    """Draw the risks against the length; return those at the longest one."""
    setting = icl.preset("paper-intended")
    task, factor = setting.task, setting.conventions.logit_scale.factor(5)
    start = Separate.draw(5, torch.Generator().manual_seed(0))
    settings = CurveSettings(task, start, factor, (0.0, time), 0, points, 16 * points)
    curve = training_curve(settings, trained, law_splines([trained])[0])
    bilinear, value = curve.trajectory.parameters[-1].merge(factor).tensors().values()
    source = torch.Generator().manual_seed(1)
    deployed = icl.length_curve(task, bilinear, value, lengths, source, count=points)
    rows = []
    for n, softmax in zip(lengths, deployed.softmax, strict=True):
        best = icl.reading_head(icl.linear_optimum(task, n))
        source = torch.Generator().manual_seed(1)
        risks = {
            f"trained at n = {trained}": softmax.value,
            "softmax at the linear optimum of n": icl.population_risk(
                task, n, source, points
            )
            .estimate(*best)
            .value,
            f"trained at n = {trained}, infinite prompt": deployed.limit,
            "noise": task.target_noise_variance,
        }
        rows += [{"n": n, "head": name, "risk": r} for name, r in risks.items()]
    x = alt.X("n:Q", title="examples in the prompt").scale(type="log", nice=False)
    y = alt.Y("risk:Q", title="mean square error").scale(type="log", nice=False)
    legend = alt.Legend(title=None, symbolType="stroke", orient="top", labelLimit=260)
    chart = alt.Chart(alt.InlineData(values=rows)).mark_line(point=True)
    chart = chart.encode(
        x=x.axis(values=list(lengths), format=",d"),
        y=y.axis(values=[0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5]),
        color=alt.Color("head:N", sort=None, legend=legend),
        strokeDash=alt.StrokeDash("head:N", sort=None, legend=legend),
    )
    picture = chart.properties(width=560, height=320).to_dict()
    title = f"Trained at n = {trained}, deployed at n = {max(lengths):,}"
    about = "regression in 5 dimensions, covariance 0.5^|i-j|, noise variance 0.1"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(rendered(picture, title, about, out.suffix))
    return {row["head"]: row["risk"] for row in rows if row["n"] == max(lengths)}


if __name__ == "__main__":
    print(main(), OUT)
