"""How text and addresses are compared: the harnesses' cleaning, substrings, words, containment."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import table
from trajudge.rules.webarena.evaluator import (
    alternatives,
    clean,
    exact_match,
    must_include,
    post_address,
    render,
    satisfies,
    unresolved,
    url_match,
    whole_number,
    words,
)
from trajudge.rules.webarena.tasks import DIALECTS

SHOP = "http://shop.test"
ORIGINAL, CHORE, VISUAL, LITE = (
    DIALECTS[name].harness
    for name in ("webarena", "webchorearena", "visualwebarena", "webarena-lite")
)


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("  Yes ", "yes"),
        ("'Yes'", "yes"),
        ('"Yes"', "yes"),
        ("'\"Yes\"'", '"yes"'),
        ("'Yes\"", "'yes\""),
        ("", ""),
        ("'", ""),
    ],
)
def test_cleaning_lowers_strips_and_takes_one_pair_of_quotes(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


def test_visualwebarena_keeps_white_space() -> None:
    assert clean(" 'Yes' ", strips=False) == " 'yes' "
    assert not exact_match("tea", clean("tea ", strips=False), strips=False)


def test_exact_means_all_of_it() -> None:
    assert exact_match("'Yoga Ball'", "yoga ball")
    assert not exact_match("Yoga ball", "a yoga ball")


def test_including_means_any_part_of_it_which_is_the_weakness() -> None:
    assert must_include("Yes", "yes, the final answer is no", ORIGINAL)
    assert must_include("14", "2140", ORIGINAL)
    assert not must_include("14", "1 4", ORIGINAL)


@pytest.mark.parametrize(
    "text",
    [
        *("2 ", " 2. ", "2, 3", "is 2. then", "(2)", "'2'", '"2"', "$2", "2%", "2:", "2;3"),
        *("2's", "*2*", "two--2", "2...", "a: 2"),
    ],
)
def test_one_character_is_found_where_it_stands_alone(text: str) -> None:
    assert must_include("2", text, ORIGINAL, lone=True)


@pytest.mark.parametrize("text", ["12", "2.5", "1,2", "2/3", "2-3", "2:30", "~2", "x2", "n'2", ""])
def test_one_character_is_not_found_inside_a_word(text: str) -> None:
    assert not must_include("2", text, ORIGINAL, lone=True)


def test_only_a_lone_reference_of_one_character_is_held_to_words() -> None:
    assert not must_include("2", "12", ORIGINAL, lone=True)
    assert must_include("2", "12", ORIGINAL)
    assert must_include("12", "2120", ORIGINAL, lone=True)


# What NLTK 3.10.4 makes of them; it writes `` and '' for a quotation mark.
TOKENS = {
    "the tea, 2 cups.": ["the", "tea", ",", "2", "cups", "."],
    "it's $12.99 (new)": ["it", "'s", "$", "12.99", "(", "new", ")"],
    "don't cannot gonna": ["do", "n't", "can", "not", "gon", "na"],
    "2/3 1,200 10:30": ["2/3", "1,200", "10:30"],
    "a--b ... well-known": ["a", "--", "b", "...", "well-known"],
    "e.g. at u.s. shops!": ["e.g.", "at", "u.s.", "shops", "!"],
    "rock 'n roll's end'": ["rock", "'n", "roll", "'s", "end", "'"],
    "50% off; #1 @home": ["50", "%", "off", ";", "#", "1", "@", "home"],
    "d'ye see more'n that": ["d", "'ye", "see", "more", "'n", "that"],
}


@pytest.mark.parametrize("text", TOKENS)
def test_words_are_those_of_the_penn_treebank(text: str) -> None:
    assert words(text) == TOKENS[text]


@table(
    "reference text        visual lite",
    """
    tea       | green teapot  | no   | no
    tea       | green tea.    | yes  | yes
    12.99     | it is $12.99  | yes  | yes
    $12       | it is $12.99  | yes  | yes
    5         | 4/5           | no   | yes
    green tea | green teapot  | yes  | yes
    tea       | Tea           | no   | no
    """,
)
def test_a_reference_of_one_word_must_be_a_word(
    reference: str, text: str, visual: str, lite: str
) -> None:
    assert must_include(reference, text, VISUAL) is (visual == "yes")
    assert must_include(reference, text, LITE) is (lite == "yes")


@given(st.characters(), st.text())
def test_no_text_is_ever_a_pattern(character: str, text: str) -> None:
    if must_include(character, text, VISUAL):
        assert clean(character, strips=False) in text


@given(st.text())
def test_a_text_includes_itself(text: str) -> None:
    assert must_include(text, clean(text), ORIGINAL)


@pytest.mark.parametrize("unit", ["2", "2.", "2.)", "'", "2'", ",2", "--"])
def test_time_grows_with_the_length_and_no_faster(unit: str) -> None:
    """Quadratic time would run into the test's own time limit."""
    text = "x" + unit * (400_000 // len(unit)) + "x"
    assert "7" in words(text + " 7")
    assert "7" not in words(text + "7x")


@table(
    "number condition held",
    """
    12  | >= 12  | True
    11  | >= 12  | False
    12  | > 12   | True
    70  | < 70   | True
    71  | <= 70  | False
    10  | == 10  | True
    10  | == x   | None
    10  | about  | None
    10  | 5 < 20 | None
    """,
)
def test_a_condition_is_met_as_in_visualwebarena(number: str, condition: str, held: str) -> None:
    """Its strict signs have a tolerance that lets the bound itself through."""
    assert str(satisfies(float(number), condition)) == held


@table(
    "text number",
    """
    1,200 | 1200
    -3    | -3
    12.5  | None
    $12   | None
    """,
)
def test_a_number_is_an_integer_with_or_without_commas(text: str, number: str) -> None:
    assert str(whole_number(f" {text} ")) == number


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        (f"{SHOP}/cart/", f"{SHOP}/cart"),
        (f"{SHOP}/cart", f"{SHOP}/cart?page=2#top"),
        (f"{SHOP}/find?q=tea", f"{SHOP}/find?page=1&q=tea"),
        (f"{SHOP}/product/1", f"{SHOP}/product/12"),  # contained, which is the weakness
        (f"{SHOP}/a |OR| {SHOP}/b", f"{SHOP}/b/c"),
        (f"{SHOP}/a?x=1 |OR| {SHOP}/b?x=2", f"{SHOP}/a?x=2"),  # pooled, which is another
        ("__SHOPPING__/cart", "__SHOPPING__/cart"),
        (f"{SHOP}/x//", f"{SHOP}/x"),
        (f"{SHOP}/x", f"{SHOP}/x//"),
    ],
)
def test_urls_that_match(reference: str, found: str) -> None:
    assert url_match(alternatives(reference), found, ORIGINAL) == (True, "")


@pytest.mark.parametrize(
    ("reference", "found", "reason"),
    [
        (f"{SHOP}/cart", f"{SHOP}/", "none of the reference addresses"),
        (f"{SHOP}/cart", "about:blank", "none of the reference addresses"),
        (f"{SHOP}/find?q=tea", f"{SHOP}/find?q=coffee", "the query's 'q'"),
        (f"{SHOP}/find?q=tea", f"{SHOP}/find", "the query's 'q'"),
        (f"{SHOP}/a|OR|{SHOP}/b", f"{SHOP}/b", "none of the reference addresses"),
        (f"{SHOP}/Cart", f"{SHOP}/cart", "none of the reference addresses"),
        # A slash before the query, and a doubled one in the path, count as in the harness.
        (f"{SHOP}/x/?state=opened", f"{SHOP}/x?state=opened", "none of the reference addresses"),
        (f"{SHOP}//?a=1", f"{SHOP}/?a=1", "none of the reference addresses"),
        (f"{SHOP}/x//y", f"{SHOP}/x/y", "none of the reference addresses"),
        (f"{SHOP}/a/b", f"{SHOP}/a//b", "none of the reference addresses"),
    ],
)
def test_urls_that_do_not_match_and_why(reference: str, found: str, reason: str) -> None:
    matched, why = url_match(alternatives(reference), found, ORIGINAL)
    assert not matched
    assert reason in why


@table(
    "reference found note held",
    """
    http://a.test/x | http://a.test/x/      | EXACT        | True
    http://a.test/x | http://a.test/x//     | EXACT        | False
    http://a.test/x | http://a.test/x//     | GOLD in PRED | True
    http://a.test/x | http://a.test/xy?q=1  | GOLD in PRED | True
    http://a.test/x | http://a.test/x?q=1   | EXACT        | False
    http://localhost:1/x | http://127.0.0.1:1/x | EXACT    | True
    http://a.test/X | http://a.test/x       | EXACT        | False
    http://a.test/x | http://a.test/x       | PART         | None
    """,
)
def test_visualwebarena_compares_addresses_as_texts(
    reference: str, found: str, note: str, held: str
) -> None:
    """One slash at the end does not count; the original harness takes all of them off."""
    for harness in (VISUAL, LITE):
        assert str(url_match([reference], found, harness, note)[0]) == held


def test_webchorearena_compares_addresses_in_lower_case() -> None:
    assert url_match([f"{SHOP}/Cart?Q=A"], f"{SHOP}/cart?q=a&b=1", CHORE)[0]


def test_a_placeholder_needs_an_address() -> None:
    assert render("__SHOPPING__/cart", {"__SHOPPING__": SHOP}) == f"{SHOP}/cart"
    assert render("__SHOPPING__/cart", {}) == "__SHOPPING__/cart"
    assert unresolved("__SHOPPING__/cart", SHOP) == "__SHOPPING__"
    assert unresolved(f"{SHOP}/cart", SHOP) is None


@table(
    "url post",
    """
    http://r.test/f/books/12/a-title?x#y | http://r.test/f/books/12/
    __REDDIT__/f/books/12/a-title        | __REDDIT__/f/books/12/
    http://r.test/f/books                | http://r.test/f/books
    http://r.test/user/x/12              | http://r.test/user/x/12
    http://[broken                       | http://[broken
    """,
)
def test_a_post_is_found_in_the_urls_of_its_comments(url: str, post: str) -> None:
    assert post_address(url) == post


@given(st.text(), st.text())
def test_no_url_raises(reference: str, found: str) -> None:
    for harness in (ORIGINAL, CHORE, VISUAL):
        url_match(alternatives(reference), found, harness)
    post_address(found)


def test_a_broken_host_is_compared_as_text() -> None:
    assert url_match(["http://[broken"], "http://[broken/x", ORIGINAL)[0]
