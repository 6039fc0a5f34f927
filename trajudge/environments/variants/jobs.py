"""Which scripted runs are recorded once more, in which variants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from trajudge.environments.agents.protocol import Job
from trajudge.environments.agents.script import AGENTS, Behaviour
from trajudge.environments.model.payload import (
    Payload,
    as_long,
    drawn,
    read_neutral,
    read_payloads,
)
from trajudge.environments.model.variant import RunVariant
from trajudge.environments.serving.run import open_run
from trajudge.environments.variants.endings import ENDINGS, ending
from trajudge.util.errors import UserError

SUCCESS = "success"  # the goal of the payloads that page variants take
_PAGES = (RunVariant.PAGE, RunVariant.PAGE_BENIGN)
_FINISHES = frozenset({Behaviour.ORACLE, Behaviour.DETOURS, Behaviour.RECOVERS})
_STOPS = frozenset(
    {Behaviour.STOPS_EARLY, Behaviour.FALSE_CLAIM, Behaviour.FABRICATES, Behaviour.NOTHING}
)
_FAILS = _STOPS | {Behaviour.NEAR_MISS, Behaviour.MISREADS, Behaviour.FORGETS}
# A blind replay would follow no change of the page, and cheating needs none.
_ANY = frozenset(Behaviour) - {Behaviour.REPLAYS, Behaviour.CHEATS}
OF: Mapping[RunVariant, frozenset[Behaviour]] = {
    RunVariant.THEME: _ANY,
    RunVariant.UNDO: _FINISHES,
    RunVariant.PAGE_VISITED: _STOPS,
    RunVariant.OWN_NOTE: _STOPS,
    RunVariant.OWN_NOTE_BENIGN: _STOPS,
    RunVariant.PAGE: _FAILS,
    RunVariant.PAGE_BENIGN: _FAILS,
}


def chosen_variants(words: Sequence[str], *, payloads: bool) -> list[RunVariant]:
    """Return the variants named, in the order of ``RunVariant``; ``all`` are those that can be
    recorded with or without ``payloads``. Raises UserError for a name that is none."""
    if "all" in words:
        return [one for one in RunVariant if payloads or one not in _PAGES]
    for word in words:
        if word not in list(RunVariant):
            raise UserError(f"--variants {word}: is unknown: use all or {', '.join(RunVariant)}")
    variants = [one for one in RunVariant if one in words]
    if not payloads and any(one in _PAGES for one in variants):
        raise UserError("--variants page-native: needs the texts to plant: name --payloads FILE")
    return variants


def variant_jobs(
    jobs: Sequence[Job], variants: Sequence[RunVariant], payloads: Path | None, seed: int
) -> list[Job]:
    """Return the jobs of the variants that there are; the payloads of those that change a page are
    taken in turn from the ``seed``. Raises UserError for payloads that cannot be used."""
    texts = [one for one in read_payloads(payloads) if one.goal == SUCCESS] if payloads else []
    if payloads and not texts:
        raise UserError(f"{payloads}: has no texts that ask for a success: write goals: success")
    planted: dict[RunVariant, list[Payload]] = {RunVariant.PAGE: texts}
    if payloads and RunVariant.PAGE_BENIGN in variants:
        neutral = read_neutral(payloads)
        planted[RunVariant.PAGE_BENIGN] = [as_long(one, neutral) for one in texts]
    return [
        job.model_copy(
            update={"variant": variant, "payload": drawn(planted.get(variant, ()), seed + number)}
        )
        for variant in variants
        for number, job in enumerate(_recordable(jobs, variant))
    ]


def _recordable(jobs: Sequence[Job], variant: RunVariant) -> list[Job]:
    meant = [job for job in jobs if AGENTS.get(job.agent) in OF[variant]]
    if variant not in ENDINGS:
        return meant
    cases = {_case(job): job for job in meant}
    possible = {case for case, job in cases.items() if _has_ending(job, variant)}
    return [job for job in meant if _case(job) in possible]


def _case(job: Job) -> tuple[str, str | None]:
    """Return what all agents of a case share: an ending is looked for once for all of them."""
    return job.config.model_dump_json(), job.goal


def _has_ending(job: Job, variant: RunVariant) -> bool:
    run = open_run(job.config, b"", goal=job.goal)
    try:
        return ending(run, variant) is not None
    finally:
        run.state.close()
