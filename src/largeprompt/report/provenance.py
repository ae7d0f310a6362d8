"""What was audited, how, when and with what: the manifest as lines of text."""

import datetime
from collections.abc import Mapping
from typing import Any

from largeprompt.report.numbers import count, show

Manifest = Mapping[str, Any]

APART = ("definitions", "texts")  # told elsewhere: a report is on one text


def byline(manifest: Manifest) -> list[str]:
    """Return the parts of the line under the title: shape, text, day, version."""
    model, text = manifest["model"], manifest["text"]
    created = datetime.datetime.fromisoformat(manifest["created"])
    return [
        f"{count(model['layers'], 'layer')} of {count(model['heads'])}",
        f"text {text['name']}, {count(text['tokens'], 'token')}",
        f"{created.day} {created:%B %Y, %H:%M %Z}",
        f"largeprompt {manifest['versions']['largeprompt']}",
    ]


def provenance(manifest: Manifest) -> dict[str, list[str]]:
    """Return the entries of the manifest but the definitions, each as lines of text."""
    told = {name: value for name, value in manifest.items() if name not in APART}
    return {name.replace("_", " "): _lines(value) for name, value in told.items()}


def _lines(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [f"{name}: {_text(entry)}" for name, entry in value.items()]
    return [_text(value)]


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_text(entry) for entry in value)
    return value if isinstance(value, str) else show(value)
