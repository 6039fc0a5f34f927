"""JSON in replies: found among prose, mended only where that guesses nothing."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.judges.answers import AnswerOptions, GradeAnswer
from trajudge.judges.replies import (
    FALLBACK,
    ParseFailure,
    flag,
    number_in,
    parse_json,
    whole_number_in,
)

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)
prose = st.text(alphabet=st.characters(exclude_characters='{}"<')).map(lambda text: text[:100])


@given(st.dictionaries(st.text(max_size=5), values), prose, prose, st.booleans())
def test_an_object_is_found_in_a_fence_and_among_prose(
    fields: dict[str, object], before: str, after: str, indented: bool
) -> None:
    fields = {**fields, "success": True}
    text = json.dumps(fields, indent=2 if indented else None)
    for reply in (text, f"{before}\n```json\n{text}\n```\n{after}", f"{before}{text}{after}"):
        found = parse_json(reply, ["success"])
        assert found.fields == fields
        assert found.fallback == ""


@pytest.mark.parametrize(
    "reply",
    [
        '{"success": true,}',
        '{"success": true /* bought */, "steps": [1, 2,],}',
        '{\n  // the cart holds it\n  "success": true\n}',
        '{"success": true # yes\n}',
    ],
)
def test_comments_and_trailing_commas_are_mended_and_told(reply: str) -> None:
    found = parse_json(reply, ["success"])
    assert found.fields["success"] is True
    assert found.fallback == FALLBACK


def test_mending_leaves_strings_alone() -> None:
    found = parse_json('{"at": "http://shop.test/#a, }", "success": true,}', ["success"])
    assert found.fields == {"at": "http://shop.test/#a, }", "success": True}


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("", "no JSON object with success"),
        ("success: true", "no JSON object"),
        ('{"success": true', "no JSON object"),
        ('{"reasoning": "x"}', "no JSON object with success"),
        ('{"success": true} {"success": false}', "two contradicting"),
        ('{"success": true, "success": false}', "contradicts itself about 'success'"),
        ('{"success": NaN}', "no JSON object"),
        ('<think>{"success": true}</think> I cannot say', "no JSON object"),
        ("{" * 100_000, "no JSON object"),
        ("{" + '\\"' * 90_000, "no JSON object"),
        ("{" + "/*" * 90_000 + "}", "no JSON object"),
        ('{"a":' * 50_000 + "1" + "}" * 50_000, "no JSON object"),
        ("{a:1}" * 50_000, "many braces"),
        ("{/*" * 50_000, "many braces"),
    ],
)
def test_anything_else_is_unparsable(reply: str, said: str) -> None:
    with pytest.raises(ParseFailure, match=said):
        parse_json(reply, ["success"])


def test_the_same_object_twice_is_one() -> None:
    assert parse_json('{"success": true} so {"success": true}', ["success"]).fields["success"]


@given(st.text(alphabet='{}",:/*#\\ \ntrue1[]<>', max_size=300))
def test_any_text_gives_an_object_or_a_failure(reply: str) -> None:
    with suppress(ParseFailure):
        assert "e" in parse_json(reply, ["e"]).fields


def test_values_of_a_wrong_kind_are_said() -> None:
    with pytest.raises(ParseFailure, match="success = 1, neither true nor false"):
        flag({"success": 1}, "success")
    for wrong in (True, "0.5", 1.5, -1, None):
        with pytest.raises(ParseFailure, match="not 0 to 1"):
            number_in({"success": wrong}, "success", 0, 1)
    assert number_in({"success": 1}, "success", 0, 1) == 1.0
    assert [whole_number_in({"n": n}, "n", 1, 4) for n in (1, 4, 2.0)] == [1, 4, 2]
    with pytest.raises(ParseFailure, match=r"the reply says n = 2\.5, no whole number"):
        whole_number_in({"n": 2.5}, "n", 1, 4)


def test_the_schema_of_a_grade_holds_its_whole_scale() -> None:
    answer = GradeAnswer("thoughts", "grade", 1, 5)
    schema = answer.schema["json_schema"]["schema"]
    assert schema["properties"]["grade"] == {"type": "integer", "enum": [1, 2, 3, 4, 5]}
    assert [*schema["properties"]] == ["thoughts", "grade"]


@pytest.mark.parametrize(
    ("options", "form"),
    [
        (AnswerOptions(), "text"),
        (AnswerOptions(structured=True), "schema"),
        (AnswerOptions(answer="schema"), "schema"),
        (AnswerOptions(answer="text", structured=True), "text"),
    ],
)
def test_a_schema_is_asked_for_where_the_model_takes_one(options: AnswerOptions, form: str) -> None:
    assert options.form == form
    assert options.answer_format({"type": "x"}) == (
        {} if form == "text" else {"response_format": {"type": "x"}}
    )
