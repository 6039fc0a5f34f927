"""Claims first: the agent's prose becomes checkable items, which are verified on the pages alone.

Two calls: one turns prose into claims, one finds evidence with citations that are looked up.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, ClassVar, NamedTuple

from pydantic import BeforeValidator, Field, StringConstraints

from trajudge.judges.answers import AnswerOptions
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
    AnyText,
    ParseFailure,
    ReplyFields,
    error_context,
    normalise,
    parse_complete_reply,
    parse_fields,
    parse_reply,
)
from trajudge.prompts.render import load_prompt
from trajudge.prompts.untrusted import neutralise
from trajudge.trajectories.model import Trajectory
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


def _stripped(value: object) -> str:
    return str(value or "").strip()


CitedText = Annotated[str, BeforeValidator(_stripped)]


class _Claims(ReplyFields):
    claims: list[Annotated[str, StringConstraints(pattern=r"\S")]] = Field(max_length=MOST_CLAIMS)


class _Evidence(ReplyFields):
    """A citation: ``step:line`` of a shown page, and words that stand there."""

    at: CitedText = ""
    quote: CitedText = ""


class _ClaimFinding(_Evidence):
    order: ClassVar = ("claim", "holds", "at", "quote")
    claim: int
    holds: bool


class _RequirementFinding(_Evidence):
    order: ClassVar = ("requirement", "met", "at", "quote")
    met: bool
    requirement: AnyText = ""


class _Findings(ReplyFields):
    order: ClassVar = ("reasoning", "claims", "requirements", "side_effect", "success")
    claims: list[_ClaimFinding]
    requirements: list[_RequirementFinding]
    side_effect: bool
    success: bool
    reasoning: AnyText = ""


def parse_claims(text: str) -> list[str]:
    """Parse at most 20 claims, each as one line; none is fine. Raises ParseFailure."""
    claims = parse_fields(_Claims, text)[0].claims
    return [" ".join(claim.split())[:_LONGEST] for claim in claims]


def parse_findings(text: str, claims: int, record: ShownRecord) -> Verdict:
    """Parse the verdict on a run with so many claims.

    Success is the reply's own, unless a requirement is not met. Raises ParseFailure if a claim has
    no finding or two, if what is said to hold cites nothing, or if a citation is not in the record.
    """
    parsed, fallback = parse_fields(_Findings, text)
    if sorted(finding.claim for finding in parsed.claims) != list(range(1, claims + 1)):
        raise ParseFailure(f"the findings are not one for each of {claims} claims")
    for finding in parsed.claims:
        _check_evidence(f"claim {finding.claim}", finding.holds, finding, record)
    for number, required in enumerate(parsed.requirements, start=1):
        _check_evidence(f"requirement {number}", required.met, required, record)
    if parsed.success and not parsed.requirements:
        raise ParseFailure("the reply says success and names no requirement")
    failed = [str(n) for n, required in enumerate(parsed.requirements, start=1) if not required.met]
    reasoning = parsed.reasoning
    if parsed.success and failed:
        reasoning += f" [requirements not met: {', '.join(failed)}]"
    shares = {
        "claims": [finding.holds for finding in parsed.claims],
        "requirements": [required.met for required in parsed.requirements],
    }
    return Verdict(
        success=parsed.success and not failed,
        side_effect=parsed.side_effect,
        scores={name: sum(held) / len(held) for name, held in shares.items() if held},
        reasoning=reasoning.strip(),
        fallback=fallback,
    )


def _check_evidence(label: str, holds: bool, evidence: _Evidence, record: ShownRecord) -> None:
    """Raise ParseFailure for a citation that is not in the record, or none for what holds."""
    place = evidence.at
    if not place and holds:
        raise ParseFailure(f"{label} is said to hold and cites nothing")
    if place and place not in record.texts:
        raise ParseFailure(f"{label} cites {place[:20]}, which was not shown")
    if place and not record.holds(place, evidence.quote):
        raise ParseFailure(f"{label} quotes what does not stand at {place}")


_PAGES_SHARE = 0.7


class ClaimsFirstOptions(AnswerOptions):
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
                ask,
                trajectory,
                messages,
                limit=limit,
                stage="claims",
                assume=ASSUMED_CLAIMS,
                **self._options.answer_format(_Claims),
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

        async def make(budget: int) -> TruncatedPrompt | None:
            room = budget - around
            share = min(self._options.page_tokens, int(room * _PAGES_SHARE) // len(pages))
            shown[:] = [page.within(max(share, 0)) for page in pages]
            view = truncator.first(budget - prompt_tokens(messages(EMPTY_VIEW, shown)))
            whole = shown == list(pages)
            label = view.rung.label if view and whole else TruncationLevel.CUT.label
            return view and TruncatedPrompt(label, messages(view, shown))

        limit, form = self._options.max_prompt_tokens, self._options.answer_format(_Findings)
        reply = await ask_with_truncation(ask, make, limit=limit, **form)
        actions = {number: step.action or "" for number, step in enumerate(run.steps, start=1)}
        record = record_of(shown, actions)
        return parse_reply(reply, partial(parse_findings, claims=len(claims), record=record))
