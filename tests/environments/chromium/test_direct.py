"""An action that is done at once is what Playwright would have done; where it is not plain, it is
Playwright that does it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.environments.chromium.conftest import Open, bid
from trajudge.environments.chromium import Session, direct
from trajudge.environments.chromium.protocol import ProtocolError

pytestmark = pytest.mark.browser

PAGE = """(body) => {
  document.body.innerHTML = `<style>button, input { margin: 9px; width: 90.5px }</style>${body}`;
  window.heard = [];
  for (const kind of ["pointerdown", "mousedown", "mouseup", "click", "input", "change", "focusin"])
    document.addEventListener(kind, (event) => heard.push([
      kind, event.target.id, event.clientX, event.clientY, event.button, event.buttons,
      event.detail, event.isTrusted, event.target.value, document.activeElement.id,
    ]), true);
}"""
READY = "<p>A</p><button id=go>Go</button><label>Name <input id=name value=old></label>"


def shown(session: Session, body: str) -> None:
    session._run(session.tab.page.evaluate(PAGE, body))


def element(session: Session, selector: str) -> str:
    """The remote object's id."""
    asked = {"expression": f"document.querySelector({selector!r})"}
    found = session._run(session.tab.cdp.send("Runtime.evaluate", asked))
    return str(found["result"]["objectId"])


def heard(session: Session) -> Any:
    return session.evaluate("heard.splice(0)")


def test_a_page_sees_the_events_that_playwright_causes(at: Open) -> None:
    seen = []
    for by_playwright in (False, True):
        with at("/") as session:
            shown(session, READY + "<div style='height:3000px'></div><button id=low>Low</button>")
            page, cdp = session.tab.page, session.tab.cdp
            for selector in ("#go", "#low"):
                if by_playwright:
                    session._run(page.click(selector, no_wait_after=True))
                else:
                    assert session._run(direct.click(cdp, element(session, selector)))
            scrolled = session.evaluate("scrollY")
            if by_playwright:
                session._run(page.fill("#name", "Ann"))
            else:
                assert session._run(direct.fill(cdp, element(session, "#name"), "Ann"))
            seen.append((heard(session), scrolled))
    for ours, theirs in zip(*(events for events, _ in seen), strict=True):
        assert ours == theirs
    assert seen[0][1] == seen[1][1] > 0
    assert [kind for kind, *_ in seen[0][0]].count("click") == 2


@pytest.mark.parametrize(
    "body",
    [
        "<button id=x disabled>Go</button>",
        "<fieldset disabled><button id=x>Go</button></fieldset>",
        "<button id=x aria-disabled=true>Go</button>",
        "<button id=x style='visibility:hidden'>Go</button>",
        "<button id=x style='display:none'>Go</button>",
        "<button id=x>Go</button><div style='position:fixed;inset:0'>over it</div>",
        "<a href='#a'><b id=x>inside a link</b></a>",
        "<style>@keyframes k { to { margin-left: 99px } } "
        "#x { animation: k 9s !important }</style><button id=x>Go</button>",
    ],
)
def test_what_is_not_plainly_ready_is_left_to_playwright(at: Open, body: str) -> None:
    with at("/") as session:
        shown(session, body)
        assert not session._run(direct.click(session.tab.cdp, element(session, "#x")))
        assert heard(session) == []


def test_a_click_that_something_opens_under_reaches_nothing(at: Open) -> None:
    with at("/") as session:
        shown(session, "<button id=x onmousemove='over.hidden = false'>Go</button>")
        over = "<div id=over hidden style='position:fixed;inset:0'>Menu</div>"
        session.evaluate(f"document.body.insertAdjacentHTML('beforeend', {over!r})")
        assert session._run(direct.click(session.tab.cdp, element(session, "#x")))
        assert [kind for kind, *_ in heard(session)] == []
        session.evaluate("over.remove()")
        assert session._run(direct.click(session.tab.cdp, element(session, "#x")))
        assert "click" in [kind for kind, *_ in heard(session)]


@pytest.mark.parametrize("kind", ["date", "range", "checkbox", "file"])
def test_only_text_is_typed(at: Open, kind: str) -> None:
    with at("/") as session:
        shown(session, f"<input id=x type={kind}>")
        assert not session._run(direct.fill(session.tab.cdp, element(session, "#x"), "2026-01-01"))


def test_half_a_surrogate_pair_on_a_page_is_read(at: Open) -> None:
    with at("/") as session:
        session.evaluate("document.body.append('half \\ud83d')")
        assert "half" in (session.observe().observation.axtree or "")


def test_a_session_that_is_gone_says_so(at: Open) -> None:
    with at("/") as session:
        cdp = session._run(session.tab.protocol.attach(target(session)))
        session._run(session.tab.protocol.detach(cdp))
        with pytest.raises(ProtocolError, match="closed"):
            session._run(cdp.send("Runtime.evaluate", {"expression": "1"}))
        assert bid(session, "Form")


def target(session: Session) -> str:
    found = session._run(session.tab.cdp.send("Target.getTargetInfo"))
    return str(found["targetInfo"]["targetId"])
