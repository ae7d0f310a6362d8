"""The check of recorded ratios: it sees what is worse, and only that."""

import argparse
import json

import pytest

from benchmarks import record, regression, run


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """Record runs of a case: the quantity, its unit, and its median and spread."""
    monkeypatch.setattr(record, "RESULTS", tmp_path)

    def write(quantity: str, unit: str, *runs: tuple[float, float, float]) -> None:
        rows = [
            {"quantity": quantity, "unit": unit, "date": f"2026-01-0{day}"}
            | dict(zip(("least", "median", "most"), run, strict=True))
            for day, run in enumerate(runs, 1)
        ]
        lines = "".join(f"{json.dumps(row)}\n" for row in rows)
        (tmp_path / "law.jsonl").write_text(lines)

    return write


def verdicts() -> list[bool]:
    return [worse for worse, _ in regression.findings("law")]


@pytest.mark.parametrize(
    ("quantity", "before", "after", "worse"),
    [
        ("speed over scipy", (9, 10, 11), (4, 5, 6), True),
        ("speed over scipy", (9, 10, 11), (19, 20, 21), False),
        ("speed over scipy", (9, 10, 11), (4, 5, 9.5), False),  # within the spread
        ("speed over scipy", (10, 10, 10), (9.5, 9.5, 9.5), False),  # within a tenth
        ("bytes over an exact cache's", (9, 10, 11), (19, 20, 21), True),
        ("bytes over an exact cache's", (9, 10, 11), (4, 5, 6), False),
        ("of a kind that no list names", (9, 10, 11), (4, 5, 6), True),
        ("of a kind that no list names", (9, 10, 11), (19, 20, 21), True),
    ],
)
def test_a_ratio_is_worse_only_the_wrong_way_and_beyond_its_spread(
    recorded, quantity, before, after, worse
):
    recorded(quantity, "x", (1, 1, 1), before, after)  # an older run is not looked at
    assert verdicts() == [worse]


def test_times_and_cases_of_one_run_are_not_compared(recorded):
    recorded("time", "s", (1, 1, 1), (9, 9, 9))
    assert verdicts() == []
    recorded("speed of it", "x", (1, 1, 1))
    assert verdicts() == []


def test_the_exit_status_says_whether_a_ratio_is_worse(recorded, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["regression", "law"])
    recorded("speed of it", "x", (9, 10, 11), (4, 5, 6))
    assert regression.main() == 1
    assert "WORSE   law: speed of it: 10 to 5" in capsys.readouterr().out
    recorded("speed of it", "x", (9, 10, 11), (9, 10, 11))
    assert regression.main() == 0


def test_every_recorded_ratio_has_a_declared_direction():
    known = (
        *regression.SMALLER_IS_BETTER,
        *regression.LARGER_IS_BETTER,
        *regression.NEITHER_IS_BETTER,
    )
    unknown = {
        row["quantity"]
        for case in run.CASES
        for row in record.latest(case).values()
        if row["unit"] == regression.RATIO
        and not any(word in row["quantity"] for word in known)
    }
    assert unknown == set()


def test_no_case_named_is_every_case(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["run"])
    assert run.asked(argparse.ArgumentParser()) == run.CASES
    monkeypatch.setattr("sys.argv", ["run", "lew"])
    with pytest.raises(SystemExit):
        run.asked(argparse.ArgumentParser())
    assert "a case is one of law" in capsys.readouterr().err
