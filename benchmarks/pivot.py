"""Tables with a method in each row and budgets side by side, one table for each text.

Quantities of such cases read `QUANTITY, METHOD, BUDGET, TEXT`; quantities that read
otherwise keep a plain row.
"""

from typing import Any

WORDS = 4  # a pivoted quantity's parts


def pivoted(rows: list[dict[str, Any]]) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the lines of the tables, and the rows that belong to none."""
    cells: dict[str, dict[str, dict[tuple[str, str], float]]] = {}
    columns: dict[str, list[tuple[str, str]]] = {}
    plain = []
    for row in rows:
        parts = row["quantity"].split(", ")
        if len(parts) != WORDS:
            plain.append(row)
            continue
        quantity, method, budget, text = parts
        column = (f"{quantity} ({row['unit']})" if row["unit"] else quantity, budget)
        cells.setdefault(text, {}).setdefault(method, {})[column] = row["median"]
        seen = columns.setdefault(text, [])
        if column not in seen:
            seen.append(column)
    lines = []
    for text, methods in cells.items():
        heads = sorted(
            columns[text], key=lambda c: [q for q, _ in columns[text]].index(c[0])
        )
        titles = " | ".join(f"{quantity}, {budget}" for quantity, budget in heads)
        lines += [f"| {text} | {titles} |", "|---" * (len(heads) + 1) + "|"]
        for method, values in methods.items():
            shown = (f"{values[c]:.3g}" if c in values else "" for c in heads)
            lines.append(f"| {method} | {' | '.join(shown)} |")
        lines.append("")
    return lines, plain
