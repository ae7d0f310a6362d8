"""What an evaluation is asked for, checked before anything is loaded or run."""

import dataclasses
from collections.abc import Mapping
from typing import final

from largeprompt.hf.evaluation_methods import Method


@final
@dataclasses.dataclass(frozen=True, eq=False)
class EvaluationPlan:
    """The arguments of an evaluation.

    Attributes:
        methods: The methods, by name.
        budgets: Shares of the bytes of each KV head's keys and values, in (0, 1).
        prompt_tokens: Tokens of a prompt, all of them compressed.
        continuation: Tokens that follow, on which the model is teacher-forced.
        queries: How many of the prompt's last queries methods may calibrate on.
        error_queries: Head errors are medians over so many queries.
        passkey_depths: Where a sentence is hidden in further prompts; none by default.
        prefill_peak: Whether each method reads each text once more, for its memory.

    Raises:
        ValueError: An argument is out of its range, or there is nothing to do.
    """

    methods: Mapping[str, Method]
    budgets: tuple[float, ...]
    prompt_tokens: int = 7680
    continuation: int = 512
    queries: int = 256
    error_queries: int = 64
    passkey_depths: tuple[float, ...] = ()
    prefill_peak: bool = False

    def __post_init__(self) -> None:
        if not self.methods or not self.budgets:
            raise ValueError("an evaluation needs a method and a budget at least")
        for budget in self.budgets:
            if not 0 < budget < 1:
                raise ValueError(f"budgets must be between 0 and 1; got {budget}")
        for depth in self.passkey_depths:
            if not 0 <= depth <= 1:
                raise ValueError(f"depths must be between 0 and 1; got {depth}")
        least = {"prompt_tokens": 2, "continuation": 2, "queries": 1}
        for name, number in {**least, "error_queries": 1}.items():
            if getattr(self, name) < number:
                raise ValueError(
                    f"{name.replace('_', ' ')} must be at least {number}; "
                    f"got {getattr(self, name)}"
                )
        if len(set(self.budgets)) < len(self.budgets):
            raise ValueError(f"budgets must differ; got {self.budgets}")

    def check_context(self, context: int) -> None:
        """Refuse a prompt that the model cannot read with its continuation.

        Raises:
            ValueError: They are longer than the model's context.
        """
        total = self.prompt_tokens + self.continuation
        if total > context:
            raise ValueError(
                "prompt and continuation must fit the model's context of "
                f"{context} tokens; got {total}"
            )
