"""The spectrum of an anisotropic head, from a file."""

import json
from pathlib import Path
from typing import Any

from largeprompt.laws.spectrum import QueryLawSpectrum, ValueSpectrum

LARGEST = 2**24
"""Bytes of a file; a million eigenvalues have room."""

KINDS = {
    frozenset({"value_eigenvalues"}): ValueSpectrum,
    frozenset({"value_eigenvalues", "shares"}): ValueSpectrum,
    frozenset({"logit_eigenvalues", "responses", "variance"}): QueryLawSpectrum,
}


def read_spectrum(path: Path) -> ValueSpectrum | QueryLawSpectrum:
    """Read a spectrum: JSON by the suffix `.json`, columns of text otherwise.

    JSON holds the fields of `ValueSpectrum` (`shares` may be left out) or those of
    `QueryLawSpectrum`. Each line of text holds a value eigenvalue, or that and its
    share, between commas or blanks; `#` begins a comment.

    Raises:
        ValueError: The file is no such spectrum.
    """
    try:
        if (size := path.stat().st_size) > LARGEST:
            raise ValueError(
                f"a spectrum must be a file of at most {LARGEST:,} bytes; got {size:,}"
            )
        text = path.read_text(encoding="utf-8")
        if path.suffix != ".json":
            return _from_columns(text)
        return _from_fields(json.loads(text))
    except (
        OSError,
        UnicodeDecodeError,
        json.JSONDecodeError,
        RecursionError,
        TypeError,
    ) as error:
        raise ValueError(f"{path} must hold a spectrum; got {error}") from error


def _from_fields(fields: Any) -> ValueSpectrum | QueryLawSpectrum:
    names = frozenset(fields) if isinstance(fields, dict) else frozenset()
    if names not in KINDS:
        kinds = " or ".join(", ".join(sorted(kind)) for kind in KINDS)
        raise ValueError(
            f"a spectrum must have the fields {kinds}; "
            f"got {', '.join(sorted(names)) or 'none'}"
        )
    return KINDS[names](**{name: _numbers(fields[name]) for name in fields})


def _numbers(value: Any) -> Any:
    return tuple(map(float, value)) if isinstance(value, list) else float(value)


def _from_columns(text: str) -> ValueSpectrum:
    lines = [line.split("#")[0].replace(",", " ").split() for line in text.splitlines()]
    rows = [[float(number) for number in line] for line in lines if line]
    widths = {len(row) for row in rows}
    if not widths <= {1} and not widths <= {2}:
        raise ValueError(
            "every line of a spectrum must hold an eigenvalue, or an eigenvalue and "
            f"its share; got lines of {sorted(widths)} numbers"
        )
    columns = list(zip(*rows, strict=True)) or [()]
    return ValueSpectrum(*columns)
