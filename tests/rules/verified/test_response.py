"""The agent's response is found wherever it stands; what cannot be read has a class of its own."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.rules.verified.answers import (
    MAX_ANSWER,
    Failure,
    ParseFailure,
    Response,
    read_response,
)

SAID = {"task_type": "RETRIEVE", "status": "SUCCESS", "retrieved_data": ["7"]}
TEXT = json.dumps(SAID)


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        "\ufeff" + TEXT,
        f"  {TEXT}\n",
        f"I have found it. {TEXT} I am done.",
        f"```json\n{TEXT}\n```",
        f"~~~\n{TEXT}\n~~~",
        f"First I thought\n```json\n{TEXT.replace('7', '8')}\n```\nbut it is\n```\n{TEXT}\n```",
        f"The set {{1, 2}} is not it: {TEXT}",
        f"An open {{ brace, then {TEXT}",
        f'It\'s "quoted", it\'s fine: {TEXT} (a note: {{"x": 1}})',
        TEXT.encode(),
        b"\xef\xbb\xbf" + TEXT.encode(),
        SAID,
    ],
)
def test_the_last_response_in_an_answer_counts(text: object) -> None:
    response = read_response(text)
    assert isinstance(response, Response)
    assert (response.task_type, response.status) == ("retrieve", "SUCCESS")
    assert response.retrieved_data == ["7"]


def test_the_papers_names_are_read_as_the_releases() -> None:
    response = read_response(
        {"action": "retrieve", "status": "RESOURCE_NOT_FOUND_ERROR", "results": None}
    )
    assert response == Response(task_type="retrieve", status="NOT_FOUND_ERROR")


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (None, Failure.EMPTY),
        ("", Failure.EMPTY),
        ("\ufeff \n", Failure.EMPTY),
        ("Should I post this comment?", Failure.NO_OBJECT),
        ("[1, 2]", Failure.NO_OBJECT),
        (["SUCCESS"], Failure.NO_OBJECT),
        ("{'task_type': 'RETRIEVE'}", Failure.NO_OBJECT),
        ('{"task_type": "BUY", "status": "SUCCESS"}', Failure.BAD_TASK_TYPE),
        ('{"status": "SUCCESS"}', Failure.BAD_TASK_TYPE),
        ('{"task_type": "^.*$", "status": "^.*$"}', Failure.BAD_TASK_TYPE),
        ('{"task_type": "MUTATE", "status": "DONE"}', Failure.BAD_STATUS),
        ('{"task_type": "MUTATE", "status": ["SUCCESS"]}', Failure.BAD_STATUS),
        ("x" * (MAX_ANSWER + 1), Failure.TOO_LARGE),
        ("{" * 10_000, Failure.NO_OBJECT),
        ('{"a":' * 100_000, Failure.NO_OBJECT),
        ('{"task_type": ' + "[" * 5000 + "]" * 5000 + "}", Failure.NO_OBJECT),
    ],
)
def test_what_cannot_be_read_is_a_parse_failure(answer: object, kind: Failure) -> None:
    failure = read_response(answer)
    assert isinstance(failure, ParseFailure)
    assert failure.kind is kind
    assert failure.reason
    assert "\n" not in failure.reason


@pytest.mark.parametrize(
    "text",
    ['{"a":{' * 100_000, "{" * 600_000, '{" ' * 600_000, '{"a":{' * 100_000 + "}" * 200_000],
)
def test_endless_braces_cost_little(text: str) -> None:
    start = time.process_time()
    assert isinstance(read_response(text), ParseFailure)
    assert time.process_time() - start < 2  # 0.1 to 0.4 s on the machine that it was written on


@pytest.mark.parametrize("more", ['"x": NaN', '"x": "\\ud83d"', '"x\\ud83d": [-Infinity]'])
def test_what_only_python_reads_beside_the_answer_is_no_failure(more: str) -> None:
    text = f'{{"task_type": "MUTATE", "status": "SUCCESS", {more}}}'
    for answer in (text, text.encode(), f"I did it: {text}."):
        response = read_response(answer)
        assert isinstance(response, Response)
        assert response.status == "SUCCESS"


def test_a_brace_or_a_quotation_mark_in_prose_hides_no_answer() -> None:
    said = '{"task_type": "MUTATE", "status": "SUCCESS"}'
    for text in (f"{{ {said}", f'a 5" screen {{ {said}', f'{{"a": 1}} 5" {said}', f"}} {said} {{"):
        assert isinstance(read_response(text), Response), text


@given(st.text(alphabet='{}[]",:\\ab1\n`', max_size=400) | st.binary(max_size=200) | st.text())
def test_nothing_raises(answer: object) -> None:
    assert isinstance(read_response(answer), Response | ParseFailure)
