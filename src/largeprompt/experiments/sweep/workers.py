"""Where the cells of a sweep are computed: the one interface of both kinds."""

import abc
import contextlib

from largeprompt.experiments.sweep.work import Order, Outcome

ATTEMPTS = 3  # deaths of a worker over the same cell before that cell has failed


class Workers(contextlib.AbstractContextManager["Workers"]):
    """Processes that carry out orders; leaving the context stops them.

    An order whose worker dies is given to another one, a few times.
    """

    @abc.abstractmethod
    def capacity(self) -> int:
        """Return how many orders may be out at once."""

    @abc.abstractmethod
    def submit(self, order: Order) -> None:
        """Hand out an order."""

    @abc.abstractmethod
    def outcomes(self, timeout: float) -> list[Outcome]:
        """Wait for outcomes, at most so many seconds, and return those there are."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Drop what is out, and end."""

    def __exit__(self, *error: object) -> None:
        """Stop."""
        self.stop()
