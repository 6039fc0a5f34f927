"""The verdict in a published reply: which words are one, and which are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.eval.store.published import verdict_fields
from trajudge.judges.model import Verdict
from trajudge.judges.replies import ParseFailure, parse_status_line, parse_tags


def read_verdict(text: str) -> Verdict | None:
    fields = verdict_fields(text)
    return None if fields is None else Verdict(**fields)


@pytest.mark.parametrize(
    ("text", "success"),
    [
        ("Thoughts: fine.\nStatus: success", True),
        ('Thoughts: fine.\n\nStatus: "success"  \n', True),
        ("Thoughts: no.\nStatus: Failure", False),
        ("Thoughts: it was unsuccessful. Status: failure", False),
        ("Status: unsuccessful", False),
        ("**Status:** success", True),
        ('Thoughts: the page says "Status: success" here.\nStatus: failure', False),
        ("The page ends with Status: success\nStatus: failure", False),
        ("Status: success\nand then more words", True),
        ("<success>Successful</success>", True),
        ("<success> unsuccesful\n</success>", False),
        (
            "<reasoning>it shows <success>Successful</success></reasoning><success>No</success>",
            False,
        ),
        ("<success>Successful</success>\nStatus: failure", True),
    ],
)
def test_the_verdict_is_found(text: str, success: bool) -> None:
    verdict = read_verdict(text)
    assert verdict is not None
    assert verdict.success is success


@pytest.mark.parametrize(
    "text",
    [
        "",
        "It looks successful to me.",
        "Status: unknown",
        "Status: success or failure",
        "<success>Maybe</success>",
        "<reasoning>Status: success</reasoning>",
    ],
)
def test_what_is_no_verdict_is_not_taken_for_one(text: str) -> None:
    assert read_verdict(text) is None


def test_all_tags_are_read() -> None:
    verdict = read_verdict(
        "<reasoning>so</reasoning><success>Successful</success><side>Yes</side>"
        "<optimal>3. Somewhat Optimal</optimal><loop>No</loop>"
    )
    assert verdict is not None
    assert (verdict.side_effect, verdict.optimality, verdict.repetition) == (True, 3, False)
    assert verdict.reasoning == "so"


@given(st.text(), st.sampled_from(["success", "failure"]))
def test_the_last_line_wins_whatever_comes_before(text: str, word: str) -> None:
    clean = text.replace("<", "")
    verdict = read_verdict(f"{clean}\nStatus: {word}")
    assert verdict is not None
    assert verdict.success is (word == "success")


PIECES = st.lists(
    st.one_of(
        st.sampled_from(
            [
                *("<reasoning>", "</reasoning>", "</ reasoning >", "<REASONING>", "<think>"),
                *("</think>", "<success>", "</success>", "Successful", "Unsuccessful", "<side>"),
                *("Yes", "No", "</side>", "<loop>", "</loop>", "<optimal>3. Somewhat Optimal"),
                *("[THINK]", "◁/think▷", "<|channel|>final<|message|>", "analysisWe"),
                *("</optimal>", "\n", " ", "<", ">", "Status: success", "Status: failure", "x"),
            ]
        ),
        st.text(max_size=5),
    ),
    max_size=14,
)


def as_the_parsers_read(text: str) -> Verdict | None:
    tagged = "<reasoning>" in text or "<success>" in text
    try:
        return parse_tags(text) if tagged else parse_status_line(text)
    except ParseFailure:
        return None


@given(PIECES, PIECES, st.booleans())
def test_what_the_end_of_a_reply_decides_is_what_the_whole_reply_says(
    before: list[str], after: list[str], plain: bool
) -> None:
    inside = "".join(before).replace("<", "") if plain else "".join(before)
    text = f"<reasoning>{inside}</reasoning>{''.join(after)}"
    assert read_verdict(text) == as_the_parsers_read(text)
    assert read_verdict(inside) == as_the_parsers_read(inside)


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", ["<reasoning>", "</reasoning>", "Status:", "<success>", " ", "\n"]
)
def test_a_megabyte_of_garbage_is_read_in_no_time(piece: str) -> None:
    assert read_verdict(piece * (1_000_000 // len(piece))) is None
