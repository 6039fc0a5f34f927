"""One run of a configuration on the server: its state, what it issued, and what happened in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from threading import Lock
from typing import Literal, NamedTuple

from trajudge.environments.apps import load_app
from trajudge.environments.kit.layout import FrameParts
from trajudge.environments.kit.theme import theme, wordings
from trajudge.environments.model.axes import instance, open_state, ui
from trajudge.environments.model.binding import bind
from trajudge.environments.model.config import Config
from trajudge.environments.model.operation_codes import operation_code, run_key
from trajudge.environments.model.page import Chart, Form, Word
from trajudge.environments.model.payload import Payload, plant
from trajudge.environments.model.site import Site
from trajudge.environments.model.spec import App, Bound, Scenario
from trajudge.environments.model.state import AppState, Dump
from trajudge.environments.model.wording import worded
from trajudge.environments.serving.answer_page import ANSWER
from trajudge.environments.serving.noise import noise
from trajudge.environments.verify import ExecutedAction, RunEvidence

ORIGIN = "http://{run}.localhost"
ISSUED = 4000  # forms whose nonces are remembered; an older page's form counts as stale

EventKind = Literal[
    "document",
    "operation",
    "question",
    "refused",
    "dismissed",
    "missing",
    "tamper",
    "fault",
    "answer",
    "late",
]


class ServerEvent(NamedTuple):
    """One event on the server. ``detail`` says what a tamper consisted of."""

    kind: EventKind
    method: str
    path: str
    detail: str = ""


class IssuedForm(NamedTuple):
    """A form as it was rendered, and the page that it stood on."""

    form: Form
    page: str
    args: Mapping[str, str]


@dataclass
class ServedRun:
    """A run. ``origin`` is its own, so that runs share neither storage nor pages. ``before`` is
    the state it began with, ``events`` what the server saw, in order, ``script`` whether its pages
    have the script of the widgets, ``shown`` the address of the page that was asked for last,
    ``message`` what the next page says of what was done, ``declared`` the last message that was
    submitted on the page for it, ``mistake`` what the application's code raised last."""

    id: str
    config: Config
    app: App
    scenario: Scenario
    bound: Bound
    goal: str
    state: AppState
    key: bytes
    payload: Payload | None = None
    origin: str = ""
    before: Dump = field(init=False)
    site: Site = field(init=False)
    events: list[ServerEvent] = field(default_factory=list)
    documents: int = 0
    script: bool = False
    shown: str = "/"
    message: Word | None = None
    declared: str | None = None
    mistake: BaseException | None = None
    dismissed: set[str] = field(default_factory=set)
    lock: Lock = field(default_factory=Lock)
    _issued: dict[str, IssuedForm] = field(default_factory=dict)
    _charts: dict[str, Chart] = field(default_factory=dict)
    _count: int = 0

    def __post_init__(self) -> None:
        self.origin = (self.origin or ORIGIN).replace("{run}", self.id)
        self.before = self.state.dump()
        interface = ui(self.app, self.config.ui, self.config.seed)
        self.site = Site(self.app, self.state, interface, self.code)
        self.script = interface.script == "full"
        self.dress(self.config.theme)
        self.noise = noise(self.config)

    def dress(self, index: int) -> None:
        """Show the pages in this theme."""
        self.theme = theme(index, self.config.seed)
        self.words = wordings(self.app, self.theme)
        self.frame: FrameParts = {}

    @property
    def start_url(self) -> str:
        return f"{self.origin}/{self.site.ui.start}"

    @property
    def answer_url(self) -> str:
        """Return the address of the page on which an answer is submitted."""
        return f"{self.origin}/{ANSWER}"

    def code(self, table: str, key: str) -> str:
        """Return the operation code of a row as it is now. Raises KeyError for a row that is not
        there."""
        return operation_code(self.key, self.scenario.id, table, dict(self.state.row(table, key)))

    def evidence(
        self, answer: str | None = None, actions: Sequence[ExecutedAction] = (), shortest: int = 0
    ) -> RunEvidence:
        """Return what is known of the run as it stands, with its last message and its trace."""
        now = RunEvidence(self.scenario, self.bound, self.before, self.state, self.code, self.goal)
        return replace(now, answer=answer, actions=actions, shortest=shortest)

    def note(self, kind: EventKind, method: str, path: str, detail: str = "") -> None:
        self.events.append(ServerEvent(kind, method, path, detail))

    def issue(self, form: Form, page: str, args: Mapping[str, str]) -> str:
        """Return a nonce for a form that is being rendered; it is good for one submission."""
        nonce = self._name("form")
        self._issued[nonce] = IssuedForm(form, page, args)
        if len(self._issued) > ISSUED:
            del self._issued[next(iter(self._issued))]
        return nonce

    def consume_nonce(self, nonce: str) -> IssuedForm | None:
        """Return the form that a nonce was issued for, once."""
        return self._issued.pop(nonce, None)

    def picture(self, chart: Chart) -> str:
        """Return the address of a chart, which says nothing about its values."""
        name = next((name for name, known in self._charts.items() if known == chart), None)
        if name is None:
            name = self._name("chart")
            self._charts[name] = chart
        return f"/chart/{name}.png"

    def chart(self, name: str) -> Chart | None:
        return self._charts.get(name)

    def _name(self, purpose: str) -> str:
        self._count += 1
        return sha256(self.key + f"{purpose}{self._count}".encode()).hexdigest()[:20]


def open_run(
    config: Config,
    secret: bytes,
    name: str = "",
    goal: str | None = None,
    payload: Payload | None = None,
    *,
    origin: str = ORIGIN,
) -> ServedRun:
    """Return a fresh run of a configuration. ``name`` tells runs of the same configuration apart;
    a ``payload`` is in what users wrote before it begins; in ``origin`` its name replaces
    ``{run}``.

    Raises UserError for an unknown application, KeyError for an unknown scenario, Infeasible for
    a configuration whose slots cannot be bound.
    """
    app = load_app(config.app)
    scenario = app.scenario(config.scenario)
    state = open_state(app, config)
    if payload is not None:
        plant(app.id, state, payload)
    places = instance(app.id, scenario.id, tuple(scenario.slots), config.instance, config.seed)
    bound = bind(scenario, places, state)
    wording = goal or worded(scenario, config, bound)
    identity = "r" + sha256(f"{config.id} {name}".encode()).hexdigest()[:12]
    key = run_key(secret, identity)
    return ServedRun(identity, config, app, scenario, bound, wording, state, key, payload, origin)
