"""Halve the cache of a chat with a long system prompt: what does it cost?

The system prompt is read once, compressed before any question is seen, and frozen; each
question goes on from a clone. Its next-token distributions are compared with those of
the exact cache, position by position.

    python examples/halved_cache.py
"""

from collections.abc import Sequence
from pathlib import Path

import altair as alt
import torch

from largeprompt import LargePromptCache, load_model
from largeprompt.hf import cache_attention, load_text
from largeprompt.report.rendering import rendered

OUT = Path("out/examples/halved_cache.svg")
QUESTIONS = (
    "What does the president say about the public debt?",
    "Summarise the relations with the nations of Europe in one sentence.",
    "Which measures does the address recommend to the Congress?",
    "Write a short poem about the sea.",
)


def main(
    out: Path = OUT,
    model: str = "smollm2",
    tokens: int = 2048,
    budgets: Sequence[float] = (0.1, 0.25, 0.5),
    questions: Sequence[str] = QUESTIONS,
) -> dict[float, float]:
    """Draw divergence against bytes; return the mean divergence at each budget."""
    loaded = load_model(model)
    rules = "Answer from this archive.\n" + load_text("speeches").content
    prompt = loaded.tokenizer(rules[: 8 * tokens], return_tensors="pt").input_ids
    prompt = prompt[:, :tokens]
    asked = [
        loaded.tokenizer(f"\n\nQuestion: {q}\nAnswer:", return_tensors="pt").input_ids
        for q in questions
    ]
    rows, means = [], {}
    with torch.inference_mode(), cache_attention(loaded.model):

        def answers(budget: float) -> tuple[LargePromptCache, list[torch.Tensor]]:
            cache = LargePromptCache(loaded.model, budget=budget, minimum_length=1)
            loaded.model(prompt, cache=cache, logits_to_keep=1)
            cache.compress()
            stored = cache.freeze()
            logits = [loaded.model(ids, cache=stored.clone()).logits for ids in asked]
            return stored, [one[0].log_softmax(-1) for one in logits]

        exact = answers(1.0)[1]
        for budget in budgets:
            stored, found = answers(budget)
            share = stored.report().share
            pairs = zip(questions, exact, found, strict=True)
            divergences = [
                {
                    "question": q,
                    "share": share,
                    "kl": float((p.exp() * (p - g)).sum(-1).mean()),
                }
                for q, p, g in pairs
            ]
            rows += divergences
            means[budget] = sum(row["kl"] for row in divergences) / len(divergences)
    x = alt.X("share:Q", title="bytes, as a share of the exact cache")
    y = alt.Y("kl:Q", title="divergence of the next token (nats)")
    chart = alt.Chart(alt.InlineData(values=rows)).mark_line(point=True)
    chart = chart.encode(
        x=x.scale(type="log", nice=False).axis(format="%", values=list(budgets)),
        y=y.scale(type="log").axis(format="~g"),
        color=alt.Color("question:N", title=None, sort=None).legend(
            labelLimit=480, orient="bottom", columns=1
        ),
    )
    picture = chart.properties(width=560, height=300).to_dict()
    title = f"A system prompt of {prompt.shape[1]:,} tokens, compressed"
    about = f"{loaded.description.name}; questions come after compression"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(rendered(picture, title, about, out.suffix))
    return means


if __name__ == "__main__":
    print(main(), OUT)
