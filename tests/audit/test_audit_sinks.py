"""Heads without their sinks, beside covariance matrices of what is left."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from largeprompt.audit import audit_arrays
from largeprompt.audit.logits import Logits
from largeprompt.audit.prefixes import Prefixes
from largeprompt.audit.rows import JUDGED, WITHOUT_SINKS
from largeprompt.audit.sinks import sinks
from largeprompt.audit.statistics import (
    QueryStatistics,
    query_statistics,
    with_and_without,
)
from tests.audit import naive

N, SINK, SCALE = 120, 37, 0.7


def layer(planted=True):
    """Queries with a common part, and one key that draws it."""
    generator = torch.Generator().manual_seed(4)
    query, key, value = (
        torch.randn(h, N, 5, generator=generator, dtype=torch.float64)
        for h in (6, 2, 2)
    )
    if planted:
        query[:, :, 0] += 3
        key[0, SINK, 0] = 8  # of the first key/value head alone
    return query, key, value


@pytest.mark.parametrize("window", [None, 60])
def test_statistics_without_tokens_are_those_of_the_other_tokens(window):
    query, key, value = layer()
    prefixes = Prefixes.last(N, 5, window)
    left_out = [torch.tensor([0, 1, 2, 3, SINK, 90, 118]), torch.tensor([80, 81])]
    law = Logits(SCALE, None)
    every, rest = with_and_without(query, key, value, prefixes, left_out, law)
    whole = query_statistics(query, key, value, prefixes, scale=SCALE)
    for head in range(6):
        for i, position in enumerate(prefixes.positions.tolist()):
            theirs = naive.statistics(
                query[head, position].numpy(),
                key[head // 3].numpy(),
                value[head // 3].numpy(),
                position,
                scale=SCALE,
                window=window,
                without=left_out[head // 3].numpy(),
            )
            for field in dataclasses.fields(QueryStatistics):
                ours, name = getattr(rest, field.name)[head, i], field.name
                np.testing.assert_allclose(
                    ours.numpy(), theirs[name], rtol=1e-7, atol=1e-12, err_msg=name
                )
    for field in dataclasses.fields(QueryStatistics):
        torch.testing.assert_close(
            getattr(every, field.name), getattr(whole, field.name)
        )


def test_a_token_that_every_query_reads_is_a_sink_and_no_other_is():
    law, prefixes = Logits(SCALE, None), Prefixes.last(N, 4, None)
    for planted, expected in ((True, [0, 1, 2, 3, SINK]), (False, [0, 1, 2, 3])):
        query, key, _ = layer(planted)
        found = sinks(query[:3], key[0], prefixes, law)
        assert found.tokens.tolist() == expected
    query, key, _ = layer(False)
    assert sinks(query[3:], key[1], prefixes, law).tokens.tolist() == [0, 1, 2, 3]
    # what one query alone reads is none
    key[1, 50] = 2 * query[3, -1]
    assert sinks(query[3:], key[1], prefixes, law).tokens.tolist() == [0, 1, 2, 3]


def test_columns_without_sinks_are_medians_over_queries_of_what_is_left():
    query, key, value = layer()
    result = audit_arrays(query, key, value, lengths=[N], queries=4, scale=SCALE)
    left_out = np.array([0, 1, 2, 3, SINK])
    for row in result.heads.to_pylist()[:3]:
        found = [
            naive.statistics(
                query[row["head"], position].numpy(),
                key[0].numpy(),
                value[0].numpy(),
                position,
                scale=SCALE,
                window=None,
                without=left_out,
            )
            for position in range(N - 4, N)
        ]

        def over(name, found=found):
            return np.array([one[name] for one in found])

        rms = np.sqrt((over("output") ** 2).sum(-1).mean())
        error = np.sqrt(over("held_out").mean()) / rms
        assert row["sinks"] == 5
        assert row["left_out_share"] == pytest.approx(over("sink_share").mean())
        variance = np.median(over("logit_variance"))
        assert row["logit_variance_without_sinks"] == pytest.approx(variance)
        assert row["limit_error_held_out_without_sinks"] == pytest.approx(error)
        assert row["logit_variance"] > row["logit_variance_without_sinks"]
        assert row["ess"] < row["ess_without_sinks"]


def test_columns_without_sinks_are_null_where_nothing_is_left():
    query, key, value = layer()
    row = audit_arrays(query, key, value, lengths=[8], queries=4).heads.to_pylist()[0]
    assert row["logit_variance"] is not None
    assert all(row[f"{name}_without_sinks"] is None for name in WITHOUT_SINKS + JUDGED)
    long = audit_arrays(query, key, value, lengths=[N], queries=4).heads.to_pylist()[0]
    for name in WITHOUT_SINKS:
        assert math.isfinite(long[f"{name}_without_sinks"])
    assert long["verdict_without_sinks"]
