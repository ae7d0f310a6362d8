"""Certificates on real heads: how often they hold, and how wide they are.

SmolLM2 reads 8,192 tokens; the first 7,680 are compressed to a tenth, and later
queries, which no method has seen, are certified: the next 64 by draws, the next 512 by
held-out errors. Those come from rehearsals: the same compression 512 tokens earlier, or
1,024, and the 512 queries since. Each row is over the layers, with 9 heads each.
"""

import statistics
from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.certified_heads import (
    BUDGET,
    FITTED,
    LAYERS,
    TOKENS,
    Asked,
    ask,
    captured,
    compressed,
    norms,
)
from benchmarks.record import Row
from largeprompt.audit.limits import Answer
from largeprompt.compress.certificate import Certificate
from largeprompt.compress.certificate_asymptotic import asymptotic_certificate
from largeprompt.compress.certificate_control import (
    AffineValues,
    controlled_certificate,
)
from largeprompt.compress.certificate_envelope import EightBitKeys, LogitEnvelope
from largeprompt.compress.certificate_open import opened
from largeprompt.compress.certificate_proven import proven_certificate
from largeprompt.compress.certificate_tokens import HeldTokens
from largeprompt.compress.compact import Compact
from largeprompt.compress.quantile import held_out_certificate, summarised_share
from largeprompt.hf.attention import LayerRecord

TESTS = [
    "tests/compress/test_certificate_parts.py",
    "tests/compress/test_certificate_quantile.py",
    "tests/compress/test_certificate_sampled.py",
]
DISTRIBUTIONS = ["largeprompt", "numpy", "scipy", "torch", "transformers"]
TEXTS = ("prose", "code", "speeches")
COMPRESSED, AHEAD = 7680, 64
REHEARSALS = 2
READ = 256  # values read a query
DELTAS = (0.05, 0.2)

Sampler = Callable[[Tensor, HeldTokens, Answer, float, torch.Generator], Certificate]
Found = dict[str, list[float]]


def measure() -> list[Row]:
    """Certify held-out queries of both texts."""
    rows = []
    for text in TEXTS:
        found: Found = {}
        generator = torch.Generator().manual_seed(0)
        for record in captured(text):
            compact = compressed(record, COMPRESSED)
            near = ask(record, compact, COMPRESSED, COMPRESSED, COMPRESSED + AHEAD)
            add(found, "error of the compressed head", near.error / norms(near.true))
            while_held(found, record, compact, near, generator)
            once_gone(found, record, compact)
        rows += [row(text, name, values) for name, values in found.items()]
    return rows


def add(found: Found, name: str, values: Tensor) -> None:
    """Add one layer: the mean of a coverage, the median of anything else."""
    middle = values.mean() if name.startswith("coverage") else values.median()
    found.setdefault(name, []).append(float(middle))


def uniform(tilt, tokens, kept, delta, generator) -> Certificate:
    """Draw uniformly."""
    equal = torch.zeros(len(tilt), len(tokens.key))
    return asymptotic_certificate(tilt, tokens, equal, kept, READ, delta, generator)


def eight_bits(tilt, tokens, kept, delta, generator) -> Certificate:
    """Open half by rounded keys, draw half; central limit theorem."""
    wide = EightBitKeys.of(tokens.key).envelope(tilt)
    envelope, exact = opened(tilt, tokens, wide, kept, READ // 2)
    return asymptotic_certificate(
        tilt, tokens, envelope.upper, exact, READ // 2, delta, generator
    )


def eight_bits_proven(tilt, tokens, kept, delta, generator) -> Certificate:
    """Open half by rounded keys, draw half; proven."""
    wide = EightBitKeys.of(tokens.key).envelope(tilt)
    envelope, exact = opened(tilt, tokens, wide, kept, READ // 2)
    return proven_certificate(
        tilt, tokens, envelope, exact, READ // 2, delta, generator
    )


def keys_and_control(tilt, tokens, kept, delta, generator) -> Certificate:
    """Open half by the keys, draw half of the residuals; proven."""
    known = LogitEnvelope.exact(tilt, tokens.key)
    envelope, exact = opened(tilt, tokens, known, kept, READ // 2)
    values = AffineValues.fit(tokens.key, tokens.value)
    return controlled_certificate(
        tilt, values, envelope, exact, READ // 2, delta, generator
    )


SAMPLERS: dict[str, Sampler] = {
    "uniform draws, asymptotic": uniform,
    "8-bit keys, asymptotic": eight_bits,
    "8-bit keys, proven": eight_bits_proven,
    "keys and control variate, proven": keys_and_control,
}


def while_held(
    found: Found,
    record: LayerRecord,
    compact: Compact,
    asked: Asked,
    generator: torch.Generator,
) -> None:
    """Certify by drawing from the tokens."""
    sets = [closed(record, compact, head) for head in range(len(record.key))]
    for name, sampler in SAMPLERS.items():
        for delta in DELTAS:
            holds, bounds = [], []
            for head, tokens in enumerate(sets):
                tilt, true = asked.tilt[head].flatten(0, 1), asked.true[head]
                exact = Answer(
                    asked.exact.log_mass[head].flatten(),
                    asked.exact.output[head].flatten(0, 1),
                )
                ball = sampler(tilt, tokens, exact, delta, generator)
                off = norms(ball.centre - true.flatten(0, 1))
                holds.append((off <= ball.radius).float())
                answer = asked.answer.output[head].flatten(0, 1)
                bounds.append(ball.relative_error(answer))
            add(found, f"coverage, delta {delta}, {name}", torch.cat(holds))
            add(found, f"certified error, delta {delta}, {name}", torch.cat(bounds))


def closed(record: LayerRecord, compact: Compact, head: int) -> HeldTokens:
    """Return the tokens that are no atoms of a head."""
    atoms = {key.numpy().tobytes() for key in compact.atoms.of(head)[0]}
    keys = record.key[head, :COMPRESSED]
    rest = torch.tensor([key.numpy().tobytes() not in atoms for key in keys])
    return HeldTokens.of(keys[rest], record.value[head, :COMPRESSED][rest])


def once_gone(found: Found, record: LayerRecord, compact: Compact) -> None:
    """Certify from the errors that rehearsals held out."""
    gap = TOKENS - COMPRESSED
    cuts = [COMPRESSED - (i + 1) * gap for i in range(REHEARSALS)]
    pasts = [ask(record, compressed(record, n), n, n, n + gap) for n in cuts]
    errors = torch.stack([past.error for past in pasts], -2)
    shares = torch.stack([share(past) for past in pasts], -2)
    asked = ask(record, compact, COMPRESSED, COMPRESSED, TOKENS)
    for delta in DELTAS:
        for count in range(1, REHEARSALS + 1):
            label = f"delta {delta}, held out, rehearsals: {count}"
            ball = held_out_certificate(
                asked.answer.output,
                share(asked),
                errors[..., :count, :],
                shares[..., :count, :],
                delta,
            )
            holds = (asked.error <= ball.radius).float()
            add(found, f"coverage, {label}", holds)
            bound = ball.relative_error(asked.answer.output)
            add(found, f"certified error, {label}", bound)


def share(asked: Asked) -> Tensor:
    """Return the summaries' share of each query."""
    return summarised_share(asked.exact.log_mass, asked.answer.log_mass)


def row(text: str, quantity: str, values: list[float]) -> Row:
    """A row over the layers."""
    details = {"layers": LAYERS, "values": values, "seed": 0}
    details |= {"read": READ, "budget": BUDGET, "fitted": FITTED}
    return Row(
        "certificates",
        f"{text}: {quantity}",
        "",
        statistics.median(values),
        min(values),
        max(values),
        details,
    )
