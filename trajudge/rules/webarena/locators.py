"""Read the locators of page checks in stored html.

Needs a browser (the extra ``browser`` and a chromium). The pages' own scripts do not run and
nothing is fetched, so that what style sheets hide is read as well, and a field has the value that
its html says. A value that a run recorded itself is kept.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from trajudge.rules.har import playwright_error
from trajudge.rules.webarena.model import PageCheck, Run, StoredPage, Task, Trace
from trajudge.util.errors import MissingExtra, UserError
from trajudge.util.machine import installed_chromium
from trajudge.util.terminal import progress_bar

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, CDPSession

# A locator is a task author's script: it may loop.
SECONDS = 2.0
_SCRIPTS = ("document.", "[...document.")


def read_locators(context: BrowserContext, checks: Iterable[PageCheck], trace: Trace) -> Trace:
    """Return the trace with the value of each check's locator in each of its stored pages.

    As in the harness, a locator that fails (no such element, a loop) has the value "".
    """
    wanted = [check for check in checks if check.locator.strip().startswith(_SCRIPTS)]
    if not wanted:
        return trace
    pages = tuple(_page_with_values(context, wanted, page) for page in trace.pages)
    return msgspec.structs.replace(trace, pages=pages)


def _page_with_values(
    context: BrowserContext, checks: Sequence[PageCheck], stored: StoredPage
) -> StoredPage:
    missing = [check for check in checks if check.locator not in stored.values]
    if stored.html is None or not missing:
        return stored
    page = context.new_page()
    try:
        page.set_content(stored.html, wait_until="domcontentloaded")
        session = context.new_cdp_session(page)
        values = {check.locator: _value(session, check) for check in missing}
    finally:
        page.close()
    return msgspec.structs.replace(stored, values={**values, **stored.values})


def _value(session: CDPSession, check: PageCheck) -> str:
    for action in () if check.prep_actions is UNSET else check.prep_actions:
        _evaluated(session, action)
    reply = _evaluated(session, check.locator)
    if "exceptionDetails" in reply:
        return ""
    # The harness writes whatever the script returns in Python's way: None, True, 1.
    return str(reply["result"].get("value"))


def _evaluated(session: CDPSession, script: str) -> Mapping[str, Any]:
    asked = {"expression": script, "returnByValue": True, "timeout": SECONDS * 1000}
    try:
        reply: Mapping[str, Any] = session.send("Runtime.evaluate", asked)
    except playwright_error() as error:
        return {"exceptionDetails": error.message}
    return reply


@contextmanager
def quiet_browser() -> Iterator[BrowserContext]:
    """Open a browser without network and without the pages' scripts.

    Raises MissingExtra without Playwright, UserError without a chromium that starts.
    """
    try:
        from playwright.sync_api import Error, sync_playwright  # noqa: PLC0415
    except ImportError:
        raise MissingExtra("playwright", "browser", "reading locators") from None
    executable = installed_chromium()
    if executable is None:
        raise UserError(
            "reading locators needs a chromium:  apt-get install chromium-headless-shell"
        )
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(
                executable_path=executable,
                args=["--host-resolver-rules=MAP * ~NOTFOUND"],
                # Chromium's sandbox refuses to run as root, as in most containers.
                chromium_sandbox=hasattr(os, "geteuid") and os.geteuid() != 0,
            )
        except Error as error:
            reason = error.message.splitlines()[0]
            raise UserError(f"{executable} does not start ({reason}): try it by hand") from error
        try:
            yield browser.new_context(java_script_enabled=False, offline=True)
        finally:
            browser.close()


def read_runs(tasks: Iterable[Task], runs: Sequence[Run]) -> Iterator[Run]:
    """Read the locators of every run's task in its pages; progress is shown on stderr.

    Raises UserError for a run of a task that is not there, and as ``quiet_browser`` does.
    """
    checks = {str(task.task_id): task.eval.program_html for task in tasks}
    with quiet_browser() as context, progress_bar() as show:
        for done, run in enumerate(runs, start=1):
            if str(run.task_id) not in checks:
                raise UserError(f"task id {run.task_id!r} is in no task file: correct the run")
            if run.trace is None:
                yield run
            else:
                read = read_locators(context, checks[str(run.task_id)], run.trace)
                yield msgspec.structs.replace(run, trace=read)
            show("runs", done, len(runs))
