"""What kind of truth a number is: every result of the theory says it of itself."""

import enum


class Status(enum.StrEnum):
    """How far a result may be trusted.

    | status        | meaning                                                         |
    |---------------|-----------------------------------------------------------------|
    | `EXACT`       | an identity, evaluated to rounding                              |
    | `BOUND`       | a proven inequality, valid at this prompt length                |
    | `ASYMPTOTIC`  | a proven limit of long prompts; the error at this length unknown |
    | `NUMERICAL`   | a conjecture that exact numbers confirm, without a proof        |
    | `MONTE_CARLO` | an average over drawn prompts, with a confidence interval       |
    """

    EXACT = "exact"
    BOUND = "bound"
    ASYMPTOTIC = "asymptotic"
    NUMERICAL = "numerical"
    MONTE_CARLO = "monte carlo"
