"""``trajudge report``: from runs to one file, and the few lines that a terminal shows of it."""

from __future__ import annotations

import sys

from trajudge.app.reports.content import Content, report_content
from trajudge.app.reports.document import Document, report_document
from trajudge.app.reports.pictures import remove_pictures
from trajudge.app.settings import ReportConfig
from trajudge.util.commands import OK
from trajudge.util.errors import UserError
from trajudge.util.files import check_file, make_folder, save_bytes
from trajudge.util.machine import collection_paused
from trajudge.util.tables import first_screen, fitted, screen_width


def report(config: ReportConfig) -> int:
    """Write the report and print where it is. Raises UserError."""
    if not config.score.runs and config.score.judgments is None:
        raise UserError("nothing to report: give the folder of a run, or --judgments DIR")
    sys.stdout.write(write_report(config))
    return OK


def write_report(config: ReportConfig) -> str:
    """Write the report and return the screen's lines. Raises UserError for what cannot be read,
    scored or written; an earlier file then stays."""
    if not config.folder:
        check_file(config.out, "--out")
    with collection_paused():
        content = report_content(config)
    page = config.page
    try:
        if config.folder:
            make_folder(config.folder, "--folder")
            remove_pictures(config.folder)
        document = report_document(content, config)
        save_bytes(page, document.content)
    except OSError as error:
        raise UserError(f"{page}: cannot be written ({error.strerror})") from error
    width = screen_width()
    return first_screen(
        fitted(content.finding, width),
        [],
        _written(content, document, config),
        fitted(lambda most: [f"warning: {line}" for line in content.warnings(most)], width),
        rest=f"Everything else: {page}",
        more=str(page),
    )


def _written(content: Content, document: Document, config: ReportConfig) -> list[str]:
    lines = [
        f"{config.page}: {len(document.content) / 1e6:.1f} MB, {len(content.cases)} of "
        f"{content.wrong:,} trajectories with a wrong verdict, {document.pictures} pictures"
    ]
    if document.dropped:
        lines.append(
            f"{document.dropped} pictures did not fit into {config.max_size:g} MB: allow more "
            "with --max-size MB, or write a folder with --folder DIR"
        )
    return lines
