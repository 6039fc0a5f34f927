"""The page on which a person reads the goal of a run, and says that it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from secrets import token_urlsafe

from aiohttp import web

from trajudge.environments.hosting.runs import HostedRun, RunHost, same_token
from trajudge.environments.kit.html import NONCE, render
from trajudge.environments.kit.layout import PageLayout
from trajudge.environments.kit.theme import theme
from trajudge.environments.kit.words import WORDS
from trajudge.environments.model.page import (
    Block,
    DefinitionList,
    Form,
    Link,
    Notice,
    Page,
    Paragraph,
    Section,
)
from trajudge.environments.model.spec import Rejected
from trajudge.environments.serving.answer_page import ANSWER, answer_page, submitted
from trajudge.environments.serving.pages import ASSETS, HEADERS, NAVIGATION, page_file
from trajudge.environments.verify import VerificationResult
from trajudge.util.tables import Table

PERSON = "person"
_YES_NO = {True: "yes", False: "no", None: "open to argument"}
_LOOK = theme(0, 0)
_TITLE = "trajudge env play"


class PersonPage:
    """One run's page on the control listener, on loopback. ``ended`` is set when it is over."""

    def __init__(self, host: RunHost, hosted: HostedRun, address: str) -> None:
        self.host, self.hosted = host, hosted
        self.ended = asyncio.Event()
        self._hosts = {address, address.replace("127.0.0.1", "localhost")}
        self._nonce = token_urlsafe(32)

    def application(self) -> web.Application:
        """Return the page as an application."""
        application = web.Application()
        application.add_routes(
            [
                web.get("/", self._show),
                web.get("/site", self._site),
                web.get(f"/{ASSETS}{{name}}", self._file),
                web.post(f"/do/{ANSWER}", self._done),
            ]
        )
        return application

    async def _show(self, request: web.Request) -> web.Response:
        if request.host not in self._hosts:  # a name that somebody else points here
            return web.Response(status=404)
        return await self._page()

    async def _site(self, _: web.Request) -> web.Response:
        """Lead to the site, which is on another listener."""
        return web.Response(status=303, headers={"Location": self.hosted.run.start_url})

    async def _file(self, request: web.Request) -> web.Response:
        file = page_file(request.match_info["name"], _LOOK, "plain")
        body = file.body.encode() if isinstance(file.body, str) else file.body
        return web.Response(
            status=file.status, body=body, content_type=file.content_type, headers=file.headers
        )

    async def _done(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        ours = all(request.headers.get(name) == value for name, value in NAVIGATION.items())
        fits = same_token(form.pop(NONCE, ""), self._nonce)
        if request.host not in self._hosts or not ours or not fits:
            return web.Response(status=403, text="refused: the form was not sent from its page")
        if self.hosted.status != "open":
            return await self._page()
        message = self._message(form)
        if isinstance(message, Rejected):
            return await self._page(message.message)
        self.hosted.run.declared = message or None
        self.hosted.end("finished")
        return await self._page()

    def _message(self, form: Mapping[str, str]) -> str | Rejected:
        """Return the last message. Where nothing is asked for, it may be empty."""
        scenario = self.hosted.run.scenario
        if not scenario.answers and not any(text.strip() for text in form.values()):
            return "Done."
        return submitted(scenario, form)

    async def _page(self, refused: str = "") -> web.Response:
        run = self.hosted.run
        blocks: tuple[Block, ...]
        if self.hosted.status == "open":
            ends = self.hosted.ends_at.astimezone().strftime("%H:%M:%S")
            error = (Notice(refused, error=True),) if refused else ()
            form = next(b for b in answer_page(run.scenario).blocks if isinstance(b, Form))
            blocks = (
                *error,
                Paragraph(run.goal),
                Paragraph(f"The site is {run.start_url}"),
                Link("Open the site", "site"),
                Paragraph(f"The time ends at {ends}."),
                form._replace(submit="I am done"),
            )
        else:
            recorded = await asyncio.to_thread(self.host.settle, self.hosted)
            self.ended.set()
            rows = verdict_rows(recorded.finding)
            blocks = (Paragraph(run.goal), Section("Verdict", (DefinitionList(rows),)))
        return web.Response(
            text=render(Page("Your task", blocks), self._layout()),
            content_type="text/html",
            headers=HEADERS,
        )

    def _layout(self) -> PageLayout:
        return PageLayout(
            title=_TITLE,
            navigation=(),
            theme=_LOOK,
            words={key: texts[0] for key, texts in WORDS.items()},
            nonce=lambda _: self._nonce,
            chart=lambda _: "",
        )


def verdict_rows(finding: VerificationResult) -> tuple[tuple[str, str], ...]:
    """Return what a run came to: its labels, and the predicates and answers that they rest on."""
    labels = finding.labels
    rows = [("Success", _YES_NO[labels.success]), ("Side effect", _YES_NO[labels.side_effect])]
    for predicate in finding.predicates:
        met = "holds" if predicate.holds else f"{predicate.found} instead of {predicate.wanted}"
        rows.append((predicate.name, met))
    for answer in finding.answers:
        right = "right" if answer.right else answer.reason or _YES_NO[answer.right]
        rows.append((f"Answer: {', '.join(answer.expected)}", right))
    rows += [(f"{c.kind} {c.table} {c.key}", "nobody asked for it") for c in finding.outside]
    return tuple(rows)


def verdict_table(finding: VerificationResult) -> Table:
    """Return the verdict for a terminal."""
    return Table("Verdict", ("what", "verdict"), verdict_rows(finding), names=2)
