"""The verdict at the end of a run: the same findings as the dossier's, as text."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

from fabricbench.cli.output import say, write_output


def show_verdict(directory: Path) -> None:
    """Write the verdict of a finished run to stdout, and to stderr where the run is and what to do with it."""
    from fabricbench.analysis import analyse  # noqa: PLC0415 - keeps the start of the program fast
    from fabricbench.campaign.specification import Campaign  # noqa: PLC0415
    from fabricbench.record.store import Run  # noqa: PLC0415
    from fabricbench.report.terminal import render_terminal  # noqa: PLC0415

    run = Run.open(directory)
    margin = Campaign.model_validate(run.manifest.campaign).margin
    findings = analyse([run], baseline=None, margin=margin)
    has_colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    width = shutil.get_terminal_size().columns
    write_output(render_terminal(findings, width, color=has_colour, is_brief=True), None, has_colour=has_colour)
    say(f"\nthe run is in {directory}\nthe dossier: {shlex.join(('fabricbench', 'report', str(directory)))}")
