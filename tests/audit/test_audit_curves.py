"""The curves and the columns from them, beside one query taken apart by hand."""

import numpy as np
import pyarrow.compute as pc
import pytest
import torch
from scipy import special

from largeprompt.audit import audit_arrays, load_audit, merge_audits
from largeprompt.audit.curves import profiled
from largeprompt.audit.profiles import PROFILES, TOKEN_LISTS
from largeprompt.laws.correlated import long_run

N = 150


def arrays(seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(h, N, 5, generator=generator) for h in (4, 2, 2)]


def profiles(result):
    assert result.profiles is not None
    return result.profiles


def curves(result, head):
    rows = profiles(result).filter(pc.field("head") == head).to_pylist()
    return {row["profile"]: row for row in rows}


def test_curves_of_one_query_are_what_is_computed_by_hand():
    q, k, v = (x.double().numpy() for x in arrays())
    result = audit_arrays(*arrays(), lengths=[N], queries=1, scale=0.6)
    for head in range(4):
        key, value = k[head // 2], v[head // 2]
        logits = 0.6 * key @ q[head, -1]
        weights = special.softmax(logits)
        found = curves(result, head)
        assert set(found) == {kind.name for kind in (*PROFILES, *TOKEN_LISTS)}
        assert all(
            len(row["x"]) == len(row["measured"]) == len(row["law"] or row["x"])
            for row in found.values()
        )
        tilts = np.array(found["log_mgf"]["x"])
        centred = logits - logits.mean()
        growth = np.log(np.exp(np.outer(tilts, centred)).mean(-1))
        np.testing.assert_allclose(found["log_mgf"]["measured"], growth)
        np.testing.assert_allclose(found["log_mgf"]["law"], tilts**2 * logits.var() / 2)
        np.testing.assert_allclose(
            found["qq"]["measured"],
            np.quantile(
                centred / centred.std(), special.ndtr(found["qq"]["x"]), method="hazen"
            ),
        )
        above = [(centred / centred.std() > x).mean() for x in found["tail"]["x"]]
        measured = [0 if y is None else y for y in found["tail"]["measured"]]
        np.testing.assert_allclose(measured, above)
        operator = 0.6 * np.cov(np.hstack([value, key]).T, bias=True)[:5, 5:]
        singular = np.linalg.svd(operator, compute_uv=False)
        np.testing.assert_allclose(found["spectrum"]["measured"], singular)
        np.testing.assert_allclose(found["sink"]["measured"][:4], weights[:4])
        np.testing.assert_allclose(found["recent"]["measured"][:4], weights[:-5:-1])
        row = result.heads.to_pylist()[head]
        output, half = weights @ value, special.softmax(logits[:75]) @ value[:75]
        moved = np.linalg.norm(output - half) / np.linalg.norm(output)
        assert found["drift"]["x"][-1] == 75
        np.testing.assert_allclose(found["drift"]["measured"][-1], moved)
        np.testing.assert_allclose(row["drift"], moved)
        squares = singular**2
        np.testing.assert_allclose(
            row["effective_rank"], squares.sum() ** 2 / (squares**2).sum()
        )
        pairs = (centred[1:] * centred[:-1]).sum() / (centred**2).sum()
        np.testing.assert_allclose(row["logit_correlation"], pairs)
        np.testing.assert_allclose(found["autocorrelation"]["measured"][0], pairs)
        products = [(centred[:-lag] * centred[lag:]).sum() for lag in range(1, 13)]
        tapered = products / (centred**2).sum() * (1 - np.arange(1, 13) / 13)
        share = min(1, long_run(logits.var(), tapered).across_share)
        np.testing.assert_allclose(row["independent_tokens"], N * share)


@pytest.mark.parametrize(
    "options", [{"window": 20}, {"causal": False}, {"seed": 3}, {"softcap": 2.0}]
)
def test_curves_are_there_for_every_way_to_attend(options):
    result = audit_arrays(*arrays(), lengths=[40, N], queries=12, **options)
    assert set(profiles(result)["n"].to_pylist()) == {N}
    causal = options.get("causal", True)
    kinds = (*PROFILES, *TOKEN_LISTS)
    names = {kind.name for kind in kinds if causal or kind.name != "recent"}
    for head in range(4):
        found = curves(result, head)
        assert set(found) == names
        np.testing.assert_allclose(sum(found["sink"]["measured"]), 1)
        np.testing.assert_allclose(sum(found["sink"]["law"]), 1)


def test_a_head_that_does_not_vary_has_curves_with_gaps():
    q, k, v = arrays()
    result = audit_arrays(0 * q, k, v, lengths=[8, N])
    row = result.heads.to_pylist()[-1]
    assert row["proxy_ratio"] is None
    assert row["tail_exponent"] is None
    assert row["independent_tokens"] == N
    silent = audit_arrays(q, k, 0 * v, lengths=[N]).heads.to_pylist()[0]
    assert silent["effective_rank"] is None
    assert silent["drift"] == 0


def test_curves_are_read_from_queries_spread_to_the_last():
    assert profiled(3) == [0, 1, 2]
    assert profiled(32) == [7, 15, 23, 31]


def test_curves_are_saved_merged_and_taken_apart(tmp_path):
    whole = audit_arrays(*arrays(), lengths=[N])
    some, others = (
        audit_arrays(*arrays(), lengths=[N], heads=h) for h in ([0, 3], [1, 2])
    )
    merged = merge_audits([some, others])
    assert profiles(merged).equals(whole.profiles)
    merged.save(tmp_path / "audit")
    assert profiles(load_audit(tmp_path / "audit")).equals(whole.profiles)
    assert profiles(merged.only("arrays")).equals(whole.profiles)
