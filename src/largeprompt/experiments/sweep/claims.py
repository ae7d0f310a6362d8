"""Who computes a cell: the first to say so, or whoever takes over from the dead.

A claim is a symbolic link that names a runner: made in one step, with its content, on
every file system that has links. A claim of a dead runner is not removed but outbid:
the link of the next number can be made by one runner only, so that of two who find the
same dead one, one wins.
"""

import dataclasses
import os
from typing import final

from largeprompt.experiments.sweep.presence import Presence


@final
@dataclasses.dataclass(frozen=True)
class Claims:
    """The claims of one runner.

    Attributes:
        presence: The runner.
    """

    presence: Presence

    def take(self, identity: str) -> int | None:
        """Claim a cell and return the number of the claim.

        None while another runner that is alive has the cell.
        """
        number = 0
        while True:
            link = self._link(identity, number)
            try:
                os.symlink(self.presence.runner, link)
            except FileExistsError:
                owner = _owner(link)
                if owner is None:
                    number = 0  # released in between: start over
                elif self.presence.alive(owner):
                    return None
                else:
                    number += 1
            else:
                return number

    def release(self, identity: str, number: int) -> None:
        """Give up a claim, and with it those of the dead that it outbid."""
        for each in range(number + 1):
            link = self._link(identity, each)
            owner = _owner(link)
            ours = owner == self.presence.runner
            if owner is not None and (ours or not self.presence.alive(owner)):
                os.unlink(link)

    def _link(self, identity: str, number: int) -> str:
        claims = self.presence.folder.path / "claims"
        return os.path.join(claims, f"{identity}.{number}")


def _owner(link: str) -> str | None:
    try:
        return os.readlink(link)
    except FileNotFoundError:
        return None
