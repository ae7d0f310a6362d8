"""Who may compute a cell: one runner alive, and the next one when it is dead."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from largeprompt.experiments.sweep import Lease
from largeprompt.experiments.sweep.claims import Claims
from largeprompt.experiments.sweep.folder import SweepFolder
from largeprompt.experiments.sweep.presence import ALIVE, Presence, machine, present
from tests.experiments.sweep_folders import probes

LEASE = Lease(beat=0.1, patience=60.0)


@pytest.fixture
def folder(tmp_path) -> SweepFolder:
    return SweepFolder.prepare(tmp_path / "out", probes(1))


def leave_behind(folder: SweepFolder, age: float, place: str, pid: int) -> str:
    """A runner of some machine that gave its last sign of life so long ago."""
    name = f"left-{place}-{pid}"
    home = folder.runner(name)
    home.mkdir()
    said = {"machine": place, "pid": pid, "started": "1"}
    (home / ALIVE).write_text(json.dumps(said))
    past = time.time() - age
    os.utime(home / ALIVE, (past, past))
    return name


def test_a_cell_is_claimed_by_one_runner_until_it_gives_it_up(folder):
    with present(folder, LEASE) as one, present(folder, LEASE) as other:
        assert Claims(one).take("cell") == 0
        assert Claims(other).take("cell") is None
        assert Claims(other).take("another") == 0
        Claims(one).release("cell", 0)
        assert Claims(other).take("cell") == 0


def test_a_runner_that_left_is_taken_over_and_leaves_nothing(folder):
    with present(folder, LEASE) as one:
        Claims(one).take("cell")
    with present(folder, LEASE) as other:
        number = Claims(other).take("cell")
        assert number == 1
        Claims(other).release("cell", number)
    assert os.listdir(folder.path / "claims") == []
    assert os.listdir(folder.path / "runners") == []


@pytest.mark.parametrize(
    ("age", "place", "taken"),
    [
        (0.0, "elsewhere", False),
        (50.0, "elsewhere", False),
        (70.0, "elsewhere", True),
        (0.0, "here", True),  # no process of this number began when it says
    ],
)
def test_a_runner_without_a_sign_of_life_is_taken_over(folder, age, place, taken):
    with present(folder, LEASE) as here:
        where = machine() if place == "here" else place
        dead = leave_behind(folder, age, where, os.getpid())
        os.symlink(dead, folder.path / "claims" / "cell.0")
        assert (Claims(here).take("cell") == 1) is taken


def test_what_dead_runners_left_is_removed_and_what_living_ones_have_is_not(folder):
    dead = leave_behind(folder, 70.0, "elsewhere", 1)
    living = leave_behind(folder, 0.0, "elsewhere", 2)
    (folder.runner(dead) / ".part.half").write_bytes(b"half")
    with present(folder, LEASE) as here:
        left = set(os.listdir(folder.path / "runners"))
        assert left == {living, here.runner}


def test_a_runner_goes_on_giving_signs_of_life_also_when_it_was_given_up(folder):
    with present(folder, LEASE) as here:
        alive = folder.runner(here.runner) / ALIVE
        os.utime(alive, (0, 0))
        time.sleep(0.5)
        assert alive.stat().st_mtime > 0
        alive.unlink()
        time.sleep(0.5)
        assert here.alive(here.runner)
        assert json.loads(alive.read_text())["pid"] == os.getpid()


def test_a_killed_process_counts_as_dead_at_once(folder):
    code = (
        "import sys, time; from pathlib import Path\n"
        "from largeprompt.experiments.sweep.folder import SweepFolder\n"
        "from largeprompt.experiments.sweep.presence import Lease, present\n"
        "with present(SweepFolder(Path(sys.argv[1])), Lease()) as here:\n"
        "    print(here.runner, flush=True); time.sleep(60)\n"
    )
    command = [sys.executable, "-c", code, str(folder.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None, "it is a pipe"
        name = process.stdout.readline().strip()
        with present(folder, LEASE) as here:
            assert here.alive(name)
            process.kill()
            process.wait()
            assert not here.alive(name)


def takeovers(
    folder: SweepFolder,
    monkeypatch: pytest.MonkeyPatch,
    take: Callable[[Claims, str], int | None],
) -> int:
    """How many of two runners get a dead one's cell when the second cuts in."""
    dead = leave_behind(folder, 70.0, "elsewhere", 1)
    with present(folder, LEASE) as slow, present(folder, LEASE) as quick:
        os.symlink(dead, folder.path / "claims" / "cell.0")
        alive, taken = Presence.alive, []

        def cut_in(presence: Presence, other: str) -> bool:
            found = alive(presence, other)
            if presence is slow and not taken:
                taken.append(take(Claims(quick), "cell"))
            return found

        monkeypatch.setattr(Presence, "alive", cut_in)
        taken.append(take(Claims(slow), "cell"))
    return sum(number is not None for number in taken)


def remove_and_claim(claims: Claims, identity: str) -> int | None:
    """The planted fault: the dead one's claim is removed before one's own is made."""
    link = claims.presence.folder.path / "claims" / f"{identity}.0"
    if not claims.presence.alive(os.readlink(link)):
        link.unlink()
        os.symlink(claims.presence.runner, link)
        return 0
    return None


def test_of_two_runners_that_find_the_same_dead_one_a_single_one_takes_over(
    folder, monkeypatch
):
    assert takeovers(folder, monkeypatch, Claims.take) == 1


def test_removing_the_claim_of_the_dead_would_let_both_take_over(folder, monkeypatch):
    assert takeovers(folder, monkeypatch, remove_and_claim) == 2


@pytest.mark.parametrize(("beat", "patience"), [(0.0, 1.0), (1.0, 1.5)])
def test_a_lease_that_ends_between_two_signs_is_refused(beat, patience):
    with pytest.raises(ValueError, match="patience must be at least twice the beat"):
        Lease(beat, patience)
