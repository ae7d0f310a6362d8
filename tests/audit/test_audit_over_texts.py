import hashlib
import json

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from scipy import stats

from largeprompt.audit import AuditResult, audit_arrays, load_audit, merge_audits
from largeprompt.audit.over_texts import over_texts


def audited(seed, name):
    generator = torch.Generator().manual_seed(seed)
    arrays = [torch.randn(h, 64, 4, generator=generator) for h in (4, 2, 2)]
    result = audit_arrays(*arrays, lengths=[32, 64], queries=4, eps=0.5)
    rows = result.heads.set_column(
        0, result.heads.schema.field(0), [[name] * len(result.heads)]
    )
    manifest = result.manifest | {
        "model": result.manifest["model"] | {"sha256": "same"},
        "texts": [{"name": name, "sha256": name, "tokens": 64}],
    }
    return AuditResult(rows, manifest)


def test_intervals_over_texts_are_student_s():
    parts = [audited(seed, f"text {seed}") for seed in range(4)]
    whole = merge_audits(parts)
    found = whole.summary["over_texts"]
    each = [part.summary["medians"]["logit_variance"] for part in parts]
    interval = stats.ttest_1samp(each, 0).confidence_interval(0.95)
    told = found["logit_variance"]
    assert told["texts"] == 4
    assert told["mean"] == pytest.approx(np.mean(each))
    assert (told["low"], told["high"]) == pytest.approx(tuple(interval))
    assert (told["least"], told["most"]) == (min(each), max(each))
    kept = [part.summary["within_eps"]["linear_error_kept"] / 4 for part in parts]
    assert found["kept_share"]["mean"] == pytest.approx(np.mean(kept))
    normal = stats.norm.interval(0.95, np.mean(each), stats.sem(each))
    assert told["high"] > normal[1]  # a normal interval would be too narrow


def test_a_single_text_has_no_interval_over_texts():
    assert audited(0, "alone").summary["over_texts"] is None
    assert over_texts(audited(0, "alone").heads.to_pylist(), 0.1) is None


def test_an_audit_of_an_earlier_version_is_read_with_nulls(tmp_path):
    audited(0, "old").save(tmp_path / "audit")
    path, manifest = (
        tmp_path / "audit" / x for x in ("heads.parquet", "manifest.json")
    )
    table = pq.read_table(path)
    lacking = [name for name in table.schema.names if name.endswith("without_sinks")]
    pq.write_table(table.drop_columns([*lacking, "key_rank"]), path)
    told = json.loads(manifest.read_text())
    told["heads_sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    manifest.write_text(json.dumps(told))
    loaded = load_audit(tmp_path / "audit")
    assert loaded.heads["key_rank"].null_count == len(loaded.heads)
    assert loaded.heads["ess"].equals(table["ess"])
    assert loaded.heads.schema.names == table.schema.names
