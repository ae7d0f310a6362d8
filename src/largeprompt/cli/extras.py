"""The packages that not every command needs, by the extra that brings them."""

import importlib.metadata
import re

SHOWN = ("hf", "distributed")
REQUIREMENT = re.compile(r"""([\w.-]+)[^;]*;.*\bextra == ["'](\w+)["']""")


def packages_of(extra: str) -> list[str]:
    """Return the packages that an extra brings, as the installed metadata say."""
    found = map(REQUIREMENT.match, importlib.metadata.requires("largeprompt") or [])
    return sorted(match[1] for match in found if match and match[2] == extra)


def extra_of(package: str) -> str | None:
    """Return the extra that brings a package, None if it comes with none."""
    top = package.partition(".")[0]
    return next((extra for extra in SHOWN if top in packages_of(extra)), None)
