"""The figures of depth: the curve of an ablation, and token laws layer by layer."""

import re

import pyarrow as pa
import pytest

from largeprompt.hf.ablation_result import SCHEMA, AblationResult
from largeprompt.hf.token_law_result import SCHEMA as LAW_SCHEMA
from largeprompt.hf.token_law_result import TokenLawResult
from largeprompt.report.ablation_figure import ablation_figure
from largeprompt.report.depth_figure import depth_figure
from largeprompt.report.palette import LIGHT
from tests.report.browser import inked_share

ABOUT = {
    "model": {"name": "A model", "layers": 2, "heads": 3},
    "text": {"name": "prose", "tokens": 1024},
}


@pytest.fixture
def ablation() -> AblationResult:
    rows = [
        {
            "set": f"first {heads}",
            "order": order,
            "heads_replaced": heads,
            "heads": ["0.0"] * heads,
            "loss": 2 + share * heads,
            "loss_change": share * heads - 0.01,
            "loss_change_error": 0.01,
            "kl": share * heads,
            "top1_agreement": 1 - share * heads,
        }
        for order, share in (("audit", 0.01), ("random", 0.1), ("chosen", 9.0))
        for heads in (0, 1, 2, 4, 6)
    ]
    kept = {"sinks": 4, "window": 64, "bulk": "finite"}
    manifest = ABOUT | {"replacement": kept}
    return AblationResult(pa.Table.from_pylist(rows, SCHEMA), manifest)


@pytest.fixture
def laws() -> TokenLawResult:
    rows = [
        {
            "what": what,
            "layer": layer,
            "kv_head": head,
            "tokens": 1020,
            "effective_dim": 3.0,
            **dict.fromkeys(("kolmogorov", "wasserstein"), 0.05 * (layer + 1)),
            "kurtosis": 2.0 * layer,
            **dict.fromkeys(("kolmogorov_gaussian", "wasserstein_gaussian"), 0.02),
            "kurtosis_gaussian": 0.0,
        }
        for what, heads in (("hidden states", [None]), ("keys", [0, 1]))
        for layer in range(3)
        for head in heads
    ]
    manifest = ABOUT | {"arguments": {"directions": 64}}
    return TokenLawResult(pa.Table.from_pylist(rows, LAW_SCHEMA), manifest)


def test_ablation_figure_draws_both_orders_and_says_what_was_kept(ablation):
    drawn = ablation_figure(ablation, ".svg").decode()
    for words in (
        "most linear first",
        "in random order",
        "A model on prose, 1,024 tokens; 4 first and 64 recent tokens exact",
        "change of loss",
    ):
        assert words in drawn
    for colour in (LIGHT.linear, LIGHT.held_out):
        assert len(re.findall(rf'fill="{colour}"', drawn)) >= 2 * 5


def test_depth_figure_draws_both_kinds_of_token_and_their_calibration(laws):
    drawn = depth_figure(laws, ".svg").decode()
    for words in ("hidden states", "keys", "as many Gaussian tokens", "64 random"):
        assert words in drawn
    assert "Kolmogorov distance" in drawn


def test_figures_of_depth_are_not_blank(ablation, laws):
    assert inked_share(ablation_figure(ablation, ".png")) > 0.01
    assert inked_share(depth_figure(laws, ".png")) > 0.01


def test_figures_of_depth_open_as_pages_and_refuse_other_suffixes(ablation, laws):
    for figure, result in ((ablation_figure, ablation), (depth_figure, laws)):
        assert figure(result, ".html").startswith(b"<!DOCTYPE html>")
        with pytest.raises(ValueError, match=r"a figure must be a .* file; got '.gif'"):
            figure(result, ".gif")
