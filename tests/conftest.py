"""What every test may use: the suite's one false-alarm budget."""

from collections.abc import Iterator

import jaxtyping
import pytest
from hypothesis import settings
from playwright.sync_api import Browser

from tests.report.browser import chromium

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
