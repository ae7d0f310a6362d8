"""Run an audit under a progress bar, after saying what it will take."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

from largeprompt.audit import AuditResult, Question
from largeprompt.audit.arrays_file import audit_file
from largeprompt.audit.checks import check_eps
from largeprompt.audit.store import drop
from largeprompt.cli.arguments import wrong_arguments

GIBI = 2**30


def of_arrays(
    path: str, question: Question, window: int | None, *, causal: bool
) -> AuditResult:
    """Audit a file of arrays."""
    console = Console(stderr=True)
    with wrong_arguments(), console.status(f"auditing {path}"):
        return audit_file(
            path,
            lengths=question.lengths,
            queries=question.queries,
            eps=question.eps,
            window=window,
            causal=causal,
            layers=question.layers,
            heads=question.heads,
            seed=question.seed,
        )


def of_model(
    name: str,
    texts: Sequence[str],
    question: Question,
    *,
    dtype: str,
    device_map: str | None,
    unfinished: Path,
    overwrite: bool,
) -> AuditResult:
    """Load a model, say what the audit will take, and run it or go on with it."""
    from largeprompt.hf import audit_model, estimate, load_model, load_text
    from largeprompt.hf.audit import check_question, named_texts
    from largeprompt.hf.devices import dtype_of

    console = Console(stderr=True)
    with wrong_arguments():
        check_eps(question.eps)
        precision = dtype_of(dtype)
    readings = [load_text(text) for text in texts]
    with wrong_arguments():
        named_texts(readings)
    with console.status(f"loading {name}"):
        loaded = load_model(name, dtype=precision, device_map=device_map)
    with wrong_arguments():
        check_question(loaded.model, question)
    cost = estimate(
        loaded.model,
        question.lengths,
        queries=question.queries,
        layers=question.layers,
        texts=len(readings),
    )
    console.print(
        f"about {cost.seconds:.0f} s, and {cost.peak_bytes / GIBI:.1f} GiB at the peak"
    )
    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
        task = progress.add_task("layers", total=None)
        return audit_model(
            loaded.model,
            loaded.tokenizer,
            readings,
            question.lengths,
            queries=question.queries,
            eps=question.eps,
            layers=question.layers,
            heads=question.heads,
            seed=question.seed,
            progress=lambda done, total: progress.update(
                task, completed=done, total=total
            ),
            description=loaded.description,
            resume_in=unfinished,
            overwrite=overwrite,
        )


def finish(unfinished: Path) -> None:
    """Delete what an audit that is saved has no more use for."""
    drop(unfinished)
