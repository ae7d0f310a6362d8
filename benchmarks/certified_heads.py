"""Real heads to certify: captured, compressed, and asked with later queries."""

import dataclasses

import torch
from torch import Tensor

from largeprompt.audit.limits import Answer
from largeprompt.compress.calibrated import CalibratedLimit
from largeprompt.compress.compact import Compact
from largeprompt.compress.prompt import LayerPrompt
from largeprompt.compress.sets import merge
from largeprompt.hf import load_model, load_text
from largeprompt.hf.attention import LayerRecord, recording

LAYERS = (1, 9, 17, 25)
TOKENS, FITTED = 8192, 128
BUDGET = 0.1


def captured(text: str) -> list[LayerRecord]:
    """Return a few layers' queries, keys and values."""
    model, tokenizer, _ = load_model("smollm2")
    tokens = tokenizer(load_text(text).content, return_tensors="pt").input_ids
    kept: list[LayerRecord] = []

    def keep(record: LayerRecord) -> None:
        if record.layer in LAYERS:
            copies = {
                name: getattr(record, name).clone()
                for name in ("query", "key", "value")
            }
            kept.append(dataclasses.replace(record, **copies))

    with torch.inference_mode(), recording(model, keep):
        model.base_model(input_ids=tokens[:, :TOKENS], use_cache=False)
    return kept


def compressed(record: LayerRecord, n: int) -> Compact:
    """Compress the first `n` tokens of a layer."""
    heads = len(record.key)
    query = record.query[:, n - FITTED : n].unflatten(0, (heads, -1))
    valid = torch.ones(heads, n, dtype=torch.bool)
    key, value = record.key[:, :n], record.value[:, :n]
    prompt = LayerPrompt(key, value, valid, query, record.scale)
    return CalibratedLimit().compress(prompt, torch.full((heads,), BUDGET * n))


def among(record: LayerRecord, tilt: Tensor, start: int, stop: int, at: int) -> Answer:
    """Answer exactly over the tokens `start` to `stop`, from the position `at` on."""
    key, value = (x[:, None, start:stop] for x in (record.key, record.value))
    position = at + torch.arange(tilt.shape[-2])
    future = torch.arange(start, stop) > position[:, None]
    logits = (tilt @ key.mT).masked_fill(future, -torch.inf)
    return Answer(logits.logsumexp(-1), logits.softmax(-1) @ value)


def joined(one: Answer, other: Answer) -> Answer:
    """Merge the answers of two disjoint sets of tokens."""
    masses = torch.stack([one.log_mass, other.log_mass], -1)
    return merge(Answer(masses, torch.stack([one.output, other.output], -2)))


def norms(vectors: Tensor) -> Tensor:
    """Return the length of each vector."""
    return torch.linalg.vector_norm(vectors, dim=-1)


@dataclasses.dataclass(frozen=True, eq=False)
class Asked:
    """Queries after a compression point, asked of what is left and of everything.

    Attributes:
        tilt: The queries, `b g m k`.
        exact: What atoms and later tokens answer.
        answer: What they and the summaries answer.
        true: What all tokens answer.
    """

    tilt: Tensor
    exact: Answer
    answer: Answer
    true: Tensor

    @property
    def error(self) -> Tensor:
        """The error of each output, in the units of the values."""
        return norms(self.answer.output - self.true)


def ask(record: LayerRecord, compact: Compact, n: int, first: int, last: int) -> Asked:
    """Ask the queries `first` to `last` of a prompt compressed at `n`."""
    tilt = record.scale * record.query[:, first:last]
    tilt = tilt.unflatten(0, (len(record.key), -1))
    later = among(record, tilt, n, last, first)
    atoms = Compact(compact.atoms, None).answer(tilt)
    return Asked(
        tilt,
        joined(atoms, later),
        joined(compact.answer(tilt), later),
        among(record, tilt, 0, last, first).output,
    )
