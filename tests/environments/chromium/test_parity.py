"""``mark="browsergym"`` gives the lines that browsergym-core 0.14.3 gives for the same page."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.environments.chromium.conftest import Open
from tests.environments.chromium.site import Site
from trajudge.environments.chromium import Browser, open_session
from trajudge.environments.chromium.axtree import AxNode, AxValue
from trajudge.environments.chromium.parity import browsergym_text

pytestmark = pytest.mark.browser

# As the package wrote it, but for the address.
MEASURED = """\
RootWebArea 'Site', focused, url='ADDRESS'
\t[4] heading 'Cart', visible
\t[5] navigation '', visible
\t\t[6] link 'Home', clickable, visible, url='ADDRESS#a'
\t\tStaticText ''
\t\t[7] link 'Orders', clickable, visible, url='ADDRESS#b'
\t[8] form '', visible
\t\t[9] LabelText '', clickable, visible
\t\t\tStaticText 'Qty'
\t\t\t[10] spinbutton 'Qty' value=2, clickable, visible, required, valuemin=1, valuemax=0, \
valuetext='2'
\t\t\t\tStaticText '2'
\t\t[11] combobox 'Ship' value='Fast', visible, hasPopup='menu', expanded=False
\t\t\tMenuListPopup ''
\t\t\t\t[12] option 'Std', selected=False
\t\t\t\t[13] option 'Fast', selected=True
\t\t[14] checkbox 'Gift', clickable, visible, checked='true'
\t\t[15] button 'Pay', visible, disabled=True
\t\t[16] button 'Update', clickable, visible
\t[17] list '', visible
\t\t[18] listitem '', visible
\t\t\tListMarker '•'
\t\t\tStaticText 'One'
\t\t[19] listitem '', visible
\t\t\tListMarker '•'
\t\t\tStaticText 'Two'
\t\t\tStaticText 'bold'
\t[21] LayoutTable '', visible
\t\t[23] LayoutTableRow '', visible
\t\t\t[24] LayoutTableCell 'a', visible
\t\t\t[25] LayoutTableCell '1', visible
\t[26] dialog '', visible, modal=False
\t\t[27] paragraph '', visible
\t\t\tStaticText 'Sure?'
\t\t[28] button 'Yes', visible
\t[29] textbox 'Note' value='hi', visible
\t\tStaticText 'hi'"""

PEER = """
import sys
from playwright.sync_api import sync_playwright
from browsergym.core import observation as seen
from browsergym.utils.obs import flatten_axtree_to_str
with sync_playwright() as playwright:
    playwright.selectors.set_test_id_attribute("bid")
    browser = playwright.chromium.launch(executable_path=sys.argv[1], args=["--no-sandbox"])
    page = browser.new_page(viewport={"width": 1024, "height": 768})
    page.goto(sys.argv[2])
    seen._pre_extract(page, tags_to_mark="standard_html", lenient=False)
    tree = seen.extract_merged_axtree(page)
    extra = seen.extract_dom_extra_properties(seen.extract_dom_snapshot(page), 1.0)
    print(flatten_axtree_to_str(tree, extra_properties=extra, with_visible=True,
          with_clickable=True, ignored_roles=["LineBreak", "InlineTextBox"]))
"""


def ours(browser: Browser, url: str) -> str:
    with open_session(browser, url, mark="browsergym") as session:
        return session.observe().observation.axtree or ""


def test_a_page_reads_as_it_was_measured(at: Open) -> None:
    with at("/parts", mark="browsergym") as session:
        view = session.observe()
    text = (view.observation.axtree or "").replace(view.observation.url or "-", "ADDRESS")
    assert text == MEASURED


def test_a_tree_that_is_its_own_ancestor_ends() -> None:
    node = AxNode("1", role=AxValue("list"), name=AxValue("x"), child_ids=["1"])
    assert browsergym_text([node], {}) == "list 'x'"
    assert browsergym_text([], {}) == ""


@pytest.mark.parametrize("path", ["/", "/dialog", "/parts", "/more-parts", "/large"])
def test_the_package_gives_the_same_lines(
    chromium: Path, browser: Browser, site: Site, path: str
) -> None:
    peer = os.environ.get("TRAJUDGE_BROWSERGYM")
    if not peer:
        pytest.skip(
            "TRAJUDGE_BROWSERGYM names no Python with browsergym-core 0.14.3 (it pins another "
            "Playwright, so it has an environment of its own)"
        )
    url = f"http://127.0.0.1:{site.server_port}{path}"
    done = subprocess.run(
        [peer, "-c", PEER, str(chromium), url], capture_output=True, text=True, check=True
    )
    assert ours(browser, url).splitlines() == done.stdout.rstrip("\n").splitlines()
