"""The judges by name: the one place where they are listed.

A judge's module is imported when the judge is made, so that ``--help`` needs none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from trajudge.judges import plugins
from trajudge.judges.entry import Entry
from trajudge.judges.functions import given_entry
from trajudge.judges.model import Judge
from trajudge.judges.options import read_options
from trajudge.judges.plugins import check_needs
from trajudge.judges.prompting.auxiliary_model import AuxiliaryModel
from trajudge.trajectories.model import Record
from trajudge.trajectories.needs import EVERYTHING, Needs
from trajudge.trajectories.util.errors import UserError

JUDGES: Mapping[str, Entry] = {
    "simplified": Entry(
        module="trajudge.judges.methods.simplified",
        judge="Simplified",
        options="SimplifiedOptions",
        needs_model=True,
        summary="one call: success, side effect, optimality, repetition (AgentRewardBench)",
        id_options=("representation", "success", "answer", "frames", "prompts"),
        representations=("axtree", "screenshot", "both", "none"),
    ),
    "aer-c": Entry(
        module="trajudge.judges.methods.aer",
        judge="AerC",
        options="AerCOptions",
        needs_model=True,
        summary="steps and a caption of the final screenshot (Agent Eval and Refine)",
        prompt="aer",
        id_options=("variant", "captioner"),
        representations=("screenshot",),
        models=("captioner",),
        pictures="captioner",
    ),
    "aer-v": Entry(
        module="trajudge.judges.methods.aer",
        judge="AerV",
        options="AerVOptions",
        needs_model=True,
        summary="steps and the final screenshot (Agent Eval and Refine)",
        prompt="aer",
        id_options=("variant",),
        representations=("screenshot",),
        pictures="judge",
    ),
    "nnetnav": Entry(
        module="trajudge.judges.methods.nnetnav",
        judge="Nnetnav",
        options="NnetnavOptions",
        needs_model=True,
        summary="a description of every change between accessibility trees, rated 1 to 5 (NNetNav)",
        id_options=("describer",),
        representations=("axtree",),
        models=("describer",),
    ),
    "webvoyager": Entry(
        module="trajudge.judges.methods.webvoyager",
        judge="WebVoyager",
        options="WebVoyagerOptions",
        needs_model=True,
        summary="the task, the answer and the last screenshots (WebVoyager)",
        id_options=("screenshots",),
        representations=("screenshot",),
        pictures="judge",
    ),
    "webjudge": Entry(
        module="trajudge.judges.methods.webjudge",
        judge="WebJudge",
        options="WebJudgeOptions",
        needs_model=True,
        summary="key points, every screenshot scored, a verdict on those that matter (WebJudge)",
        id_options=("variant", "threshold", "screenshots"),
        representations=("screenshot",),
        pictures="judge",
    ),
    "insta": Entry(
        module="trajudge.judges.methods.insta",
        judge="Insta",
        options="InstaOptions",
        needs_model=True,
        summary="the last pages as text; success, efficiency, self-correction from 0 to 1 (InSTA)",
        id_options=("observations", "threshold"),
        representations=("axtree",),
    ),
    "logprob": Entry(
        module="trajudge.judges.methods.logprob",
        judge="Logprob",
        options="LogprobOptions",
        needs_model=True,
        logprobs=True,
        summary="one yes-or-no question; the score is the probability of yes",
        id_options=("representation", "threshold"),
        representations=("axtree", "screenshot", "both", "none"),
    ),
    "rubric": Entry(
        module="trajudge.judges.methods.rubric",
        judge="Rubric",
        options="RubricOptions",
        needs_model=True,
        summary="criteria before the run is seen, checked evidence (after the Universal Verifier)",
        id_options=("representation", "per_criterion"),
        representations=("screenshot", "none"),
    ),
    "panel": Entry(
        module="trajudge.judges.methods.composed",
        judge="Panel",
        options="PanelOptions",
        needs_model=False,
        summary="the members of --of vote: majority, unanimous, or the mean of their scores",
        id_options=("rule", "of", "quorum", "tie"),
        composed=True,
    ),
    "cascade": Entry(
        module="trajudge.judges.methods.composed",
        judge="Cascade",
        options="CascadeOptions",
        needs_model=False,
        summary="the first of --of, then the second where the first is unsure or positive",
        id_options=("of", "unsure"),
        composed=True,
    ),
    "rule-based": Entry(
        module="trajudge.judges.methods.baselines",
        judge="rule_based",
        options="RuleBasedOptions",
        needs_model=False,
        summary="the benchmark's own reward, above 0.5",
    ),
    "heuristic": Entry(
        module="trajudge.judges.methods.baselines",
        judge="heuristic",
        options="HeuristicOptions",
        needs_model=False,
        summary="documented rules over the steps",
    ),
    # Of a package that this one may not import: only their names are here.
    "rules:verified": Entry(
        module="trajudge.eval.rules_judge",
        judge="Verified",
        options="VerifiedOptions",
        needs_model=False,
        summary="WebArena Verified's rules on the answer and the network trace",
        id_options=("mode",),
    ),
    "rules:webarena": Entry(
        module="trajudge.eval.rules_judge",
        judge="WebArena",
        options="WebArenaOptions",
        needs_model=False,
        summary="WebArena's original rules on the answer and the last page's address",
    ),
    "telemetry": Entry(
        module="trajudge.judges.methods.telemetry",
        judge="Telemetry",
        options="TelemetryOptions",
        needs_model=False,
        summary="a regression over numbers of the run (python -m eval.telemetry trains it)",
    ),
}


def find_judge(name: str) -> Entry:
    """The entry of a judge: one of ours, a caller's function, of an installed package, or in a file
    (``path.py``).
    Raises UserError for a name that is not there."""
    if name in JUDGES:
        return JUDGES[name]
    if given := given_entry(name):
        return given
    module = plugins.module_of(name)
    if module is None:
        known = [*JUDGES, *(name for name, _ in plugins.installed())]
        raise UserError(f"--judge {name}: no such judge; there are {', '.join(known)}")
    return plugins.describe(name, module)


def split_model(text: str) -> tuple[str, str]:
    """``NAME[:MODEL]`` as judge and model, "" for none; a judge's own name may hold a colon."""
    for name in JUDGES:
        if text == name or text.startswith(f"{name}:"):
            return name, text[len(name) + 1 :]
    name, _, model = text.partition(":")
    return name, model


def check_representation(name: str, representation: str) -> None:
    """Raises UserError if the judge cannot be shown a page that way."""
    takes = find_judge(name).representations
    if representation not in takes:
        reads = f"reads {' or '.join(takes)} only" if takes else "reads no page"
        raise UserError(
            f"--representation {representation}: judge {name} {reads}: leave the option out, "
            "or choose another --judge"
        )


def make_judge(name: str, options: Mapping[str, Any] | None = None) -> tuple[str, Judge]:
    """The judge's id (such as ``simplified-axtree``) and the judge.

    Raises UserError for an unknown name, an unknown option or a value that it does not take.
    """
    entry = find_judge(name)
    made = read_options(name, entry.options_class, options or {})
    return _id(entry.label or name, entry, made), _made(entry, made)


def _made(entry: Entry, options: Record) -> Judge:
    if entry.function is not None:
        return entry.function
    factory = getattr(import_module(entry.module), entry.judge)
    judge: Judge = factory(options) if entry.options else factory
    return judge


def needs_of(name: str, options: Mapping[str, Any] | None = None) -> Needs:
    """What the judge with these options must be able to see of a run: what its entry says, else
    ``needs`` of its options, else everything. Raises UserError as ``make_judge`` does."""
    entry = find_judge(name)
    if entry.needs is not None:
        return entry.needs
    declared = getattr(read_options(name, entry.options_class, options or {}), "needs", EVERYTHING)
    return check_needs(name, declared)


def _id(name: str, entry: Entry, options: Record) -> str:
    """The name; the representation or variant always, other id options where they are not the
    default, other models where there are any."""
    parts = [name]
    for option in entry.id_options:
        value = getattr(options, option)
        default = type(options).model_fields[option].default
        if option in ("representation", "variant"):
            parts.append(f"{value}")
        elif value.model if isinstance(value, AuxiliaryModel) else value != default:
            parts.append(f"{option}-{value}")
    return "-".join(parts)
