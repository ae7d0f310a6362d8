import importlib.util

import pyarrow as pa
import pytest
import torch

from largeprompt.audit import AuditResult, audit_arrays


@pytest.fixture(scope="module")
def result():
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(h, 45, 5, generator=generator) for h in (16, 2, 2))
    return audit_arrays(q, k, v, lengths=[21, 45], queries=4)


def test_notebook_shows_the_heads_at_the_longest_length(result):
    page = result._repr_html_()
    assert page.count("<tr>") == 1 + 12
    assert "arrays on arrays, 45 tokens: 16 heads" in page
    assert "and 4 more heads" in page


def test_notebook_escapes_what_it_is_told(result):
    hostile = "<script>alert(1)</script>"
    text = {**result.manifest["text"], "name": hostile}
    manifest = {**result.manifest, "text": text, "texts": [text]}
    table = result.heads.set_column(
        0, result.heads.schema.field(0), [[hostile] * result.heads.num_rows]
    )
    assert "<script>" not in AuditResult(table, manifest)._repr_html_()


def test_details_are_the_table_where_pandas_is_not(result, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert isinstance(result.details, pa.Table)


def test_details_are_a_data_frame_where_pandas_is(result):
    pandas = pytest.importorskip("pandas")
    assert isinstance(result.details, pandas.DataFrame)
    assert list(result.details["head"])[:3] == [0, 1, 2]
