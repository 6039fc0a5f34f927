"""A paper's row by its name: ``trajudge judge --reproduce agentrewardbench:gpt-4o-axtree``.

The rows are AgentRewardBench's judges (Table 1, and Table 2 for what of a page is shown): model,
representation and parameters are read from the package's ``judge/args.py``, as its script reads
them, the prompts from its other files. What the paper says of a row is here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from trajudge.prompts.published import read_defaults, read_judge_args
from trajudge.util.errors import UserError, did_you_mean
from trajudge.util.settings import Settings, keywords_of
from trajudge.util.terminal import listed

PAPER = "agentrewardbench"
_OPENROUTER = "https://openrouter.ai/api/v1"
_SHOWN = {
    (True, True): "both",
    (True, False): "screenshot",
    (False, True): "axtree",
    (False, False): "none",
}
# The names of the package's judges that have prompts of another source, and the rules.
_JUDGES = {"aerc": "aer-c", "aerv": "aer-v", "nnetnav": "nnetnav", "functional": "rule-based"}


class PaperFigures(NamedTuple):
    """A row of a table of the paper: success over all benchmarks, test split, in percent."""

    table: int
    judge: str
    precision: float
    recall: float
    f1: float

    def __str__(self) -> str:
        return (
            f"precision {self.precision}, recall {self.recall}, F1 {self.f1} (Table {self.table}, "
            f"{self.judge})"
        )


FIGURES: Mapping[str, PaperFigures] = {
    "functional": PaperFigures(1, "rule-based", 83.8, 55.9, 67.1),
    "aerc": PaperFigures(1, "AER-C", 67.7, 71.9, 69.7),
    "aerv": PaperFigures(1, "AER-V", 67.6, 71.5, 69.5),
    "nnetnav": PaperFigures(1, "NNetNav", 52.5, 82.4, 64.1),
    "claude-3.7-sonnet-axtree": PaperFigures(1, "Claude 3.7 S. (A)", 68.8, 81.6, 74.7),
    "gpt-4o-axtree": PaperFigures(1, "GPT-4o (A)", 69.8, 83.1, 75.9),
    "gpt-4o-mini-axtree": PaperFigures(1, "GPT-4o Mini (A)", 61.5, 86.1, 71.7),
    "llama-3.3-70b-axtree": PaperFigures(1, "Llama 3.3 (A)", 67.7, 79.0, 72.9),
    "qwen-2.5-vl-axtree": PaperFigures(1, "Qwen2.5-VL (A)", 64.3, 89.8, 75.0),
    "claude-3.7-sonnet-screen": PaperFigures(1, "Claude 3.7 S. (S)", 69.4, 76.3, 72.7),
    "gpt-4o-screen": PaperFigures(1, "GPT-4o (S)", 68.1, 80.3, 73.7),
    "gpt-4o-mini-screen": PaperFigures(1, "GPT-4o Mini (S)", 64.5, 78.3, 70.8),
    "qwen-2.5-vl-screen": PaperFigures(1, "Qwen2.5-VL (S)", 64.5, 86.1, 73.7),
    "gpt-4o-mini-both": PaperFigures(2, "GPT-4o Mini, tree and screenshot", 62.1, 81.7, 70.6),
    "gpt-4o-mini-none": PaperFigures(2, "GPT-4o Mini, neither", 60.7, 73.9, 66.7),
}


@dataclass(frozen=True)
class PaperRow:
    """A row of a paper: ``settings`` are the options of ``trajudge judge`` that make it, by the
    names of ``util.settings.keywords_of``, ``options`` those of the judge. ``defaults`` are options
    that another value may take the place of; ``provider`` is whose server the paper asked."""

    name: str
    figures: PaperFigures
    provider: str
    settings: Mapping[str, Any]
    options: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)


def _word(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def find_row(reproduce: str) -> PaperRow:
    """Find the row that ``--reproduce`` names. Raises UserError for an unknown one, and if the
    package with its settings and prompts is not installed."""
    paper, colon, name = reproduce.partition(":")
    if paper != PAPER or not colon:
        raise UserError(
            f"--reproduce {reproduce}: name a row as {PAPER}:ROW, for instance "
            f"{PAPER}:gpt-4o-axtree"
        )
    judges, common = read_judge_args(f"--reproduce {reproduce}")
    known = [each for each in judges if each in FIGURES]
    if name not in known:
        close = did_you_mean(name, known)
        there = "" if close else f"; there are {listed(known, len(known))}"
        raise UserError(f"--reproduce {reproduce}: {PAPER} has no row {name}{close or ''}{there}")
    return _row(name, judges[name], common)


def _row(name: str, own: Mapping[str, Any], common: Mapping[str, Any]) -> PaperRow:
    """Make a row of the package's entry for it and of the ``common`` parameters."""
    judge = _JUDGES.get(name, "simplified")
    # Anybody's labels and splits: what is not named is the paper's data and protocol.
    scored = {"split": "test", "protocol": "agentrewardbench"}
    data = {"data": PAPER}
    if judge == "rule-based":
        settings: dict[str, Any] = {"judge": (judge,), **scored}
        return PaperRow(name, FIGURES[name], "", settings, defaults=data)
    values = {**common, **own}
    settings = {
        "judge": (judge,),
        "model": (own["model_name"],),
        "prompts": PAPER,
        "repair": 0,
        "temperature": values["temperature"],
        "max_tokens": values["max_completion_tokens"],
        "seed": values["seed"],
        **scored,
    }
    if judge == "simplified":
        settings["representation"] = _SHOWN[own["use_screenshot"], own["use_axtree"]]
        if own.get("invert_sys_prompt"):
            settings["success_last"] = True
    existing = "judge/existing"
    if judge == "aer-c":
        defaults = read_defaults("get_caption", f"{existing}/aer.py")
        settings["captioner_model"] = defaults["captioner_model"]
    if judge == "nnetnav":
        defaults = read_defaults("get_descriptions", f"{existing}/nnetnav.py")
        settings["describer_model"] = defaults["delta_lm_name"]
    options = {"untrusted": "as-recorded", "ladder": "source"}
    if own["provider"] == "openrouter":
        data["base_url"] = _OPENROUTER
    return PaperRow(name, FIGURES[name], own["provider"], settings, options, data)


def with_row(request: Any, row: PaperRow, named: str) -> Any:
    """Return a ``RunRequest`` with the options of a row. Raises UserError where it names another
    value of one, and for a model of a server of the paper's own without one."""
    settings = keywords_of(type(request))
    for name, value in row.settings.items():
        request = _set(request, settings[name], value, named)
    for name, value in row.defaults.items():
        one = settings[name]
        if one.field not in _group(request, one.path).model_fields_set:
            request = _set(request, one, value, named)
    given = dict(request.judge.options)
    for name, value in row.options.items():
        if given.get(name, value) != value:
            raise _conflict(named, f"--judge-option {name}=", value, given[name])
    judge = request.judge.model_copy(update={"options": {**given, **row.options}})
    request = request.model_copy(update={"judge": judge})
    calls = request.calls
    is_named = calls.base_url or calls.adapter or calls.script or request.batch.batch_files
    if row.provider == "vllm" and not is_named:
        raise UserError(
            f"{named}: the paper asked {row.settings['model'][0]} at a vLLM server of its own: "
            "name a server that has the model with --base-url URL"
        )
    return request


def _group(request: Settings, path: tuple[str, ...]) -> Any:
    for part in path:
        request = getattr(request, part)
    return request


def _set(request: Any, one: Any, value: Any, named: str) -> Any:
    """Return the request with a setting at this value, typed as the setting is."""
    group = _group(request, one.path)
    if one.field in group.model_fields_set and (given := getattr(group, one.field)) != value:
        raise _conflict(named, f"{one.flag} ", _word(value), _word(given))
    group = group.model_copy(update={one.field: value})
    for part in reversed(one.path):
        group = request.model_copy(update={part: group})
    return group


def _conflict(named: str, flag: str, value: object, given: object) -> UserError:
    return UserError(
        f"{named} sets {flag}{value}: leave {flag}{given} out, or leave --reproduce out and give "
        "the options of the row one by one"
    )


def notes(request: Any) -> list[str]:
    """Return what the row of a ``RunRequest`` sets, as a command line has it, and what the paper
    says of it."""
    row = find_row(request.reproduce)
    one_by_one = keywords_of(type(request))
    given = dict(row.settings)
    for name, value in row.defaults.items():
        one = one_by_one[name]
        if getattr(_group(request, one.path), one.field) == value:
            given[name] = value
    words = [f"{one_by_one[name].flag} {_word(value)}" for name, value in given.items()]
    words += [f"--judge-option {name}={value}" for name, value in row.options.items()]
    named = f"--reproduce {request.reproduce}"
    return [f"{named}: {' '.join(words)}", f"the paper: {row.figures}"]
