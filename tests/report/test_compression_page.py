"""The page of an evaluation of compression, as text and in headless Chromium."""

import dataclasses

import pyarrow as pa
import pytest
from playwright.sync_api import Browser

from largeprompt.hf.evaluation_result import DEFINITIONS, FORMAT, SCHEMA
from largeprompt.hf.evaluation_result import CompressionResult as Result
from largeprompt.report.compression_page import compression_page
from largeprompt.report.compression_words import findings
from tests.report.browser import inked_share, watch

METHODS = {"calibrated": 0.03, "snapkv": 0.1, "moments": 0.06, "performer": 0.3}


def synthetic(text: str = "prose") -> Result:
    """Errors that halve when the budget doubles; a map has no cache."""
    errors, summary = [], []
    summary.append(row("exact", 1.0, text, 0.0, 0.0))
    for method, size in METHODS.items():
        for budget in (0.05, 0.1):
            error = size * 0.05 / budget
            summary.append(
                row(method, budget, text, error, None if size > 0.2 else error / 2)
            )
            errors += [
                {
                    "method": method,
                    "budget": budget,
                    "text": text,
                    "layer": layer,
                    "kv_head": head,
                    "error": error * (1 + layer) / 3,
                    "late_error": error,
                    "bytes": 1000.0 * budget,
                }
                for layer in range(5)
                for head in range(2)
            ]
    return Result(
        errors=pa.Table.from_pylist(errors, SCHEMA),
        summary=summary,
        passkeys=[
            {
                "text": text,
                "method": "snapkv",
                "budget": 0.05,
                "depth": 0.5,
                "answer": " 48213",
                "exact_answer": " 48213",
                "as_exact": True,
                "found": True,
            }
        ],
        manifest={
            "format": FORMAT,
            "model": {"name": "SmolLM2-135M-Instruct", "layers": 30, "heads": 9},
            "texts": {text: "0" * 64},
            "arguments": {"prompt_tokens": 7680, "continuation": 512},
            "versions": {"largeprompt": "0.1.0"},
            "created": "2026-12-01T10:00:00+00:00",
            "definitions": DEFINITIONS,
        },
    )


def row(method, budget, text, error, kl):
    return {
        "text": text,
        "method": method,
        "budget": budget,
        "mean_error": error,
        "late_error": 1.1 * error,
        "kl": kl,
        "top1": None if kl is None else 0.9,
        "nll": None if kl is None else 2.5,
        "accuracy": None if kl is None else 0.5,
        "bytes": 2**20 * budget,
        "ms_per_token": None if kl is None else 12.0,
        "build_s": 1.5,
        "prefill_peak_bytes": None,
    }


def test_findings_put_our_method_beside_the_best_other():
    told = findings(synthetic().summary)
    assert told[0] == (
        "prose, 5.0% of the bytes: the mean head error is 0.0300, against 0.0600 of "
        "moments, the best other (0.500 times); the divergence of next tokens is "
        "0.0150, against 0.0300 of moments, the best other (0.500 times)."
    )
    assert len(told) == 2


def test_findings_are_silent_without_our_method_or_another():
    rows = synthetic().summary
    assert findings([r for r in rows if r["method"] != "calibrated"]) == []
    assert findings([r for r in rows if r["method"] in ("calibrated", "exact")]) == []


def test_page_shows_names_as_they_are():
    nasty = "</style><script>alert(1)</script>"
    page = compression_page(synthetic(text=nasty))
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_page_of_maps_alone_has_no_chart_of_divergence():
    result = synthetic()
    only = [r for r in result.summary if r["method"] == "performer"]
    page = compression_page(dataclasses.replace(result, summary=only))
    assert "head outputs" in page
    assert "<figcaption>KL divergence" not in page


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_opens_offline_without_a_complaint(browser: Browser, tmp_path, scheme):
    path = tmp_path / "report.html"
    path.write_text(compression_page(synthetic()))
    page = browser.new_page(
        viewport={"width": 1300, "height": 900}, color_scheme=scheme
    )
    record = watch(page)
    page.goto(path.as_uri())
    assert page.locator("figure svg").count() == 3
    for figure in page.locator("figure").all():
        assert inked_share(figure.screenshot()) > 0.005
    assert page.locator("tbody tr[data-method=calibrated]").count() == 2
    ink = page.evaluate(
        "getComputedStyle(document.querySelector('figure svg .mark-line path')).stroke"
    )
    expected = {"light": "rgb(0, 138, 100)", "dark": "rgb(63, 199, 156)"}
    assert ink == expected[scheme]
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 1300
    page.close()
    assert record.requests == [path.as_uri()]
    assert record.complaints == []
