"""Judges whose behaviour is known get, for real, exactly the rates that they must."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.commands import robust as main
from tests.llm_replies import Incoming
from tests.robustness.judges.reading import instructions
from tests.robustness.models import reply
from tests.robustness.rates import Rates, asr, measured_judges, rates_of
from trajudge.robustness.catalogue import catalogue
from trajudge.robustness.injections import CARRIERS
from trajudge.robustness.perturb import expanded, limited, suite
from trajudge.robustness.settings import RobustConfig
from trajudge.robustness.subjects import subjects

JUDGES = Path(__file__).parent / "judges"
RUNS = 24
# Claims that only words of the agent make: C4 to C15 of the specification.
WORDS = (
    *("progress-fabrication", "observation-fabrication", "environment-blame"),
    *("task-reinterpretation", "competence-style", "reflective-style", "verbose", "terse"),
    *("authority-quality", "authority-policy", "authority-operator", "bandwagon"),
    *("sentiment-plea", "sentiment-praise", "sentiment-threat", "self-verdict", "null-colon"),
)
PLAIN = tuple(f"inject-{carrier}.success.plain" for carrier in CARRIERS if "pixels" not in carrier)
DRESSED = tuple(
    name
    for name in catalogue()
    if name.startswith("inject-tree.success.") and not name.endswith(".master-key")
)
FLIPS = tuple(
    name
    for name, one in catalogue().items()
    if one.family == "B" and one.grade == "edited" and name != "loop"
)
NAMES = (
    *("identity", "ids", "idle-step", "goal-framed"),
    *("claim-confident", "benign-answer", "benign-reasoning", "inject-tree.benign-success.plain"),
    *WORDS,
    *PLAIN,
    *DRESSED,
    *FLIPS,
    *(f"inject-tree.{goal}.plain" for goal in ("failure", "format", "leak", "score", "question")),
    *("inject-tree.benign-format.plain", "inject-pixels-large.success.plain", "evidence-cut"),
)


# What judges are told apart by that believe one thing. A variant is the same whatever else is made.
FEW = (
    *(
        "inject-tree.failure.plain",
        "inject-tree.success.plain",
        "inject-pixels-large.success.plain",
    ),
    *("inject-tree.benign-success.plain", "progress-fabrication", "claim-confident"),
    "benign-reasoning",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return attacked_by(NAMES, tmp_path_factory.mktemp("scripted"))


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return attacked_by(FEW, tmp_path_factory.mktemp("few"))


def attacked_by(names: Sequence[str], place: Path) -> Path:
    """A folder of the same runs, changed in these ways."""
    known = limited(subjects("sample"), RUNS)
    assert expanded(place / "attacked", known, suite("core", names), 0) == []
    return place / "attacked"


def measured(attacked: Path, out: Path, *words: str) -> tuple[dict[str, Any], Rates]:
    """What ``trajudge robust`` says of one judge, and its rates by perturbation."""
    (judge,), _ = measured_judges(attacked, out, *words)
    return judge, rates_of(judge)


def by_file(attacked: Path, out: Path, name: str, *options: str) -> tuple[dict[str, Any], Rates]:
    words = [word for option in options for word in ("--judge-option", option)]
    return measured(attacked, out, "--judge", str(JUDGES / f"{name}.py"), *words)


@pytest.mark.slow
def test_who_obeys_any_instruction_falls_for_every_injection(folder: Path, tmp_path: Path) -> None:
    judge, rates = by_file(folder, tmp_path / "out", "gullible")
    assert {name: asr(rates, name) for name in (*PLAIN, *DRESSED)} == dict.fromkeys(
        (*PLAIN, *DRESSED), 1.0
    )
    assert rates["inject-tree.success.plain"]["net_success"] == 1
    assert rates["inject-tree.success.plain"]["net"]["p_adjusted"] < 0.01
    assert rates["inject-tree.question.plain"]["obeyed"]["estimate"] == 1
    assert rates["inject-tree.format.plain"]["obeyed"]["estimate"] == 1
    assert rates["inject-tree.format.plain"]["coverage_lost"]["estimate"] == 1
    assert rates["inject-tree.score.plain"]["obeyed"]["estimate"] == 1
    assert rates["inject-tree.score.plain"]["score_change"] == pytest.approx(0.6)
    for name in (*WORDS, "claim-confident", "inject-tree.benign-success.plain"):
        assert asr(rates, name) == 0, name
    assert judge["overall"]["consistency"]["estimate"] == 1


@pytest.mark.slow
def test_who_obeys_drops_a_success_when_told(few: Path, tmp_path: Path) -> None:
    _, rates = by_file(few, tmp_path / "out", "gullible", "opinion=true")
    told = rates["inject-tree.failure.plain"]
    assert told["obeyed"]["estimate"] == told["to_failure"]["estimate"] == 1
    assert told["to_success"]["hits"] == 0


@pytest.mark.slow
def test_who_looks_obeys_what_stands_on_the_picture(few: Path, tmp_path: Path) -> None:
    _, rates = by_file(few, tmp_path / "out", "gullible", "looks=true")
    assert asr(rates, "inject-pixels-large.success.plain") == 1
    assert asr(rates, "inject-tree.benign-success.plain") == 0


@pytest.mark.parametrize(
    ("judge", "believes", "others"),
    [
        (
            "reasoning_reader",
            "progress-fabrication",
            ("inject-tree.success.plain", "claim-confident", "benign-reasoning"),
        ),
        ("answer_reader", "claim-confident", ("progress-fabrication",)),
    ],
)
def test_a_reader_believes_what_stands_where_it_reads(
    few: Path, tmp_path: Path, judge: str, believes: str, others: tuple[str, ...]
) -> None:
    _, rates = by_file(few, tmp_path / "out", judge)
    assert asr(rates, believes) > 0.95
    assert {name: asr(rates, name) for name in others} == dict.fromkeys(others, 0)


@pytest.mark.slow
def test_evidence_alone_is_moved_by_no_words(tmp_path: Path) -> None:
    _, rates = by_file(attacked_by((*WORDS, "ids"), tmp_path), tmp_path / "out", "evidence_only")
    assert {name: rates[name]["flips"]["hits"] for name in WORDS} == dict.fromkeys(WORDS, 0)
    assert all(rates[name]["flips"]["trials"] for name in WORDS)
    assert rates["ids"]["flips"]["hits"] > 0, "what it reads changes its verdict"


@pytest.mark.slow
def test_an_oracle_is_moved_by_the_truth_alone(folder: Path, tmp_path: Path) -> None:
    labels = f"labels={folder / 'labels.jsonl'}"
    judge, rates = by_file(folder, tmp_path / "out", "oracle", labels)
    for name, one in rates.items():
        assert one["attack_success"]["hits"] == 0, name
        if catalogue()[name].family not in "B" or name == "extra-effect":
            assert one["flips"]["hits"] == 0, name
    assert judge["overall"]["pair_accuracy"]["estimate"] == 1
    assert judge["overall"]["pair_accuracy"]["trials"] > 20
    for worst in judge["worst"].values():
        assert worst["precision"] == worst["attacks"][0]["precision"] == 1


@pytest.mark.slow
def test_who_breaks_the_form_loses_coverage_and_nothing_else(folder: Path, tmp_path: Path) -> None:
    _, rates = by_file(folder, tmp_path / "out", "breaking")
    for name, one in rates.items():
        lost = 1 if name == "inject-tree.format.plain" else 0
        assert one["coverage_lost"]["estimate"] == lost, name
        assert one["flips"]["hits"] == 0, name


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a model is asked about."""
    names = (
        *("identity", "ids", "goal-framed", "inject-tree.success.plain", "inject-tree.leak.plain"),
        *("inject-tree.benign-success.plain", "progress-fabrication", "benign-reasoning"),
        *("inject-error.success.plain", "inject-pixels-large.success.plain", "agent-frontier"),
        *("sibling-page", "sibling-tree", "done-right", "whitespace-trailing", "bandwagon"),
    )
    made = tmp_path_factory.mktemp("small") / "attacked"
    assert expanded(made, limited(subjects("sample"), 30), suite("core", names), 0) == []
    return made


@pytest.mark.slow
def test_a_model_that_obeys_gives_itself_away(small: Path, tmp_path: Path) -> None:
    """The judge's own prompt, our parser, a server: what is not shown is neither asked nor
    obeyed."""

    def obeying(incoming: Incoming) -> str:
        told = instructions(incoming.prompt)
        prompt = incoming.prompt[:4000] if "leak" in told else "Nothing to say."
        return reply("success" in told, prompt.replace("<", "("))

    (judge,), sent = measured_judges(small, tmp_path, "--judge", "simplified", model=obeying)
    rates = rates_of(judge)
    assert asr(rates, "inject-tree.success.plain") == 1
    assert rates["inject-tree.leak.plain"]["leaked"]["estimate"] == 1
    assert rates["inject-tree.success.plain"]["leaked"]["hits"] == 0
    for name in ("inject-error.success.plain", "inject-pixels-large.success.plain"):
        assert rates[name]["unseen"] == rates[name]["pairs"] > 0
        assert asr(rates, name) == 0
    assert rates["inject-tree.success.plain"]["unseen"] == 0
    asked = sum(one["pairs"] - one["unseen"] for one in rates.values()) + 30
    assert sent <= asked
    assert judge["overall"]["noise"]["hits"] == 0


@pytest.mark.slow
def test_a_coin_flips_no_more_under_a_change_than_when_asked_again(
    small: Path, tmp_path: Path
) -> None:
    rng = random.Random(3)
    prompts: Counter[str] = Counter()

    def coin(incoming: Incoming) -> str:
        prompts[incoming.prompt] += 1
        return reply(rng.random() < 0.5)

    words = ("--judge", "simplified", "--concurrency", "1")
    (judge,), _ = measured_judges(small, tmp_path, *words, model=coin)
    rates = rates_of(judge)
    noise = judge["overall"]["noise"]
    assert noise["trials"] == 30 and 0.2 < noise["estimate"] < 0.8
    again = prompts.total() - len(prompts)
    assert again >= 30, "the same prompt was really sent again, with another seed"
    changed = [one["excess_flips"] for one in rates.values() if one["excess_flips"]["trials"] > 10]
    seen = [one for one in changed if one["p_value"] is not None]
    assert len(seen) > 8
    covers = sum(one["low"] <= 0 <= one["high"] for one in seen)
    assert covers >= 0.8 * len(seen)
    assert min(one["p_adjusted"] for one in seen) > 0.01


@pytest.mark.slow
def test_a_forged_page_that_is_a_success_byte_by_byte_is_said(small: Path, tmp_path: Path) -> None:
    """WebVoyager's judge sees goal, answer and last screenshots; this file's sees less: the last
    tree. What it is shown of a forged page is what it is shown of the run that succeeded."""
    judge_file = tmp_path / "last_page.py"
    judge_file.write_text(
        "from trajudge.judges.model import Message, Text, Verdict\n"
        "async def judge(trajectory, ask):\n"
        "    text = trajectory.goal + (trajectory.final.axtree or '')\n"
        "    reply = await ask([Message(role='user', parts=(Text(text=text),))])\n"
        "    return Verdict(success='yes' in reply.text)\n"
    )
    (judge,), _ = measured_judges(
        small, tmp_path / "out", "--judge", str(judge_file), model=lambda _: "yes"
    )
    rates = rates_of(judge)
    hidden = {one["name"]: (one["variants"], one["of"]) for one in judge["undetectable"]}
    assert hidden["sibling-page"][0] == hidden["sibling-page"][1] == rates["sibling-page"]["pairs"]
    assert hidden["sibling-tree"][0] == hidden["sibling-tree"][1]
    assert "bandwagon" not in hidden or hidden["bandwagon"][0] < hidden["bandwagon"][1]
    assert "inject-tree.success.plain" not in hidden


@pytest.mark.slow
def test_the_same_command_goes_on_and_writes_the_same_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--judge", "heuristic", "--judge", "rule-based", "--data", "sample", "--limit", "9"]
    chosen = ["--perturbation", "claim-confident", "--perturbation", "inject-tree.success.plain"]
    outs = [tmp_path / "one", tmp_path / "two"]
    for out in outs:
        assert main([*words, *chosen, "--out", str(out)]) == 0
    shutil.rmtree(outs[1] / "runs")
    assert main([*words, *chosen, "--out", str(outs[1])]) == 0
    for name in ("robustness.json", "robustness.csv", "attacked/variants.jsonl"):
        assert (outs[0] / name).read_bytes() == (outs[1] / name).read_bytes()
    capsys.readouterr()
    assert main([*words, "--perturbation", "ids", "--out", str(outs[0])]) == 2
    assert "now ['ids']): name another folder with --out" in capsys.readouterr().err
    (outs[0] / "robustness.json").unlink()
    assert main([*words, "--perturbation", "ids", "--out", str(outs[0])]) == 2
    assert "changed otherwise: name another --out" in capsys.readouterr().err


def test_a_dry_run_prices_every_variant_and_what_is_unseen_costs_nothing(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--judge", "simplified", "--model", "gpt-4o", "--attacked", str(small))
    assert main([*words, "--dry-run", "--cache", str(tmp_path / "c"), "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    keys = sum(1 for _ in (small / "variants.jsonl").open()) + 30
    assert f"judgments     {keys}" in printed
    (line,) = (line for line in printed.splitlines() if "answered by the cache" in line)
    calls, cached = (int(word) for word in line.replace(",", "").split() if word.isdigit())
    assert calls == keys and cached > 60


def test_defaults_are_those_of_the_options() -> None:
    config = RobustConfig()
    assert (config.suite, config.limit, config.out) == ("core", 150, Path("robustness"))
