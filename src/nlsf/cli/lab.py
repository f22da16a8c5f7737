"""``nlsf lab``: claims of the paper, measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nlsf.cli.options import say
from nlsf.display.text_table import Head, TextTable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from rich.console import Console

    from nlsf.display.progress import Progress
    from nlsf.lab import Study

lab_app = typer.Typer(
    help="Claims of the paper, measured: list the studies, run one, run all.", no_args_is_help=True
)

Output = Annotated[
    Path, typer.Option("--output", "-o", help="Folder to write the page to; it is made.")
]
_FOLDER = Path("nlsf-out") / "lab"


@lab_app.command("list")
def list_() -> None:
    """List all studies and what they claim."""
    console, progress = _console()
    with progress.phase("Loading PyTorch"):
        from nlsf.lab import STUDIES
    rows = [[study.name, study.claim] for study in STUDIES.values()]
    TextTable([Head("name"), Head("claim", least=30)], rows).print(console)


@lab_app.command()
def run(
    name: Annotated[str, typer.Argument(help="A study of 'nlsf lab list'.", show_default=False)],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of the study; may repeat."),
    ] = None,
    output: Output = _FOLDER,
) -> None:
    """Run one study, say what it found, and write a page.

    Exit code 1 if the claim does not hold on what was sampled.
    """
    console, progress = _console()
    with progress.phase("Loading PyTorch"):
        from nlsf.lab import find_study, read_settings

        study = find_study(name)
        chosen = read_settings(study, settings or [])
    _perform(console, progress, [(study, chosen)], output / f"{study.name}.html")


@lab_app.command("all")
def all_(output: Output = _FOLDER) -> None:
    """Run every study, say what each found, and write one page of all.

    Exit code 1 if a claim does not hold on what was sampled.
    """
    console, progress = _console()
    with progress.phase("Loading PyTorch"):
        from nlsf.lab import STUDIES
    studies = [(study, None) for study in STUDIES.values()]
    _perform(console, progress, studies, output / "gallery.html")


def _perform(
    console: Console, progress: Progress, studies: Sequence[tuple[Study, Any]], page: Path
) -> None:
    from nlsf.lab import perform, write_gallery
    from nlsf.report.numbers import seconds

    page.parent.mkdir(parents=True, exist_ok=True)  # before the work, so that nothing is lost
    outcomes = []
    with progress.phase(total=len(studies), unit="study") as phase:
        for study, settings in studies:
            phase.next(study.title)
            outcome = perform(study, settings)
            outcomes.append(outcome)
            verdict = "holds" if outcome.finding.holds else "DOES NOT HOLD"
            progress.say(f"{study.name} ({seconds(outcome.seconds)}): {verdict}.")
            progress.say(f"  {outcome.finding.conclusion}")
    say(console, "Page: ", write_gallery(outcomes, page))
    failed = [o.study.name for o in outcomes if not o.finding.holds]
    if failed:
        say(console, f"The claim does not hold on what was sampled: {', '.join(failed)}.")
        raise typer.Exit(1)


def _console() -> tuple[Console, Progress]:
    from rich.console import Console

    from nlsf.display.sinks import progress_for

    console = Console()
    return console, progress_for(console)
