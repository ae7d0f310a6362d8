import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from largeprompt.cli.reproduction_files import check_free, kept_parts, write
from largeprompt.errors import ResultError
from largeprompt.experiments import reproduction
from largeprompt.experiments.paper_endpoint import flow_endpoint
from largeprompt.experiments.paper_limit import limit_identity
from largeprompt.experiments.paper_stability import trajectory_stability
from largeprompt.experiments.reproduction import manifest, reproduce
from largeprompt.experiments.sgd_cost import step_seconds
from largeprompt.experiments.verdicts import (
    Verdict,
    at_least,
    at_most,
    between,
    not_computable,
)
from largeprompt.icl.parameters import Separate
from largeprompt.icl.presets import preset
from tests.report.browser import inked_share, watch

KEYS = {"id", "statement", "source", "verdict", "value", "target"}


def nothing(*_) -> None:
    pass


def test_verdicts_follow_the_value():
    about = "a", "b", "c"
    assert at_most(*about, 1.0, 1.0).verdict is Verdict.PASS
    assert at_most(*about, 1.1, 1.0).verdict is Verdict.FAIL
    assert at_least(*about, 1.1, 1.0).verdict is Verdict.PASS
    assert at_least(*about, 0.9, 1.0).verdict is Verdict.FAIL
    assert between(*about, -1.0, (-1.1, -0.8)).verdict is Verdict.PASS
    assert between(*about, -0.7, (-1.1, -0.8)).verdict is Verdict.FAIL
    assert at_most(*about, float("nan"), 1.0).verdict is Verdict.FAIL
    assert not_computable(*about, "no constants").value is None


@pytest.mark.parametrize("part", [limit_identity, flow_endpoint, trajectory_stability])
def test_statements_of_a_part_hold(part):
    finding = part(fast=True, progress=nothing)
    assert {claim.verdict for claim in finding.claims} == {Verdict.PASS}
    assert finding.table.num_rows > 0


def test_finished_parts_are_read_and_not_computed_again(tmp_path, monkeypatch):
    runs = []

    def part(*, fast, progress):
        runs.append(fast)
        return limit_identity(fast=fast, progress=progress)

    monkeypatch.setattr(reproduction, "PARTS", {"limit": part})
    (first,) = reproduce(tmp_path, fast=True)
    (again,) = reproduce(tmp_path, fast=True)
    assert runs == [True], "the second run read what the first one kept"
    assert again.table.equals(first.table)
    assert again.claims == first.claims
    list(reproduce(tmp_path, fast=False))
    assert runs == [True, False], "a run of another kind is another run"


def test_interrupted_run_keeps_what_was_done(tmp_path, monkeypatch):
    def interrupted(*, fast, progress):
        raise KeyboardInterrupt

    parts = {"limit": limit_identity, "training": interrupted}
    monkeypatch.setattr(reproduction, "PARTS", parts)
    with pytest.raises(KeyboardInterrupt):
        list(reproduce(tmp_path, fast=True))
    assert [path.name for path in tmp_path.iterdir()] == ["limit.parquet"]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    directory = tmp_path_factory.mktemp("reproduction") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reproduction, "PARTS", {"limit": limit_identity})
        findings = list(reproduce(kept_parts(directory), fast=True))
    write(findings, manifest(fast=True, started=0.0), directory, overwrite=False)
    return directory, findings


def test_files_are_all_there_and_the_kept_parts_gone(written):
    directory, _ = written
    figures = {"limit.svg", "limit.png", "limit.pdf", "limit.parquet"}
    rest = {"verdicts.json", "manifest.json", "reproduction.html"}
    assert {path.name for path in directory.iterdir()} == figures | rest
    assert not kept_parts(directory).exists()


def test_verdicts_are_a_list_of_records_of_six_fields(written):
    directory, findings = written
    claims = json.loads((directory / "verdicts.json").read_text())
    assert [claim.keys() for claim in claims] == [KEYS] * len(findings[0].claims)
    assert {claim["verdict"] for claim in claims} <= set(map(str, Verdict))


def test_page_asks_for_nothing_and_shows_every_verdict(written):
    directory, findings = written
    page = (directory / "reproduction.html").read_text()
    assert not re.search(r"(src|href)=\"(?!data:)", page)
    assert "<script" not in page
    for claim in findings[0].claims:
        assert claim.id in page


@pytest.mark.browser
def test_page_opens_in_chromium_without_a_request_or_a_complaint(written, browser):
    directory, findings = written
    path = directory / "reproduction.html"
    page = browser.new_page()
    record = watch(page)
    page.goto(path.as_uri())
    shown = page.inner_text("body")
    assert all(claim.statement in shown for claim in findings[0].claims)
    assert inked_share(page.screenshot()) > 0.01
    page.close()
    assert [url for url in record.requests if not url.startswith("data:")] == [
        path.as_uri()
    ]
    assert record.complaints == []


def test_results_in_the_way_are_refused(written, tmp_path):
    directory, _ = written
    with pytest.raises(ResultError, match="already holds"):
        check_free(directory, overwrite=False)
    check_free(directory, overwrite=True)
    check_free(tmp_path / "new", overwrite=False)


def test_kept_parts_of_another_run_are_no_findings(tmp_path):
    path = tmp_path / "limit.parquet"
    assert reproduction.read_finding(path, "run") is None
    pq.write_table(pa.table({"x": [1]}), path)
    assert reproduction.read_finding(path, "run") is None


@pytest.mark.parametrize("softmax", [True, False])
def test_a_plain_step_takes_time_and_leaves_the_start_alone(softmax):
    setting = preset("paper-intended")
    start = Separate.draw(5, torch.Generator().manual_seed(0))
    before = start.flat().clone()
    assert step_seconds(setting.task, start, 10, softmax=softmax) > 0
    assert torch.equal(start.flat(), before)
