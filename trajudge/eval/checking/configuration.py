"""Findings about the judge: one configuration, and the prompts that its card stands for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import orjson

from trajudge.eval.checking.findings import RunFinding, error, note, warning
from trajudge.eval.checking.recorded import CheckedRun
from trajudge.eval.data.manifest import recorded_versions
from trajudge.judges.calls.windows import guesses, recorded_windows
from trajudge.judges.cards import versions_of
from trajudge.judges.model import Judge
from trajudge.judges.registry import JUDGES, find_judge, make_judge
from trajudge.judges.training_set import key_hash, training_hashes
from trajudge.trajectories.util.errors import UserError


def one_configuration(run: CheckedRun) -> Iterator[RunFinding]:
    """Find several judges, endpoints or settings under one run."""
    named = str(run.manifest.get("judge"))
    if others := sorted({j.judge for j in run.judgments} - {named}):
        yield error(
            "mixed_judges",
            f"the run is of {named} and holds judgments of {', '.join(others)}: give every judge a "
            "run of its own",
        )
    entries = [entry for entry in run.manifest.get("sent") or [] if isinstance(entry, dict)]
    several_stages = len({call.stage for j in run.judgments for call in j.calls}) > 1
    by_model: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for entry in entries:
        by_model[str(entry.get("model"))].append(entry)
    for model, mine in sorted(by_model.items()):
        endpoints = sorted({str(entry.get("endpoint")) for entry in mine})
        if len(endpoints) > 1:
            yield error(
                "mixed_endpoints",
                f"{model} was asked at {len(endpoints)} endpoints ({', '.join(endpoints)}), which "
                "may serve different weights: judge again at one of them",
            )
        parameters = {_canonical(entry.get("parameters")) for entry in mine}
        if len(parameters) > 1 and not several_stages:
            yield error(
                "mixed_parameters",
                f"{model} was called with {len(parameters)} sets of parameters: judge again with "
                "one of them",
            )
    counts = {len(samples) for samples in _samples(run).values()}
    if len(counts) > 1:
        yield error(
            "mixed_samples",
            f"trajectories have between {min(counts)} and {max(counts)} samples: judge all of them "
            "equally often",
        )
    for sentence in guesses(recorded_windows(run.manifest)):
        yield warning("guessed_window", sentence)


def _samples(run: CheckedRun) -> dict[object, set[int]]:
    samples: dict[object, set[int]] = defaultdict(set)
    for judgment in run.judgments:
        samples[judgment.key].add(judgment.sample)
    return samples


def _canonical(parameters: object) -> bytes:
    return orjson.dumps(parameters, option=orjson.OPT_SORT_KEYS)


def known_prompts(run: CheckedRun) -> Iterator[RunFinding]:
    """Hold the run's versions and prompt hash to this release's cards and templates."""
    judge_id = str(run.manifest.get("judge"))
    if run.published:
        yield note("published", f"others ran {judge_id}: its prompts are not recorded")
        return
    name = judge_name(run)
    if name is None:
        recorded = "by the hash of its file" if run.manifest.get("prompt_hash") else "by name only"
        yield note("own_judge", f"{judge_id} is no judge of trajudge: it is known {recorded}")
        return
    options = run.part("options")
    try:
        judge, versions = make_judge(name, options)[1], versions_of(name, options)
    except (UserError, ValueError) as problem:  # options of a stranger's file
        # Judges without a model may read files, which are where the judge was run.
        grave = error if find_judge(name).needs_model else note
        yield grave("not_made_again", f"this release cannot make the judge again: {problem}")
        return
    recorded_of = recorded_versions(run.manifest)
    older = {
        card: (recorded_of[card], versions[card])
        for card in sorted(recorded_of.keys() & versions.keys())
        if recorded_of[card] != versions[card]
    }
    for card, (before, now) in older.items():
        yield warning(
            "other_version",
            f"judge {card} had version {before}, this release has version {now}: the two differ in "
            "their prompts; compare it with runs of its version, or judge again",
        )
    expected = getattr(judge, "prompt_hash", None)
    if not older and expected != run.manifest.get("prompt_hash"):
        yield error(
            "other_prompts",
            f"the prompts are not those of version {versions.get(name, 1)} of judge {name} (hash "
            f"{_short(run.manifest.get('prompt_hash'))}, this release has {_short(expected)}): "
            "judge again with a release, or publish the prompts as a judge of your own",
        )


def contamination(run: CheckedRun) -> Iterator[RunFinding]:
    """Find trajectories that the judge was trained on."""
    hashes = set(run.manifest.get("training_keys") or ())
    trained = [key for key in run.keys if hashes and key_hash(key) in hashes]
    if trained:
        every = len(trained) == len(run.keys)
        yield (error if every else warning)(
            "contaminated",
            f"the judge was trained on {len(trained)} of the {len(run.keys)} trajectories that it "
            "judged: they are left out of its scores" + ("; none is left" if every else ""),
        )
    judge = _judge(run)
    if judge is not None and training_hashes(judge) is None:
        yield warning(
            "unknown_training",
            "the judge was trained on trajectories that its file does not name: its scores may be "
            "those on its training set; train it again with  trajudge run telemetry --save FILE",
        )


def _judge(run: CheckedRun) -> Judge | None:
    name = judge_name(run)
    if name is None or run.published:
        return None
    try:
        return make_judge(name, run.part("options"))[1]
    except (UserError, ValueError):
        return None  # known_prompts says so


def judge_name(run: CheckedRun) -> str | None:
    """Return the registered judge of the run; None for a judge of the user's own."""
    named = (*run.part("judge_versions"), run.part("card").get("name"))
    return next((str(name) for name in named if name in JUDGES), None)


def _short(prompt_hash: object) -> str:
    return str(prompt_hash)[:12] if prompt_hash else "none"
