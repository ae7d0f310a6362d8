"""The law of the keys, and the tokens that stand out along the leading modes."""

import math

import numpy as np
import pytest
import torch

from largeprompt.audit import audit_arrays
from largeprompt.audit.key_law import key_law
from largeprompt.audit.layer import LayerArrays
from largeprompt.audit.layers import audit_layers
from largeprompt.audit.modes import leading_modes
from largeprompt.audit.selection import Question


def drawn(n=200, seed=0):
    generator = torch.Generator().manual_seed(seed)
    keys = torch.randn(n, 6, generator=generator, dtype=torch.float64)
    return keys * torch.arange(1, 7) + 2


def test_key_law_is_that_of_the_inverse_covariance():
    keys = drawn()
    found, x = key_law(keys), keys.numpy()
    covariance = np.cov(x.T, bias=True)
    centred = x - x.mean(0)
    distances = np.einsum("ni,ij,nj->n", centred, np.linalg.inv(covariance), centred)
    assert found.kurtosis == pytest.approx((distances**2).mean() / (6 * 8) - 1)
    share = (x.mean(0) ** 2).sum() / (x**2).sum(-1).mean()
    assert found.mean_share == pytest.approx(share)
    eigenvalues = np.linalg.eigvalsh(covariance)
    rank = eigenvalues.sum() ** 2 / (eigenvalues**2).sum()
    assert found.rank == pytest.approx(rank)
    np.testing.assert_allclose(found.spectrum.numpy(), eigenvalues[::-1])


def test_key_kurtosis_sees_a_heavy_tail_whatever_the_scale_of_the_axes():
    keys = drawn()
    plain = key_law(keys).kurtosis
    heavy = keys.clone()
    heavy[:4] *= 20
    assert key_law(heavy).kurtosis > plain + 1
    turned = keys @ torch.linalg.qr(drawn(6, 1)).Q * 3
    assert key_law(turned).kurtosis == pytest.approx(plain)
    flat = torch.cat([keys, keys[:, :1]], 1)  # a direction without spread
    assert key_law(flat).kurtosis == pytest.approx(plain)


def test_keys_that_do_not_vary_have_no_law():
    equal = key_law(torch.ones(9, 3))
    assert equal.mean_share == 1
    assert math.isnan(equal.kurtosis)
    assert math.isnan(key_law(torch.ones(1, 3)).mean_share)


def test_modes_name_the_tokens_farthest_along_the_singular_directions():
    key, value = drawn(), drawn(seed=1)
    operator = np.cov(torch.cat([value, key], 1).numpy().T, bias=True)[:6, 6:]
    left, _, right = np.linalg.svd(operator)
    found = {
        row["profile"]: row
        for row in leading_modes(torch.from_numpy(operator), key, value, 100)
    }
    assert len(found) == 6
    for mode in range(3):
        sides = {"key": (key, right[mode]), "value": (value, left[:, mode])}
        for side, (tokens, direction) in sides.items():
            along = tokens.numpy() @ direction
            along = (along - along.mean()) / along.std()
            expected = np.argsort(-np.abs(along))[:5]
            row = found[f"{side}_mode_{mode + 1}"]
            assert row["x"] == (expected + 100).tolist()
            np.testing.assert_allclose(np.abs(row["measured"]), np.abs(along[expected]))
        assert found[f"key_mode_{mode + 1}"]["measured"][0] > 0


def test_keys_before_rotary_have_columns_and_a_curve_of_their_own():
    generator = torch.Generator().manual_seed(2)
    q, k, v, before = (torch.randn(h, 90, 6, generator=generator) for h in (4, 2, 2, 2))
    question = Question([50, 90], 4, 0.1)
    rows = {}
    for name, bare in (("with", before), ("without", None)):
        arrays = LayerArrays(q, k, v, 0.4, before=bare)
        result = audit_layers(
            [(0, arrays)], question, window=None, causal=True, name="a"
        )
        assert result.profiles is not None
        curves = [c for c in result.profiles.to_pylist() if c["profile"] == "keys"]
        rows[name] = result.heads.to_pylist()[-1], curves[-1]
    row, curve = rows["with"]
    own, bare = key_law(k[1, 4:]), key_law(before[1, 4:])
    assert row["key_rank"] == pytest.approx(own.rank)
    assert row["key_rank_before_rotary"] == pytest.approx(bare.rank)
    assert row["key_kurtosis_before_rotary"] == pytest.approx(bare.kurtosis)
    np.testing.assert_allclose(curve["law"], bare.spectrum.numpy())
    assert rows["without"][0]["key_rank_before_rotary"] is None
    assert rows["without"][1]["law"] is None
    alone = audit_arrays(q, k, v, lengths=[50, 90], queries=4, scale=0.4)
    assert alone.heads.to_pylist()[-1]["key_rank"] == pytest.approx(own.rank)
