"""The list of injected faults names tests that are there, and misses none."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "hardening.md").read_text("utf-8")
NAMED = set(re.findall(r"`(test_\w+)`", PAGE))


def defined(*patterns: str) -> set[str]:
    """The tests that files define."""
    files = [path for pattern in patterns for path in TESTS.glob(pattern)]
    found = (re.findall(r"^def (test_\w+)", p.read_text("utf-8"), re.M) for p in files)
    return {name for names in found for name in names}


def test_every_fault_on_the_page_is_injected_by_a_test_that_is_there():
    assert defined("**/test_*.py") >= NAMED
    assert "test_that_is_not_there" not in defined("**/test_*.py")


def test_every_test_of_files_disks_and_signals_is_on_the_page():
    kinds = ("files", "disk", "signals", "arguments")
    here = defined(*(f"hardening/test_hardening_{kind}.py" for kind in kinds))
    checks = {
        "test_every_command_is_here",
        "test_a_manifest_of_another_format_is_refused",
    }
    assert here - checks <= NAMED
