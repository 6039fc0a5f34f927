"""Claims first: the agent's prose becomes checkable items, which are verified on the pages alone.

Two calls: one turns prose into claims, one finds evidence with citations that are looked up.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from pydantic import Field

from trajudge.judges.defences import MARK, PARTS, without
from trajudge.judges.model import Message, Model, Text, Verdict
from trajudge.judges.prompting import (
    EMPTY_VIEW,
    TruncatedPrompt,
    ask_about_steps,
    ask_with_truncation,
    conversation,
    prompt_tokens,
    template_variables,
)
from trajudge.judges.registry import register_judge
from trajudge.judges.replies import (
    ParseFailure,
    error_context,
    flag,
    normalise,
    parse_complete_reply,
    parse_json,
    parse_reply,
)
from trajudge.prompts.render import load_prompt
from trajudge.prompts.untrusted import neutralise
from trajudge.trajectories.model import Record, Trajectory
from trajudge.trajectories.needs import Needs, last
from trajudge.trajectories.represent import MissingObservation, Representation
from trajudge.trajectories.tokens import count_tokens, fits
from trajudge.trajectories.truncate import PromptTruncator, TruncatedView, TruncationLevel, largest

HEAD_SHARE = 2 / 3

_LEFT_OUT = "[... {count} lines left out ...]"


class NumberedPage(NamedTuple):
    """The lines of the page at a step (from 1) that are shown, by their number from 1."""

    step: int
    lines: Mapping[int, str]
    total: int

    @property
    def text(self) -> str:
        """The lines with ``step:line`` before each, and what was left out."""
        return "\n".join(self._shown())

    def _shown(self) -> Iterator[str]:
        before = 0
        for number, line in self.lines.items():
            if left_out := number - before - 1:
                yield _LEFT_OUT.format(count=left_out)
            yield f"{self.step}:{number} {line}"
            before = number
        if left_out := self.total - before:
            yield _LEFT_OUT.format(count=left_out)

    def within(self, budget: int) -> NumberedPage:
        """Return the page with its first and last lines alone, in at most ``budget`` tokens."""
        if fits(self.text, budget):
            return self

        def kept(count: int) -> NumberedPage:
            head = round(count * HEAD_SHARE)
            shown = [*range(1, head + 1), *range(self.total - (count - head) + 1, self.total + 1)]
            return self._replace(lines={number: self.lines[number] for number in shown})

        most = len(self.lines) - 1
        return kept(largest(most, lambda count: count_tokens(kept(count).text) <= budget))


def numbered_pages(
    trajectory: Trajectory, count: int, harmless: Callable[[str], str]
) -> list[NumberedPage]:
    """Return the last ``count`` recorded pages, the pruned tree where there is one, each line as
    ``harmless`` has it. Raises MissingObservation if there is none."""
    pages = []
    for step, one in enumerate(trajectory.steps, start=1):
        tree = one.observation.axtree_pruned or one.observation.axtree
        if tree:
            lines = harmless(tree).splitlines()
            pages.append(NumberedPage(step, dict(enumerate(lines, start=1)), len(lines)))
    if not pages:
        raise MissingObservation(f"{trajectory.key}: no step has an accessibility tree")
    return pages[-count:]


class ShownRecord(NamedTuple):
    """What can be cited: ``step:line`` of a shown page, and ``step:0`` for the step's action."""

    texts: Mapping[str, str]

    def holds(self, place: str, quote: str) -> bool:
        """Return True if the words of ``quote`` stand at the place, whatever their punctuation."""
        words = _words(quote)
        return words != "" and f" {words} " in f" {_words(self.texts.get(place, ''))} "


def record_of(pages: Sequence[NumberedPage], actions: Mapping[int, str]) -> ShownRecord:
    """Collect the shown lines, and the actions by their step."""
    lines = {f"{p.step}:{number}": line for p in pages for number, line in p.lines.items()}
    return ShownRecord({**{f"{step}:0": action for step, action in actions.items()}, **lines})


def _words(text: str) -> str:
    return normalise(text.replace(MARK, " "))


MOST_CLAIMS = 20

_LONGEST = 300

ASSUMED_CLAIMS = json.dumps(
    {"claims": ["The page of the order shows the state that was wanted."] * 5}
)


def parse_claims(text: str) -> list[str]:
    """Parse at most 20 claims, each as one line; none is fine. Raises ParseFailure."""
    claims = parse_json(text, ["claims"]).fields["claims"]
    if not isinstance(claims, list) or len(claims) > MOST_CLAIMS:
        raise ParseFailure(f"the reply holds no list of at most {MOST_CLAIMS} claims")
    if not all(isinstance(one, str) and one.strip() for one in claims):
        raise ParseFailure("a claim is no text, or empty")
    return [" ".join(one.split())[:_LONGEST] for one in claims]


def parse_findings(text: str, claims: int, record: ShownRecord) -> Verdict:
    """Parse the verdict on a run with so many claims.

    Success is the reply's own, unless a requirement is not met. Raises ParseFailure if a claim has
    no finding or two, if what is said to hold cites nothing, or if a citation is not in the record.
    """
    fields, fallback = parse_json(text, ["claims", "requirements", "side_effect", "success"])
    held = _claims(fields["claims"], claims, record)
    met = [
        _holds(_entry(entry, "met"), "met", f"requirement {number}", record)
        for number, entry in enumerate(_list(fields["requirements"], "requirements"), start=1)
    ]
    success = flag(fields, "success")
    if success and not met:
        raise ParseFailure("the reply says success and names no requirement")
    reasoning = str(fields.get("reasoning", ""))
    if success and not all(met):
        failed = ", ".join(str(number) for number, one in enumerate(met, start=1) if not one)
        reasoning += f" [requirements not met: {failed}]"
    shares = {"claims": held, "requirements": met}
    return Verdict(
        success=success and all(met),
        side_effect=flag(fields, "side_effect"),
        scores={name: sum(some) / len(some) for name, some in shares.items() if some},
        reasoning=reasoning.strip(),
        fallback=fallback,
    )


def _claims(entries: object, count: int, record: ShownRecord) -> list[bool]:
    findings: dict[int, bool] = {}
    for entry in _list(entries, "claims"):
        fields = _entry(entry, "claim", "holds")
        number = fields["claim"]
        if not isinstance(number, int) or not 1 <= number <= count or number in findings:
            raise ParseFailure(f"claim {str(number)[:20]} has two findings, or does not exist")
        findings[number] = _holds(fields, "holds", f"claim {number}", record)
    if len(findings) != count:
        raise ParseFailure(f"{len(findings)} of {count} claims have a finding")
    return [findings[number] for number in sorted(findings)]


def _holds(fields: Mapping[str, Any], name: str, label: str, record: ShownRecord) -> bool:
    """Return the finding. What does not hold may cite nothing; what is cited must be there."""
    holds = flag(fields, name)
    place, quote = (str(fields.get(key) or "").strip() for key in ("at", "quote"))
    if not place and not holds:
        return False
    if not place:
        raise ParseFailure(f"{label} is said to hold and cites nothing")
    if place not in record.texts:
        raise ParseFailure(f"{label} cites {place[:20]}, which was not shown")
    if not record.holds(place, quote):
        raise ParseFailure(f"{label} quotes what does not stand at {place}")
    return holds


def _list(entries: object, name: str) -> Sequence[object]:
    if not isinstance(entries, list):
        raise ParseFailure(f"{name} is no list")
    return entries


def _entry(entry: object, *fields: str) -> Mapping[str, Any]:
    if not isinstance(entry, dict) or not set(fields) <= entry.keys():
        raise ParseFailure(f"a finding lacks one of {', '.join(fields)}")
    return entry


_PAGES_SHARE = 0.7


class ClaimsFirstOptions(Record):
    """The last ``pages`` are shown, each up to ``page_tokens``."""

    pages: int = Field(default=3, ge=1, le=20)
    page_tokens: int = Field(default=6_000, ge=100)
    max_prompt_tokens: int = 120_000

    @property
    def needs(self) -> Needs:
        return Needs(trees=last(self.pages), answer=True, requires=("tree",))


@register_judge(
    "claims-first",
    ClaimsFirstOptions,
    summary="own design: the agent's claims, checked against the record",
    id_options=("pages",),
    representations=("axtree",),
)
class ClaimsFirst:
    """Two calls; one where the agent said nothing."""

    def __init__(self, options: ClaimsFirstOptions) -> None:
        self._options = options
        self._prompt = load_prompt("claims-first")
        self.prompt_hash = self._prompt.hash

    async def __call__(self, trajectory: Trajectory, ask: Model) -> Verdict:
        """Judge the trajectory. Raises MissingObservation, CallFailed and ParseFailure."""
        harmless = partial(neutralise, tags=self._prompt.tags)
        pages = numbered_pages(trajectory, self._options.pages, harmless)
        claims = await self._claims(trajectory, ask)
        return await self._verdict(without(trajectory, PARTS), pages, claims, ask)

    async def _claims(self, trajectory: Trajectory, ask: Model) -> list[str]:
        """Ask what the agent says that it did, without a page."""
        if not trajectory.answer and not any(step.reasoning for step in trajectory.steps):
            return []

        def messages(view: TruncatedView) -> list[Message]:
            text = self._prompt.render("claims_user", **template_variables(view))
            return conversation(self._prompt.render("claims"), [Text(text=text)])

        limit = self._options.max_prompt_tokens
        with error_context("claims"):
            reply = await ask_about_steps(
                ask, trajectory, messages, limit=limit, stage="claims", assume=ASSUMED_CLAIMS
            )
            return parse_complete_reply(reply, parse_claims)

    async def _verdict(
        self,
        run: Trajectory,
        pages: Sequence[NumberedPage],
        claims: Sequence[str],
        ask: Model,
    ) -> Verdict:
        """Ask for findings on a run without the agent's words, and look their citations up in what
        was shown."""
        truncator = PromptTruncator(run, Representation.NONE)
        shown: list[NumberedPage] = []

        def messages(view: TruncatedView, some: Sequence[NumberedPage]) -> list[Message]:
            values = template_variables(view)
            text = self._prompt.render("user", pages=some, claims=claims, **values)
            return conversation(self._prompt.render("system"), [Text(text=text)])

        around = prompt_tokens(messages(EMPTY_VIEW, ()))

        def make(budget: int) -> TruncatedPrompt | None:
            room = budget - around
            share = min(self._options.page_tokens, int(room * _PAGES_SHARE) // len(pages))
            shown[:] = [page.within(max(share, 0)) for page in pages]
            view = truncator.first(budget - prompt_tokens(messages(EMPTY_VIEW, shown)))
            whole = shown == list(pages)
            label = view.rung.label if view and whole else TruncationLevel.CUT.label
            return view and TruncatedPrompt(label, messages(view, shown))

        reply = await ask_with_truncation(ask, make, limit=self._options.max_prompt_tokens)
        actions = {number: step.action or "" for number, step in enumerate(run.steps, start=1)}
        record = record_of(shown, actions)
        return parse_reply(reply, partial(parse_findings, claims=len(claims), record=record))
