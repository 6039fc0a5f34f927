"""The judges of a request, each also behind the defences that are named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from trajudge.eval.runs.settings import RunRequest
from trajudge.judges.defences import DEFENCES
from trajudge.judges.registry import find_judge, unfit
from trajudge.util.errors import UserError, did_you_mean

EACH = "each"
# What a name without a value stands for.
_DEFAULTS = {
    **dict.fromkeys(("hide", "two_pass"), "answer,reasoning"),
    **dict.fromkeys(("datamark", "sandwich"), "true"),
    **dict.fromkeys(("nonce", "canary"), "0"),
    "cross_modal": "abstain",
}


def read_variants(words: Sequence[str]) -> list[Mapping[str, str]]:
    """Read what ``--defence`` names, each once: ``NAME[=VALUE]``, several that go together with
    ``+``, or ``each`` for every one alone. Raises UserError."""
    made: list[Mapping[str, str]] = []
    for word in words:
        variants = [{n: _DEFAULTS[n]} for n in DEFENCES] if word == EACH else [_variant(word)]
        made += [one for one in variants if one not in made]
    return made


def _variant(word: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in word.split("+"):
        written, equals, value = part.partition("=")
        name = written.replace("-", "_")
        if name not in DEFENCES:
            close = did_you_mean(name, DEFENCES)
            raise UserError(
                f"--defence {word}: {written!r} is no defence{close or ';'} there are "
                f"{', '.join(DEFENCES)}, and {EACH} for every one alone"
            )
        if name in found:
            raise UserError(f"--defence {word}: names {written} twice")
        found[name] = value if equals else _DEFAULTS[name]
    return found


def defended_requests(request: RunRequest, words: Sequence[str]) -> Iterator[RunRequest]:
    """Yield the request, then the same for each variant, with the judges that can have it. Raises
    UserError where none can."""
    yield request
    for options in read_variants(words):
        reasons = {name: list(_reasons(name, options)) for name in request.judges}
        judges = tuple(name for name, why in reasons.items() if not why)
        if not judges:
            name, (why, *_) = next(iter(reasons.items()))
            raise UserError(
                f"--defence {'+'.join(options)}: judge {name} {why}: leave it out, or name a judge "
                "that can have it"
            )
        judge = request.judge.model_copy(
            update={"judge": judges[0], "options": {**request.judge.options, **options}}
        )
        yield request.model_copy(update={"judges": judges, "judge": judge})


def _reasons(name: str, options: Mapping[str, str]) -> Iterator[str]:
    """Yield why a judge cannot have these defences."""
    entry = find_judge(name)
    yield from filter(None, (unfit(entry, defence) for defence in options))
