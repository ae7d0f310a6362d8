"""Fill the tables of numbers in README and docs from the last recorded rows.

Each table stands between two comments, `<!-- numbers: CASE -->` and `<!-- end -->`.
"""

import re

from benchmarks.pivot import pivoted
from benchmarks.record import ROOT, latest

PAGES = [ROOT / "README.md", ROOT / "docs" / "benchmarks.md"]
BLOCK = re.compile(r"(<!-- numbers: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(case: str) -> str:
    """Render the last recorded rows of a case."""
    rows = list(latest(case).values())
    if not rows:
        return "*Nothing is recorded yet.*\n"
    lines, plain = pivoted(rows) if case in PIVOTED else ([], rows)
    if plain:
        lines += ["| measured | median | least | most |", "|---|---|---|---|"]
        for row in plain:
            values = [f"{row[key]:.4g} {row['unit']}".strip() for key in KEYS]
            lines.append(f"| {row['quantity']} | {' | '.join(values)} |")
        lines.append("")
    last = rows[-1]
    versions = ", ".join(f"{k} {v}" for k, v in last["versions"].items())
    lines.append(
        f"*Recorded {last['date'][:10]} at commit {last['commit']} "
        f"on {last['machine']}, Python {last['python']}, {versions}.*"
    )
    return "\n".join(lines) + "\n"


KEYS = ("median", "least", "most")
PIVOTED = ("compression", "compression_gemma", "kvpress")


def filled(text: str) -> str:
    """Return the text with every numbered block rendered anew."""
    return BLOCK.sub(lambda m: f"{m[1]}{table(m[2])}{m[3]}", text)


def update() -> None:
    """Rewrite the pages from the recorded rows."""
    for page in PAGES:
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
