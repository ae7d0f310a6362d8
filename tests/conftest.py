"""What every test may use: the suite's one false-alarm budget."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import jaxtyping
import pytest
from hypothesis import settings
from playwright.sync_api import Browser

from tests.command_line import Run, run_command
from tests.report.browser import chromium

os.environ["HF_HUB_OFFLINE"] = "1"  # read at transformers' import; no test asks a hub

FALSE_ALARM_BUDGET = 1e-6  # of the whole suite, however many statistical tests it holds

settings.register_profile("ci", derandomize=True, deadline=None, max_examples=50)
settings.load_profile("ci")

ALPHA = pytest.StashKey[float]()


def pytest_collection_modifyitems(config, items):
    claims = sum(1 for item in items if item.get_closest_marker("statistical"))
    config.stash[ALPHA] = FALSE_ALARM_BUDGET / max(1, claims)


@pytest.fixture
def alpha(request) -> float:
    """The false-alarm probability this one test may spend (Bonferroni)."""
    assert request.node.get_closest_marker("statistical"), "mark it statistical"
    return request.config.stash[ALPHA]


@pytest.fixture
def without_shape_checks() -> Iterator[None]:
    """Let wrong shapes reach the door, as they do outside the tests."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Headless Chromium, one for the session."""
    with chromium() as browser:
        yield browser


@pytest.fixture
def command(monkeypatch, capsys) -> Callable[..., Run]:
    """Run the command line in this process, as its script would."""

    def run(*arguments: object) -> Run:
        return run_command(monkeypatch, capsys, *arguments)

    return run


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory) -> Path:
    """A model of a few thousand weights in a folder, and a text beside it."""
    from tests.hf.tiny import tiny_model, tiny_tokenizer  # transformers takes seconds

    folder = tmp_path_factory.mktemp("tiny")
    tiny_model("llama").save_pretrained(folder / "model")
    tiny_tokenizer().save_pretrained(folder / "model")
    text = "Softmax over a long prompt is an operator on the law of its tokens. " * 9
    (folder / "text.txt").write_text(text)
    return folder
