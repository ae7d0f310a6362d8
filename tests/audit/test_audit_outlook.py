import pytest
import torch

from largeprompt.audit import audit_arrays
from largeprompt.audit.outlook import in_words, outlook, policy


def row(n, error, *, kept=1.0, law=None, needed=None, window=None):
    return {
        "n": n,
        "linear_error_in_sample": error / 2,
        "limit_error_held_out": error,
        "linear_error_kept": kept,
        "limit_error_law": error if law is None else law,
        "tokens_needed": needed,
        "window": window,
    }


def test_outlook_counts_what_was_measured_and_extrapolates_beyond():
    rows = [
        row(512, 0.2, needed=3000.0),
        row(2048, 0.05, needed=1000.0),
        row(2048, 0.3, needed=50_000.0),  # the law holds: there at 1e5
        row(2048, 0.3, law=0.1, needed=50_000.0),  # three times what the law says
        row(2048, 0.3, needed=50_000.0, window=512),  # the window is too short for it
        row(2048, 3.0),  # never
    ]
    told = outlook(rows, 0.1, context=4096)
    assert [(e["n"], e["source"], e["linear"], e["trusted"]) for e in told] == [
        (512, "measured", 0, None),
        (2048, "measured", 1, None),
        (4096, "law", 1, 1),
        (8192, "law", 1, 1),
        (100_000, "law", 3, 2),
        (1_000_000, "law", 3, 2),
    ]
    assert [entry["heads"] for entry in told] == [1, 5, 5, 5, 5, 5]
    words = in_words(told)
    assert words.startswith("Linear as they stand: 1 of 5 at 2,048 tokens.")
    assert "3 at 100,000 tokens (2)" in words
    assert in_words(told[:2]).endswith("at 2,048 tokens.")


def test_policy_gives_every_head_one_place():
    rows = [row(8, 0.05, kept=0.01), row(8, 0.4, kept=0.05), row(8, 0.4, kept=0.2)]
    assert policy(rows, 0.1) == {"limit": 1, "bulk": 1, "exact": 1}


@pytest.mark.parametrize("eps", [0.1, 3.0])
def test_the_summary_of_an_audit_has_an_outlook_and_a_policy(eps):
    generator = torch.Generator().manual_seed(0)
    arrays = [torch.randn(2, 60, 5, generator=generator) for _ in range(3)]
    summary = audit_arrays(*arrays, lengths=[30, 60], eps=eps).summary
    assert [e["n"] for e in summary["outlook"]][:2] == [30, 60]
    assert sum(summary["policy"].values()) == 2
    assert summary["outlook"][1]["linear"] == summary["policy"]["limit"]
