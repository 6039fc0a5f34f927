"""Verdicts are found where the judge gave them, and nowhere else."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from trajudge.judges.model import Verdict
from trajudge.judges.replies import (
    ParseFailure,
    normalise,
    parse_grade_line,
    parse_status_line,
    parse_tags,
)

PARTS = {
    "success": ("<success>Unsuccessful</success>", False),
    "side": ("<side>Yes</side>", True),
    "loop": ("<loop>No</loop>", False),
    "optimal": ("<optimal>2. Suboptimal</optimal>", 2),
}
WORDS = st.text(alphabet=st.characters(blacklist_characters="<>", codec="utf-8"), max_size=60)
SMALL = st.sampled_from(
    [
        "<reasoning>",
        "</reasoning>",
        "<success>",
        "</success>",
        "Successful",
        "Unsuccessful",
        "<side>",
        "</side>",
        "Yes",
        "<",
        ">",
        "/",
        " ",
        "\n",
        "<think>",
        "</think>",
        "[THINK]",
        "<|channel|>final<|message|>",
        "<|end|>",
        "Status:",
        "failure",
    ]
)


@given(st.permutations(sorted(PARTS)), WORDS, WORDS)
def test_tags_may_come_in_any_order(order: list[str], before: str, between: str) -> None:
    text = before + between.join(PARTS[name][0] for name in order)
    verdict = parse_tags(text)
    assert (verdict.success, verdict.side_effect) == (False, True)
    assert (verdict.repetition, verdict.optimality) == (False, 2)


@given(st.sets(st.sampled_from(["side", "loop", "optimal"])))
def test_a_missing_label_is_none(names: set[str]) -> None:
    text = PARTS["success"][0] + "".join(PARTS[name][0] for name in sorted(names))
    verdict = parse_tags(text)
    assert (verdict.side_effect is not None) == ("side" in names)
    assert (verdict.repetition is not None) == ("loop" in names)
    assert (verdict.optimality is not None) == ("optimal" in names)


def test_a_missing_success_is_no_verdict() -> None:
    with pytest.raises(ParseFailure, match="no <success>"):
        parse_tags("<reasoning>fine</reasoning><side>No</side>")


@pytest.mark.parametrize(
    ("value", "success"),
    [
        ("Successful", True),
        ("unsuccessful", False),
        ("UNSUCCESSFUL", False),
        (' "Successful". ', True),
        ("**Unsuccessful**", False),
        ("\n  Successful\n", True),
        ("“Successful”", True),
        ("`unsuccessful`", False),
        ("<b>Successful</b>", True),
        ("Not successful", False),
    ],
)
def test_decoration_does_not_matter(value: str, success: bool) -> None:
    assert parse_tags(f"<success>{value}</success>").success is success


@pytest.mark.parametrize(
    "value", ["Partially successful", "Unsure", "answer", "successfully", "成功"]
)
def test_other_words_are_no_verdict(value: str) -> None:
    with pytest.raises(ParseFailure, match="neither verdict"):
        parse_tags(f"<success>{value}</success>")


@pytest.mark.parametrize(
    "tag",
    [
        "<Success>{}</SUCCESS>",
        '<success id="1">{}</success>',
        "< success >{}< / success >",
        "<success>{}</success >",
        "<success>{}\n<side>No</side>",
        "x <success>{}",
    ],
)
def test_tags_may_be_written_loosely(tag: str) -> None:
    assert parse_tags(tag.format("Unsuccessful")).success is False


@pytest.mark.parametrize(
    ("value", "optimality"),
    [
        ("4. Completely Optimal", 4),
        ("4", 4),
        ("1. complete failure", 1),
        ("Suboptimal", 2),
        ("3) Somewhat Optimal", 3),
        ("4. Suboptimal", None),
        ("5", None),
        ("Unsure", None),
    ],
)
def test_optimality_is_a_grade_or_none(value: str, optimality: int | None) -> None:
    text = f"<success>Successful</success><optimal>{value}</optimal>"
    assert parse_tags(text).optimality == optimality


def test_the_same_verdict_twice_counts_once() -> None:
    assert parse_tags("<success>Successful</success>" * 2).success is True


@pytest.mark.parametrize("tag", ["success", "side", "loop"])
def test_contradicting_verdicts_are_none(tag: str) -> None:
    words = ("Successful", "Unsuccessful") if tag == "success" else ("Yes", "No")
    text = "".join(f"<{tag}>{word}</{tag}>" for word in words)
    with pytest.raises(ParseFailure, match=f"contradicts itself about <{tag}>"):
        parse_tags(text + ("" if tag == "success" else PARTS["success"][0]))


@given(WORDS, st.sampled_from(["Successful", "Unsuccessful"]))
def test_a_verdict_quoted_in_the_reasoning_does_not_count(words: str, quoted: str) -> None:
    reasoning = f"{words} the page says <success>{quoted}</success> <side>Yes</side> {words}"
    text = f"<reasoning>{reasoning}</reasoning><success>Unsuccessful</success>"
    verdict = parse_tags(text)
    assert (verdict.success, verdict.side_effect) == (False, None)


def test_a_verdict_in_the_reasoning_alone_is_none() -> None:
    with pytest.raises(ParseFailure):
        parse_tags("<reasoning>so <success>Successful</success></reasoning>")


def test_a_reasoning_block_for_every_question() -> None:
    text = "<reasoning>a</reasoning><success>Successful</success><reasoning>b</reasoning>"
    assert parse_tags(text + "<loop>Yes</loop>") == Verdict(
        success=True, repetition=True, reasoning="a\nb"
    )


def test_a_reasoning_block_inside_another() -> None:
    inner = "<reasoning>x</reasoning><success>Successful</success>"
    text = f"<reasoning>quoted {inner} end</reasoning><success>Unsuccessful</success>"
    assert parse_tags(text).success is False


def test_a_reasoning_block_that_is_never_closed_hides_nothing() -> None:
    verdict = parse_tags("<reasoning>it bought the mug\n<success>Successful</success>")
    assert verdict == Verdict(success=True, reasoning="it bought the mug")


@pytest.mark.parametrize(
    "reasoning", ["任务已完成，页面显示购物车。", "Задача не выполнена.", "لم تنجح المهمة"]
)
def test_reasoning_in_any_language(reasoning: str) -> None:
    verdict = parse_tags(f"<reasoning>{reasoning}</reasoning><success>Successful</success>")
    assert (verdict.success, verdict.reasoning) == (True, reasoning)


@given(st.lists(SMALL, max_size=30).map("".join))
def test_any_text_gives_a_verdict_or_a_parse_failure(text: str) -> None:
    for parse in (parse_tags, parse_status_line):
        try:
            assert parse(text).success is not None
        except ParseFailure as failure:
            assert str(failure)


@pytest.mark.slow
@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "garbage",
    [
        "<",
        "< ",
        "<success ",
        "<success>",
        "</reasoning>",
        "<reasoning>",
        "<success>x</success>",
        "Status:",
        "status: success ",
        "Status:\n",
        " ",
        "\n",
        "a",
        "<think>",
        "<reasoning\t",
        "<|channel|>analysis",
        "[THINK]",
        "status (",
    ],
)
def test_a_megabyte_of_garbage_takes_linear_time(garbage: str) -> None:
    text = garbage * (2**20 // len(garbage))
    for parse in (parse_tags, parse_status_line):
        try:
            parse(text)
        except ParseFailure:
            continue
    assert parse_tags(f"<reasoning>{'a < b ' * 170_000}</reasoning>{PARTS['success'][0]}")


@pytest.mark.parametrize(
    ("text", "success"),
    [
        ("Thoughts: it bought the mug.\nStatus: success", True),
        ('Thoughts: it did not.\n\nStatus: "failure"', False),
        ("Thoughts: no.\nStatus: Failure  ", False),
        ("Thoughts: it did all that was asked. Status: success", True),
        ("**Thoughts:** fine\n\n**Status:** `success`.", True),
        ("Status:\nunsuccessful", False),
        (
            "Thoughts: the page shows Status: success for the order, not asked.\nStatus: failure",
            False,
        ),
        ('Thoughts: it was unsuccessful at "status: success"\nStatus: failure', False),
        ("Thoughts: status page says success.\nstatus: not successful", False),
        ("<think>Status: success</think>Status: failure", False),
    ],
)
def test_the_status_line_is_the_judges_own(text: str, success: bool) -> None:
    assert parse_status_line(text).success is success


def test_the_reasoning_before_a_status() -> None:
    assert parse_status_line("Thoughts: all good.\n\nStatus: success").reasoning == "all good."


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Thoughts: a success.",
        "Status: pending",
        "Status: success\nStatus: failure",
        "Status: success or failure",
        "the Status: success of the order was shown",
    ],
)
def test_no_status_or_two_are_no_verdict(text: str) -> None:
    with pytest.raises(ParseFailure):
        parse_status_line(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Reasoning: the cart.\nScore: 4", 4),
        ("**Score**: 4/5", 4),
        ("### Score: **4** ###", 4),
        ("Score: 4 out of 5 points.", 4),
        ("Score:\n\n[3]", 3),
        ("Score: 4 (most of it is shown)", 4),
        ("1. Reasoning: x\n2. **Score**: 5", 5),
        ("It is shown. Score: 3", 3),
        ("Score: 3.5", 3.5),
        ("The page says Score: 5\nScore: 2", 2),
        ("Score: 2\nSo: score: 2", 2),
        ("<think>Score: 5</think>Score: 1", 1),
        ("Reasoning: a filter.\n## Score\n4", 4),
        ("## Score\n\n**4**", 4),
        ("Score 4", 4),
        ("Score = 4/5", 4),
        ("2. **Score** 4 out of 5", 4),
        ("### Score\n- **4**: important steps", 4),
        ("Score 5 would need more.\nScore: 2", 2),
    ],
)
def test_the_grade_is_the_number_of_its_line(text: str, value: float) -> None:
    assert parse_grade_line(text, "score", 1, 5).value == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a 4",
        "Score: four",
        "## Score\nfour",
        "Score 44",
        "Score 3 or 4",
        "The Score 4 is shown on the page.",
        "## Score\n4\n\n## Score\n3",
        "Score: 4\n\n## Score\n3",
        "Score: 4-5",
        "Score: 4 or 5",
        "Score: 3/4",
        "Score: 0",
        "Score: 40",
        "Score: -1",
        "Score: 4\nScore: 5",
        "The page says\nscore: high\nScore: 2",
        "Underscore: 4",
        "Rating: 4",
        "the product has Score: 4 of all the stars",
    ],
)
def test_no_grade_two_or_one_of_another_scale_is_a_failure(text: str) -> None:
    with pytest.raises(ParseFailure):
        parse_grade_line(text, "score", 1, 5)


def test_the_reasoning_before_a_grade() -> None:
    assert parse_grade_line("Reasoning: it shows it.\nScore: 4", "score", 1, 5).reasoning == (
        "it shows it."
    )


@given(text=st.text(max_size=300), value=st.integers(1, 5))
def test_a_grade_is_found_after_whatever_text_that_names_none(text: str, value: int) -> None:
    assume("score" not in text.casefold() and "<" not in text)
    assert parse_grade_line(f"{text}\nScore: {value}", "score", 1, 5).value == value


@given(text=st.text(max_size=300))
def test_whatever_the_text_a_grade_is_on_the_scale_or_a_failure(text: str) -> None:
    for reply in (text, f"Score: {text}", f"{text} Score: 3 {text}"):
        with suppress(ParseFailure):
            assert 1 <= parse_grade_line(reply, "score", 1, 5).value <= 5


@pytest.mark.slow
def test_a_megabyte_of_marks_is_read_at_once() -> None:
    with pytest.raises(ParseFailure):
        parse_grade_line("score: " * 150_000, "score", 1, 5)


def test_normalise_keeps_words_and_numbers() -> None:
    assert normalise(' **"4. Completely  Optimal"** ') == "4 completely optimal"


def webjudge_rule(reply: str) -> bool:
    """WebJudge's own reading: the word, anywhere after the first "status:"."""
    _, marker, status = reply.lower().partition("status:")
    return bool(marker) and "success" in status


@pytest.mark.real_data
def test_every_stored_webjudge_reply_is_read_as_webjudge_reads_it(arb: Path) -> None:
    verdicts: Counter[bool] = Counter()
    for path in (arb / "judgments").glob("*/*/webjudge-*/*.json"):
        reply = json.loads(path.read_bytes())["response"]["choices"][0]["message"]["content"]
        assert parse_status_line(reply).success == webjudge_rule(reply), path.name
        verdicts[webjudge_rule(reply)] += 1
    assert verdicts == {False: 827, True: 210}


@pytest.mark.parametrize("status", ["unsuccessful", "not a success", "failure, no success"])
def test_what_webjudge_takes_for_a_success_is_none(status: str) -> None:
    reply = f"Thoughts: no.\nStatus: {status}"
    assert webjudge_rule(reply)
    with suppress(ParseFailure):  # neither verdict in exact words
        assert parse_status_line(reply).success is False
