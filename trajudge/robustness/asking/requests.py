"""The judges of a request, asked otherwise about the runs as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trajudge.eval.runs.settings import RunRequest
from trajudge.judges.registry import find_judge
from trajudge.robustness.attacked import VariantLine
from trajudge.robustness.model import Asking, Perturbation
from trajudge.util.errors import UserError


def asked_requests(
    request: RunRequest,
    perturbations: Sequence[Perturbation],
    variants: Sequence[VariantLine],
    named: Sequence[str] = (),
) -> Iterator[RunRequest]:
    """Yield for each perturbation that changes how a judge is asked the request of the judges that
    can be asked so, on the sources of ``variants`` alone. Raises UserError where one that is
    ``named`` is for none of them."""
    agents = tuple(sorted({one.of.agent for one in variants}))
    data = request.data.model_copy(update={"agent": agents})
    for one in perturbations:
        if one.asking is None:
            continue
        if one.asking.dated:  # measured on the runs of both names, where both are asked for
            if one.name in named and len(request.models) < 2:
                raise UserError(
                    f"--perturbation {one.name}: compares two names of a model: name both, as in "
                    "--model gpt-4o --model gpt-4o-2024-08-06"
                )
            continue
        judges = tuple(name for name in request.judges if _can(name, one.asking, request))
        if judges:
            yield _asked(request.model_copy(update={"data": data}), judges, one.asking)
        elif one.name in named:
            raise UserError(
                f"--perturbation {one.name}: {_why_not(one.asking)}: leave it out, or name another "
                "--judge"
            )


def _can(name: str, asking: Asking, request: RunRequest) -> bool:
    """Say whether a judge has the options, with other values, or asks a model."""
    entry = find_judge(name)
    if not asking.options:
        return entry.needs_model or entry.composed
    takes = entry.options_class.model_fields
    given: Mapping[str, Any] = request.judge.options
    if request.judge.success_last:
        given = {**given, "success": "last"}
    return all(
        option in takes and value != given.get(option, takes[option].default)
        for option, value in asking.options.items()
    )


def _why_not(asking: Asking) -> str:
    if asking.options:
        wanted = ", ".join(f"{option}={value}" for option, value in asking.options.items())
        return f"no judge takes {wanted}, or each is asked so already"
    return "no judge asks a model"


def _asked(request: RunRequest, judges: tuple[str, ...], asking: Asking) -> RunRequest:
    options = {**request.judge.options, **asking.options}
    update: dict[str, Any] = {
        "judges": judges,
        "judge": request.judge.model_copy(update={"judge": judges[0], "options": options}),
    }
    if asking.temperature is not None:
        update["calls"] = request.calls.model_copy(update={"temperature": asking.temperature})
    if asking.samples > 1:
        update["run"] = request.run.model_copy(update={"samples": asking.samples})
    return request.model_copy(update=update)
