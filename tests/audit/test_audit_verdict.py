import dataclasses

import pytest

from largeprompt.audit.verdict import (
    Assumption,
    Evidence,
    failed_assumption,
    verdict,
)
from largeprompt.laws.phases import Phase

LINEAR = Evidence(
    effective_n=2048,
    eps=0.1,
    phase=Phase.LINEAR,
    logit_variance=1.0,
    logit_kurtosis=0.0,
    ess=700.0,
    in_sample=0.02,
    kept=0.01,
    held_out=0.05,
    law=0.05,
    tokens_needed=300.0,
)


@pytest.mark.parametrize(
    ("change", "assumption", "words"),
    [
        ({}, Assumption.NONE, "Linear: the limit misses the output by 5.0%"),
        ({"held_out": 0.4}, Assumption.SINKS, "linear to within 1.0%"),
        (
            {"held_out": 0.4, "kept": 0.3, "tokens_needed": None, "ess": 1.2},
            Assumption.SPREAD,
            "one token of 2,048",
        ),
        (
            {"held_out": 0.4, "kept": 0.3, "law": 0.3, "tokens_needed": 52_000.0},
            Assumption.SHORT,
            "needs about 52,000 tokens",
        ),
        (
            {"held_out": 0.11, "kept": 0.11, "law": 0.09},
            Assumption.SHORT,
            "the law says 9.0%",
        ),
        (
            {"held_out": 0.4, "kept": 0.3, "logit_kurtosis": 7.25},
            Assumption.GAUSSIAN,
            "excess kurtosis of the logits is 7.2",
        ),
        (
            {"held_out": 0.4, "kept": 0.3},
            Assumption.IDENTICAL,
            "the tokens do not come from one law",
        ),
    ],
)
def test_verdict_names_the_first_assumption_that_fails(change, assumption, words):
    head = dataclasses.replace(LINEAR, **change)
    assert failed_assumption(head) is assumption
    assert words in verdict(head)


def test_verdict_is_one_sentence_for_every_assumption():
    assert len(set(Assumption)) == 6
    assert verdict(LINEAR).endswith(".")
