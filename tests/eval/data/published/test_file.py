"""The few needed fields of a judgment's file: what its two ends give is what the whole gives."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.eval.store.published import JudgmentFile, from_ends, from_whole

KEYS = ("chat_messages", "trajectory_info", "response", "judge_args", "judge_model_name", "error")
TEXTS = st.one_of(
    st.text(max_size=8),
    st.sampled_from([*KEYS, *(f'"{key}"' for key in KEYS), '","trajectory_info":{}}', "\\", '\\"']),
)
ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(TEXTS, st.sampled_from(KEYS)), inner, max_size=3),
    ),
    max_leaves=6,
)
RESPONSE = st.fixed_dictionaries(
    {"choices": st.lists(st.fixed_dictionaries({"message": st.just({"content": "x"})}), max_size=2)}
)
FILE = st.fixed_dictionaries(
    {},
    optional={
        "judge_model_name": TEXTS,
        "judge_args": st.one_of(
            st.none(),
            st.fixed_dictionaries({}, optional={"use_axtree": st.booleans(), "more": ANYTHING}),
        ),
        "response": st.one_of(st.none(), RESPONSE),
        "error": ANYTHING,
        "chat_messages": ANYTHING,
        "trajectory_info": st.fixed_dictionaries(
            {},
            optional={
                "flags": ANYTHING,
                "summary_info": st.just({"cum_reward": 0.5}),
                "chat_messages": ANYTHING,
            },
        ),
        "goal": ANYTHING,
        'odd "trajectory_info': ANYTHING,
        'odd"trajectory_info': ANYTHING,
    },
)


@given(
    FILE,
    st.permutations(range(9)),
    st.sampled_from([None, 0, 2]),
    st.integers(0, 400),
    st.integers(0, 400),
)
def test_the_ends_give_what_the_whole_gives_or_nothing(
    file: dict[str, Any], order: list[int], indent: int | None, head: int, tail: int
) -> None:
    names = sorted(file, key=lambda name: order[list(file).index(name)])
    content = json.dumps({name: file[name] for name in names}, indent=indent).encode()
    cut = max(0, len(content) - tail)
    found = from_ends(content[:head], content[cut:])
    assert found is None or found == from_whole(content)


WHOLE: dict[str, Any] = {
    "goal": "g",
    "judge_model_name": "m",
    "judge_args": {"use_axtree": True, "use_screenshot": False},
    "response": {"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]},
    "chat_messages": {"regular": ["x" * 100]},
    "trajectory_info": {"summary_info": {"cum_reward": 1.0}},
}


def ends(file: dict[str, Any]) -> JudgmentFile | None:
    content = json.dumps(file).encode()
    return from_ends(content, content)


def test_the_layout_of_the_published_files_is_read_from_its_ends() -> None:
    found = ends(WHOLE)
    assert found is not None
    assert found.response is not None
    content = found.response.choices[0].message.content
    assert (content, found.official_reward, found.representation) == ("yes", 1.0, (True, False))


@pytest.mark.parametrize("absent", ["judge_model_name", "judge_args", "response"])
def test_a_field_that_stands_between_is_not_taken_for_absent(absent: str) -> None:
    file = {name: WHOLE[name] for name in WHOLE if name != absent}
    assert ends(file) is None
    last = file.pop("trajectory_info")
    assert ends({**file, absent: WHOLE[absent], "trajectory_info": last}) is None


def test_a_key_of_an_inner_object_is_not_taken_for_the_outermost() -> None:
    args = {"chat_messages": "x" * 40, "use_axtree": False}
    inner = {"judge_args": args, "more": {"trajectory_info": 1}}
    assert ends({**WHOLE, "chat_messages": 0, **inner}) is None


def test_an_error_counts_only_without_an_answer() -> None:
    refused = {**WHOLE, "response": {"choices": []}, "error": {"code": 400}}
    assert ends(refused) is None
    assert from_whole(json.dumps(refused).encode()).error == {"code": 400}
