"""What a column is, and those on what stands beside the head as it is.

Its numbers without the sinks, and the law of its keys, before rotary embedding too.
"""

import dataclasses
from typing import final

import pyarrow as pa


@final
@dataclasses.dataclass(frozen=True)
class Column:
    """One column of the table of heads."""

    name: str
    type: pa.DataType
    definition: str
    nullable: bool = False


BESIDE = (
    Column(
        "sinks",
        pa.int32(),
        "Tokens that the columns named without_sinks leave out, among those that the "
        "last query sees: the first four of the text, and those with at least max(5%, "
        "8/n) of the weight in most of at most 4 queries of a head that reads the same "
        "keys.",
        nullable=True,
    ),
    Column(
        "left_out_share",
        pa.float64(),
        "Mean over queries of the weight on these tokens.",
        nullable=True,
    ),
    *(
        Column(
            f"{name}_without_sinks",
            type_,
            f"{definition} Of attention over the tokens that are no sinks.",
            nullable=True,
        )
        for name, type_, definition in (
            ("logit_variance", pa.float64(), "Median variance of the logits."),
            ("logit_kurtosis", pa.float64(), "Median excess kurtosis of the logits."),
            ("ess", pa.float64(), "Median effective sample size."),
            ("ess_law", pa.float64(), "The same by the exact law."),
            ("max_weight", pa.float64(), "Median largest weight."),
            (
                "output_rms",
                pa.float64(),
                "Root mean square norm of the output; the four errors that follow are "
                "relative to it.",
            ),
            ("linear_error_in_sample", pa.float64(), "As linear_error_in_sample."),
            ("linear_error_kept", pa.float64(), "As linear_error_kept."),
            ("limit_error_held_out", pa.float64(), "As limit_error_held_out."),
            ("limit_error_law", pa.float64(), "As limit_error_law."),
            ("proxy_ratio", pa.float64(), "As proxy_ratio."),
            ("tail_exponent", pa.float64(), "As tail_exponent."),
            ("phase", pa.string(), "As phase."),
            ("tokens_needed", pa.float64(), "As tokens_needed."),
            ("verdict", pa.string(), "What is true of the head, in a sentence."),
            ("failed_assumption", pa.string(), "As failed_assumption."),
        )
    ),
    *(
        Column(
            f"{name}{suffix}",
            pa.float64(),
            f"{definition}, over the keys that the last query sees but the sinks, "
            f"{when}.",
            nullable=True,
        )
        for suffix, when in (
            ("", "as the softmax meets them"),
            ("_before_rotary", "before rotary embedding; null where there is none"),
        )
        for name, definition in (
            ("key_mean_share", "Squared norm of the mean key over the mean square"),
            (
                "key_rank",
                "Participation ratio of the eigenvalues of the covariance",
            ),
            (
                "key_kurtosis",
                "Mean fourth power of the Mahalanobis distance over a Gaussian's, "
                "less 1 (Mardia)",
            ),
        )
    ),
)
