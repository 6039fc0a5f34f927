"""Pictures of the application's main pages, from the bundled sample.

``python -m tests.app.pictures docs/pictures`` makes those of the documentation anew.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page

from tests.app.browsing import launched
from tests.app.serving import served
from trajudge import judge
from trajudge.annotations.queue import LabelQueue
from trajudge.app.label_pages import label_room
from trajudge.app.web import trajectory_link
from trajudge.app.workspace import Workspace, open_workspace
from trajudge.eval.labelling.build import plan_queue, write_queue
from trajudge.eval.labelling.settings import BuildConfig
from trajudge.eval.store.run_folder import read_judgments
from trajudge.util.machine import installed_chromium

SIZE = (1200, 760)
_READING = re.compile("are still being read|free text knows")
NAMES = ("run", "judgments", "trajectory", "label")


def make_pictures(browser: Browser, folder: Path, scratch: Path) -> None:
    """Write ``NAMES`` as PNG of ``SIZE`` into ``folder``; runs and queue go to ``scratch``."""
    run = scratch / "heuristic"
    judge("sample", "heuristic", out=run)
    folder.mkdir(parents=True, exist_ok=True)
    with served(open_workspace([run])) as server, _page(browser) as page:
        for name, path in zip(NAMES, _addresses(run), strict=False):
            page.goto(server.address + path)
            # Figures, goals and steps are read beside the page.
            page.get_by_text("being computed").wait_for(state="detached")
            page.wait_for_load_state("networkidle")
            while page.get_by_text(_READING).count():
                page.wait_for_timeout(100)
                page.reload()
            _keep(page, folder / f"{name}.png")
    config = BuildConfig(runs=(run,), budget=10, out=scratch / "queue")
    write_queue(plan_queue(config), config)
    store = LabelQueue(config.out)
    with (
        served(Workspace({}, store.settings.data), [label_room(store)]) as server,
        _page(browser) as page,
    ):
        page.goto(server.address)
        page.get_by_label("Name").fill("A")
        page.get_by_role("button", name="Begin").click()
        page.get_by_text("Begin to label").click()
        page.wait_for_load_state("networkidle")
        _keep(page, folder / "label.png")
    store.close()


def _addresses(run: Path) -> Iterator[str]:
    yield f"/run/{run.name}"
    yield f"/run/{run.name}/judgments?f=wrong:fp&sort=-agree"
    key = next(one.key for one in read_judgments(run) if one.key.benchmark == "shop")
    yield f"{trajectory_link(key)}?step=2"


@contextmanager
def _page(browser: Browser) -> Iterator[Page]:
    screen = {"width": SIZE[0], "height": SIZE[1]}
    context = browser.new_context(viewport=screen, color_scheme="light")  # type: ignore[arg-type]
    yield context.new_page()
    context.close()


def _keep(page: Page, file: Path) -> None:
    """Write the picture in 64 colours, which is a third of the bytes."""
    shot = Image.open(BytesIO(page.screenshot()))
    shot.convert("RGB").quantize(64).save(file, optimize=True)


if __name__ == "__main__":
    program = Path(installed_chromium() or "chromium")
    with launched(program) as chromium, tempfile.TemporaryDirectory() as place:
        make_pictures(chromium, Path(sys.argv[1]), Path(place))
