"""Is this head linear?

One head of a language model reads a text at several lengths. Its linear limit, with the
moments of every other token, is compared with attention over the tokens held out; the
exact law says what error to expect if the tokens were independent Gaussians.

    python examples/linear_head.py
"""

from collections.abc import Sequence
from pathlib import Path

import altair as alt

from largeprompt import audit_model, load_model
from largeprompt.hf import load_text
from largeprompt.report.rendering import rendered

OUT = Path("out/examples/linear_head.svg")
SERIES = {
    "limit_error_held_out": "measured, held out",
    "limit_error_law": "exact law of Gaussian tokens",
    "linear_error_kept": "measured, first and recent tokens kept",
}


def main(
    out: Path = OUT,
    model: str = "smollm2",
    layer: int = 0,
    head: int = 6,
    lengths: Sequence[int] = (128, 256, 512, 1024, 2048, 4096),
    eps: float = 0.1,
) -> str:
    """Draw the head's errors against the length; return the verdict on it."""
    loaded = load_model(model)
    result = audit_model(
        loaded.model,
        loaded.tokenizer,
        load_text("speeches"),
        lengths,
        layers=[layer],
        heads=[head],
        eps=eps,
        description=loaded.description,
    )
    heads = result.heads.to_pylist()
    rows = [
        {"n": row["n"], "error": row[column], "of": name}
        for row in heads
        for column, name in SERIES.items()
    ]
    legend = alt.Legend(title=None, symbolType="stroke", orient="top", labelLimit=260)
    lines = alt.Chart(alt.InlineData(values=rows)).mark_line(point=True)
    target = alt.Chart(alt.InlineData(values=[{"error": eps}]))
    x = alt.X("n:Q", title="tokens read").scale(type="log", nice=False)
    y = alt.Y("error:Q", title="error of the linear limit over the output")
    chart = lines.encode(
        x=x.axis(values=list(lengths), format=",d"),
        y=y.scale(type="log").axis(format="%", tickCount=5),
        color=alt.Color("of:N", sort=None, legend=legend),
        strokeDash=alt.StrokeDash("of:N", sort=None, legend=legend),
    ) + target.mark_rule(strokeDash=[2, 3]).encode(y="error:Q")
    picture = chart.properties(width=560, height=320).to_dict()
    verdict = heads[-1]["verdict"]
    title = f"{loaded.description.name}, layer {layer}, head {head}"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(rendered(picture, title, verdict, out.suffix))
    return verdict


if __name__ == "__main__":
    print(main(), OUT)
