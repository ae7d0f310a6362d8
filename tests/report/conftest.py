import functools
from collections.abc import Iterator
from pathlib import Path

import pytest
import vl_convert
from playwright.sync_api import Browser, Page

from largeprompt.audit import AuditResult
from largeprompt.report import write_report
from tests.report.browser import open_report, watch
from tests.report.synthetic import synthetic_audit, synthetic_profiles


@pytest.fixture(scope="session", autouse=True)
def _one_bundle() -> Iterator[None]:
    """The chart runtime takes 1.7 s to bundle and is the same for every report."""
    with pytest.MonkeyPatch.context() as patch:
        bundle = functools.cache(vl_convert.javascript_bundle)
        patch.setattr(vl_convert, "javascript_bundle", bundle)
        yield


@pytest.fixture(scope="session")
def audit() -> AuditResult:
    return synthetic_profiles(synthetic_audit())


@pytest.fixture(scope="session")
def report(audit: AuditResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(audit, path)
    return path


@pytest.fixture
def page(browser: Browser, report: Path) -> Iterator[Page]:
    """The report, open; afterwards: no request but for the file, and no complaint."""
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    record = watch(page)
    open_report(page, report)
    yield page
    page.close()
    assert record.requests == [report.as_uri()]
    assert record.complaints == []
