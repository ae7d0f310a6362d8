"""A sentence hidden in a long text, asked for after the text was compressed.

What a compressed cache answers is compared with what the exact one answers: a model too
small to find the sentence at all says nothing about compression.
"""

from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor
from transformers import Cache, DynamicCache, PreTrainedModel, PreTrainedTokenizerBase

from largeprompt.hf.attention_cache import cache_attention
from largeprompt.hf.cache import LargePromptCache
from largeprompt.hf.evaluation_methods import Cached, cache_settings
from largeprompt.hf.evaluation_reading import Reading, fill, next_logits

PASSKEY = "48213"
SENTENCE = f"\n\nThe pass key is {PASSKEY}. Remember it: {PASSKEY} is the pass key.\n\n"
QUESTION = "\n\nWhat is the pass key? The pass key is"
ANSWER = 8  # tokens


def hidden(
    tokenizer: PreTrainedTokenizerBase,
    text: Int64[Tensor, " n"],
    prompt: int,
    depth: float,
) -> Int64[Tensor, " m"]:
    """Return a prompt of a text with the sentence in it, and the question after it.

    Args:
        tokenizer: What turns sentence and question into tokens.
        text: The text's tokens, as many as the prompt at least.
        prompt: How many tokens the prompt has.
        depth: Where the sentence stands: 0 is the beginning, 1 the end.

    Raises:
        ValueError: The depth is not in [0, 1], or the prompt too short.
    """
    sentence, question = (
        torch.tensor(tokenizer(part, add_special_tokens=False)["input_ids"])
        for part in (SENTENCE, QUESTION)
    )
    if not 0 <= depth <= 1:
        raise ValueError(f"depths must be between 0 and 1; got {depth}")
    room = prompt - len(sentence)
    if room < 1:
        raise ValueError(
            f"a pass key needs a prompt of more than {len(sentence)} tokens; "
            f"got {prompt}"
        )
    place = max(1, round(depth * room))  # what begins a text stays first
    return torch.cat([text[:place], sentence, text[place:room], question])


def answered(
    model: PreTrainedModel,
    reading: Reading,
    method: Cached | None,
    budget: float,
) -> list[int]:
    """Return the tokens that follow the question greedily.

    Args:
        model: The model.
        reading: The prompt and the question.
        method: How the prompt is compressed; None keeps it exact.
        budget: The share of the bytes that each KV head may hold.
    """
    with cache_attention(model):
        cache: Cache
        if method is None:
            cache = DynamicCache(config=model.config.get_text_config(decoder=True))
            fill(cache, reading, model.device)
        else:
            settings = cache_settings(method, budget)
            cache = LargePromptCache(model, minimum_length=1, **settings)
            fill(cache, reading, model.device)
            cache.compress()
        answer: list[int] = []
        given = reading.continuation
        for _ in range(ANSWER):
            best = int(next_logits(model, cache, given)[-1].argmax())
            answer.append(best)
            given = torch.tensor([best])
    return answer


def passkey_row(
    tokenizer: PreTrainedTokenizerBase, answer: list[int], exact: list[int]
) -> dict[str, Any]:
    """Return what an answer is worth: whether it is the exact one's, and the key."""
    said = tokenizer.decode(answer)
    return {
        "answer": said,
        "exact_answer": tokenizer.decode(exact),
        "as_exact": answer == exact,
        "found": PASSKEY in said,
    }
