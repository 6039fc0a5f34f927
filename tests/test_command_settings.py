"""A command's options, its file's keys and its keywords come from the fields of one record."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import pytest
from pydantic import Field, model_validator

from tests.tables import mistakes
from trajudge.util.errors import UserError
from trajudge.util.settings import (
    Argument,
    Only,
    Option,
    Output,
    Settings,
    make,
    options_of,
    parse,
    parser_of,
)


class Oven(Settings):
    """How it is baked."""

    heat: Annotated[float, Field(gt=0), Option("degrees, 100 % hot", "C")] = 180.0
    fan: Annotated[bool, Option("with the fan")] = False
    rack: Annotated[int | None, Field(ge=1), Option("counted from below")] = None


class Bake(Settings):
    """Bake bread.

    trajudge bake flour
    """

    first: ClassVar = ("size",)
    sections: ClassVar = {"oven": "the oven"}
    exclusive: ClassVar = (("quiet", "full"),)

    flours: Annotated[tuple[Path, ...], Argument("FLOUR", "what of")] = ()
    size: Annotated[Literal["loaf", "roll"], Option("of the bread")] = "loaf"
    pieces: Annotated[Literal[1, 2, 4], Option("to cut it into")] = 1
    seeds: Annotated[tuple[str, ...], Option("on top; may be repeated", name="seed")] = ()
    share: Annotated[tuple[str, Path] | None, Option("with whom, and where", "WHO FILE")] = None
    extra: Annotated[dict[str, Any], Option("what else", "NAME=VALUE")] = Field(
        default_factory=dict
    )
    out: Annotated[Path | None, Output("where it cools", "DIR")] = None
    quiet: Annotated[bool, Option("say nothing")] = False
    full: Annotated[bool, Option("say all")] = False
    oven: Annotated[Oven, Only("heat", "fan")] = Oven(rack=2)
    baker: str = "nobody"

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.oven.fan and self.size == "roll":
            raise ValueError("--fan dries rolls: leave it out")
        return self


def bake(*words: str) -> Bake:
    return parse(Bake, "trajudge bake", words)


def test_the_command_line_makes_the_record() -> None:
    words = "a b --size roll --pieces 4 --seed poppy --seed sesame --share me at/home"
    more = "--extra salt=1 --extra so-me=x --heat 220.5"
    assert bake(*words.split(), *more.split()) == Bake(
        flours=(Path("a"), Path("b")),
        size="roll",
        pieces=4,
        seeds=("poppy", "sesame"),
        share=("me", Path("at/home")),
        extra={"salt": "1", "so_me": "x"},
        oven=Oven(heat=220.5, rack=2),
    )
    assert bake() == Bake()


def test_a_file_and_python_make_the_same_record(tmp_path: Path) -> None:
    file = tmp_path / "bake.yaml"
    file.write_text(
        "size: roll\nseed: [poppy]\nextra: {salt: 1}\nheat: 200\nquiet: true\nfan: false\n"
    )
    expected = Bake(
        size="roll", seeds=("poppy",), extra={"salt": 1}, quiet=True, oven=Oven(heat=200, rack=2)
    )
    assert bake("--config", str(file)) == expected
    values = {"size": "roll", "seed": "poppy", "extra": {"salt": 1}, "heat": 200, "quiet": True}
    assert make(Bake, values | {"out": None}) == expected
    assert make(Bake, values | {"baker": "me"}).baker == "me"
    assert bake("--config", str(file), "--heat", "90").oven.heat == 90


@mistakes(
    """
    --size lof => --size lof: use 'loaf' or 'roll', did you mean 'loaf'?
    --pieces 3 => --pieces 3: use 1, 2 or 4
    --heat 0 => --heat 0: must be more than 0
    --heat nan => --heat nan: must be a number
    --heat inf => --heat inf: must be a finite number
    --heat hot => --heat hot: must be a number
    --quiet --full => --quiet and --full exclude each other: give one of them
    --fan --size roll => --fan dries rolls: leave it out
    --extra salt => --extra salt: write it as NAME=VALUE
    --extra a=1 --extra a=2 => --extra a is given twice, as '1' and '2': leave one out
    --size loaf --size roll => --size is given twice, as 'loaf' and 'roll'
    --sise loaf => unrecognized arguments: --sise, did you mean '--size'?
    --rack 1 => unrecognized arguments: --rack: see  trajudge bake --help
    --hea 1 => unrecognized arguments: --hea, did you mean '--heat'?
    --out /dev/null => --out /dev/null: /dev/null is a device or a pipe
    /dev/null => FLOUR /dev/null: /dev/null is a device
    """
)
def test_a_mistake_is_one_sentence(words: list[str], sentence: str) -> None:
    with pytest.raises(UserError) as refused:
        bake(*words)
    assert str(refused.value).startswith(sentence)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("heat: 0", "--heat 0: must be more than 0"),
        ("haet: 1", "no option 'haet', did you mean 'heat'?"),
        ("quiet: perhaps", "--quiet perhaps: must be true or false"),
        ("heat: 1\nheat: 2", "not YAML (line 2: 'heat' is given twice: remove one)"),
        ("- heat", "holds no mapping of options"),
        ("heat: [", "not YAML"),
    ],
)
def test_a_mistake_in_the_file_names_it(tmp_path: Path, content: str, sentence: str) -> None:
    file = tmp_path / "bake.yaml"
    file.write_text(content + "\n")
    with pytest.raises(UserError) as refused:
        bake("--config", str(file))
    assert str(refused.value).startswith(f"{file}: {sentence}")


def test_python_gets_the_same_sentences() -> None:
    for values, sentence in (
        ({"heat": 0}, "--heat 0: must be more than 0"),
        ({"heat": True}, "--heat True: must be a number"),
        ({"haet": 1}, "no option 'haet', did you mean 'heat'?"),
        ({"size": ""}, "--size is empty: give a value, or leave it out"),
    ):
        with pytest.raises(UserError) as refused:
            make(Bake, values)
        assert str(refused.value) == sentence


def test_the_help_is_made_of_the_fields() -> None:
    parser = parser_of(Bake, "trajudge bake")
    short, whole = parser.format_help(), parser.format_all()
    assert "--size {loaf,roll}  of the bread (default: loaf)" in short
    assert "degrees" not in short and "degrees, 100 % hot (default: 180.0)" in whole
    assert "Bake bread.\n\n  trajudge bake flour\n" in short
    assert "the oven" in whole and "--share WHO FILE" in whole
    assert [one.flag for one in options_of(Bake)][:3] == ["FLOUR", "--size", "--pieces"]


class Slice(Settings):
    """Cut bread."""

    first: ClassVar = ("width",)

    width: Annotated[int, Field(ge=1), Option("of a slice")]


def test_what_is_required_may_stand_in_the_file(tmp_path: Path) -> None:
    (file := tmp_path / "slice.yaml").write_text("width: 2\n")
    assert parse(Slice, "trajudge slice", ["--config", str(file)]).width == 2
    with pytest.raises(UserError, match="are required: --width"):
        parse(Slice, "trajudge slice", [])
    file.write_text("")
    with pytest.raises(UserError, match="--width is missing"):
        parse(Slice, "trajudge slice", ["--config", str(file)])
    with pytest.raises(UserError, match="--width is missing"):
        make(Slice, {})
