"""Headless Chromium, and what must not happen while it shows a report."""

import contextlib
import dataclasses
import shutil
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

ARGUMENTS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
]


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    assert executable, "these tests need Chromium: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=ARGUMENTS)
        yield browser
        browser.close()


@dataclasses.dataclass
class Record:
    """What a page asked for, and what it complained about."""

    requests: list[str]
    complaints: list[str]


def watch(page: Page) -> Record:
    record = Record([], [])

    def hear(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            record.complaints.append(message.text)

    page.on("request", lambda request: record.requests.append(request.url))
    page.on("pageerror", lambda error: record.complaints.append(error.message))
    page.on("console", hear)
    return record


def open_report(page: Page, path: Path) -> None:
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-drawn=true]", timeout=30_000)


def inked_share(png: bytes) -> float:
    """The share of bytes that differ from what a PNG filter predicts: 0 if blank."""
    assert png.startswith(b"\x89PNG"), "a PNG file"
    start, pixels = 8, b""
    while start < len(png):
        (length,) = struct.unpack(">I", png[start : start + 4])
        if png[start + 4 : start + 8] == b"IDAT":
            pixels += png[start + 8 : start + 8 + length]
        start += length + 12
    plain = zlib.decompress(pixels)
    return 1 - plain.count(0) / len(plain)
