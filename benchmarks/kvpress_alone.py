"""What kvpress does to a model's next-token distribution: run in its own environment.

    PYTHON benchmarks/kvpress_alone.py MODEL TOKENS --prompt-tokens 7680 --budgets 0.05

Imports nothing of largeprompt, which needs a later transformers than kvpress allows.
`kvpress_rows` calls it. One exact prefill a text: each press is given what its own hook
is given after each layer, so that all of them share it. Then the continuation is
teacher-forced over what each press kept, and compared with the exact cache. Prints one
JSON object a line.
"""

import argparse
import importlib.metadata
import json
import pathlib
import time
from typing import Any

import torch
from kvpress import (  # pyright: ignore[reportMissingImports] - not installed beside us
    ExpectedAttentionPress,
    SnapKVPress,
    StreamingLLMPress,
    TOVAPress,
)
from transformers import AutoModelForCausalLM, DynamicCache

PRESSES = {
    "StreamingLLM": StreamingLLMPress,
    "SnapKV": SnapKVPress,
    "ExpectedAttention": ExpectedAttentionPress,
    "TOVA": TOVAPress,
}
Kept = dict[int, tuple[torch.Tensor, torch.Tensor]]


def prefill(
    model: Any, prompt: torch.Tensor, presses: dict[Any, Any]
) -> tuple[DynamicCache, dict[Any, Kept], dict[Any, float]]:
    """Prefill once; return the exact cache, and what each press keeps and costs."""
    kept: dict[Any, Kept] = {name: {} for name in presses}
    seconds = dict.fromkeys(presses, 0.0)

    def hook(module: Any, _: Any, options: dict[str, Any], output: Any) -> None:
        layer = options["past_key_values"].layers[module.layer_idx]
        for name, press in presses.items():
            start = time.perf_counter()
            kept[name][module.layer_idx] = press.compress(
                module,
                options["hidden_states"],
                layer.keys,
                layer.values,
                output[1],
                options,
            )
            seconds[name] += time.perf_counter() - start

    hooks = []
    for layer in model.model.layers:
        layer.self_attn.rotary_emb = model.model.rotary_emb
        hooks.append(layer.self_attn.register_forward_hook(hook, with_kwargs=True))
    cache = DynamicCache(config=model.config)
    model.model(input_ids=prompt[None], past_key_values=cache)
    for handle in hooks:
        handle.remove()
    return cache, kept, seconds


def continuation(
    model: Any, cache: DynamicCache, tokens: torch.Tensor, start: int
) -> torch.Tensor:
    """Return the log-probabilities after each token of the continuation."""
    positions = torch.arange(start, start + len(tokens))[None]
    output = model(
        input_ids=tokens[None], past_key_values=cache, position_ids=positions
    )
    return output.logits[0].float().log_softmax(-1)


def cache_of(model: Any, kept: Kept) -> DynamicCache:
    """Return a cache that holds what a press kept."""
    cache = DynamicCache(config=model.config)
    for layer, (key, value) in sorted(kept.items()):
        cache.update(key, value, layer)
    return cache


def rows(
    model: Any, text: str, tokens: torch.Tensor, start: int, budgets: list[float]
) -> list[dict[str, Any]]:
    """Return a row for each press and budget on one text."""
    presses = {
        (name, budget): press(compression_ratio=1 - budget)
        for name, press in PRESSES.items()
        for budget in budgets
    }
    exact_cache, kept, seconds = prefill(model, tokens[:start], presses)
    rest = tokens[start:]
    exact = continuation(model, exact_cache, rest, start)
    exact_nll = nll(exact, rest)
    found = []
    for (name, budget), layers in kept.items():
        cache = cache_of(model, layers)
        held = sum(key.nbytes + value.nbytes for key, value in layers.values())
        answer = continuation(model, cache, rest, start)
        divergence = (exact.exp() * (exact - answer)).sum(-1)
        found.append(
            {
                "press": name,
                "budget": budget,
                "text": text,
                "prompt_tokens": start,
                "continuation": len(rest),
                "kl": float(divergence.mean()),
                "top1": float((exact.argmax(-1) == answer.argmax(-1)).double().mean()),
                "nll": nll(answer, rest),
                "nll_exact": exact_nll,
                "bytes": held,
                "build_s": seconds[name, budget],
            }
        )
    return found


def nll(log_probabilities: torch.Tensor, tokens: torch.Tensor) -> float:
    """Return the mean negative log-likelihood of the tokens after the first."""
    picked = log_probabilities[:-1].gather(-1, tokens[1:, None])
    return -float(picked.mean())


def main() -> None:
    """Run every press on every text of the token file and print the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("tokens", type=pathlib.Path)
    parser.add_argument("--prompt-tokens", type=int, required=True)
    parser.add_argument("--budgets", type=float, nargs="+", required=True)
    asked = parser.parse_args()
    model = AutoModelForCausalLM.from_pretrained(
        asked.model, dtype=torch.float32, attn_implementation="sdpa"
    ).eval()
    versions = {
        name: importlib.metadata.version(name)
        for name in ("kvpress", "torch", "transformers")
    }
    texts = json.loads(asked.tokens.read_text())
    with torch.inference_mode():
        for text, ids in texts.items():
            tokens = torch.tensor(ids)
            for row in rows(model, text, tokens, asked.prompt_tokens, asked.budgets):
                print(json.dumps({**row, "versions": versions}), flush=True)


if __name__ == "__main__":
    main()
