import math

import numpy as np
import pytest
import torch

from largeprompt.audit import audit_arrays
from largeprompt.laws.exact import gaussian_law
from tests.audit import naive


def arrays(n=90, heads=6, kv_heads=2, dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(h, n, 5, generator=generator, dtype=dtype)
        for h in (heads, kv_heads, kv_heads)
    ]


def test_rows_are_the_statistics_of_their_queries():
    q, k, v = arrays(dtype=torch.float64)
    result = audit_arrays(q, k, v, lengths=[61], queries=9, window=40)
    row = result.heads.to_pylist()[4]
    single = [
        naive.statistics(
            q[4, p].numpy(),
            k[1].numpy(),
            v[1].numpy(),
            p,
            scale=1 / math.sqrt(5),
            window=40,
        )
        for p in range(52, 61)
    ]
    every = {name: np.array([one[name] for one in single]) for name in single[0]}
    rms = np.sqrt((every["output"] ** 2).sum(-1).mean())
    variance = np.median(every["logit_variance"])
    expected = {
        "head": 4,
        "kv_head": 1,
        "n": 61,
        "effective_n": 40,
        "window": 40,
        "queries": 9,
        "logit_variance": variance,
        "logit_variance_high": np.quantile(every["logit_variance"], 0.9),
        "ess": np.median(1 / every["inverse_ess"]),
        "entropy": np.median(every["entropy"]),
        "max_logit": every["max_logit"].max(),
        "sink_share": 0.0,
        "output_rms": rms,
        "linear_error_in_sample": np.sqrt(every["in_sample"].mean()) / rms,
        "linear_error_kept": np.sqrt(every["kept"].mean()) / rms,
        "limit_error_held_out": np.sqrt(every["held_out"].mean()) / rms,
    }
    for name, value in expected.items():
        np.testing.assert_allclose(row[name], value, rtol=1e-9, err_msg=name)
    exact = float(gaussian_law(40, variance).ess)
    np.testing.assert_allclose(row["ess_law"], exact, rtol=1e-3)
    assert row["parity_error"] is None


def test_many_gaussian_tokens_with_small_logits_are_linear():
    generator = torch.Generator().manual_seed(1)
    k = torch.randn(1, 6001, 3, generator=generator)
    v = torch.randn(1, 6001, 3, generator=generator) + 2
    q = torch.randn(3, 6001, 3, generator=generator)
    table = audit_arrays(q, k, v, lengths=[6001], scale=0.3).heads.to_pydict()
    assert set(table["failed_assumption"]) == {""}
    assert set(table["phase"]) == {"linear"}


def test_one_token_that_decides_is_not_linear():
    q, k, v = arrays()
    k[:, 50] = 40 * q[:2, 50]
    q = q[:2, 50:51].expand(2, 90, 5)
    table = audit_arrays(q, k, v, lengths=[90], queries=20).heads.to_pydict()
    assert "" not in table["failed_assumption"]
    assert "linear" not in table["phase"]


def test_values_that_do_not_vary_leave_no_error():
    q, k, v = arrays()
    table = audit_arrays(q, k, torch.ones_like(v), lengths=[90]).heads.to_pydict()
    assert set(table["tokens_needed"]) == {1.0}
    assert set(table["failed_assumption"]) == {""}


def test_heads_without_output_are_audited_without_a_warning():
    q, k, v = arrays()
    table = audit_arrays(q, k, torch.zeros_like(v), lengths=[90]).heads.to_pydict()
    assert set(table["limit_error_held_out"]) == {0.0}


def test_lengths_come_out_in_order_once_each():
    result = audit_arrays(*arrays(), lengths=[90, 45, 90], queries=3)
    assert result.manifest["arguments"]["lengths"] == [45, 90]
    assert result.heads.num_rows == 12


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"q": torch.zeros(90, 5)}, r"must be \[heads, tokens, width\]"),
        ({"q": torch.zeros(6, 80, 5)}, "must have the same tokens"),
        ({"q": torch.zeros(6, 90, 4)}, "must fit together"),
        ({"q": torch.zeros(5, 90, 5)}, "must be a multiple"),
        ({"v": torch.full((2, 90, 5), torch.nan)}, "v must be finite"),
        ({"lengths": []}, "at least one length"),
        ({"lengths": [91]}, "at most 90"),
        ({"lengths": [5]}, "at least 8"),
        ({"eps": 0.0}, "eps must be a positive number"),
        ({"queries": 0}, "queries must be at least 1"),
    ],
)
def test_wrong_arguments_are_refused_with_what_must_hold(change, reason):
    q, k, v = arrays()
    arguments = {"q": q, "k": k, "v": v, "lengths": [45]} | change
    with pytest.raises(ValueError, match=reason):
        audit_arrays(**arguments)
