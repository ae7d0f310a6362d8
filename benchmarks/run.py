"""Run benchmark cases: tests first, then the measurement, then the recorded rows.

    python -m benchmarks.run            # every case
    python -m benchmarks.run law        # one case

A case prints no number when its tests are red. README and docs/benchmarks.md are
rewritten from the last recorded rows at the end.
"""

import argparse
import importlib
import subprocess
import sys

from benchmarks import pages
from benchmarks.record import ROOT, Row, write

CASES = [
    "law",
    "theory",
    "concentration",
    "audit",
    "audit_models",
    "population",
    "curves",
    "training",
    "sweep",
    "certificates",
    "cache_memory",
    "ablation",
    "depth",
    "kernels",
    "compression",
    "compression_gemma",
    "cache_modes",
]


def green(tests: list[str]) -> bool:
    """Whether the tests that guard a case pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "--dist", "loadfile"]
    run = subprocess.run([*command, *tests], cwd=ROOT)
    return run.returncode == 0


def show(row: Row) -> None:
    """Print one row."""
    print(
        f"{row.case}: {row.quantity}: {row.median:.3g} {row.unit} "
        f"({row.least:.3g} to {row.most:.3g})"
    )


def asked(parser: argparse.ArgumentParser) -> list[str]:
    """Return the cases that the command line names; every one if it names none."""
    parser.add_argument("cases", nargs="*", type=known, default=CASES)
    return parser.parse_args().cases


def known(name: str) -> str:
    """Return the name of a case; anything else is a usage error."""
    if name not in CASES:
        raise argparse.ArgumentTypeError(f"a case is one of {', '.join(CASES)}")
    return name


def main() -> int:
    """Run the cases that were asked for and return an exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in asked(parser):
        case = importlib.import_module(f"benchmarks.{name}")
        if not green(case.TESTS):
            print(f"{name}: its tests are red; nothing was measured")
            return 1
        rows = case.measure()
        for row in rows:
            show(row)
        print(f"recorded in {write(name, rows, case.DISTRIBUTIONS)}")
    pages.update()
    return 0


if __name__ == "__main__":
    sys.exit(main())
