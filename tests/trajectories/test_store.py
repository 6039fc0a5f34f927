"""Our own format: lossless, atomic, and unimpressed by whatever somebody else wrote into it."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.samples import examples
from trajudge.trajectories import model, schema, store
from trajudge.trajectories.loaders import trajudge
from trajudge.trajectories.needs import FINAL, NO_NEEDS, NOT_READ, Needs
from trajudge.util.errors import UserError


def png(shade: int = 0) -> bytes:
    buffer = BytesIO()
    Image.new("L", (2, 2), shade).save(buffer, "PNG")
    return buffer.getvalue()


def trajectory(task: str = "t.1", **fields: Any) -> model.Trajectory:
    key = model.TrajectoryKey(benchmark="shop", agent="a", task_id=task)
    return model.Trajectory(**({"key": key, "raw_task_id": task, "goal": "Buy\n"} | fields))


def observed(data: bytes | None, path: Path | None = None) -> tuple[model.Step, ...]:
    return (
        model.Step(
            index=0, observation=model.Observation(screenshot=model.ImageRef(data=data, path=path))
        ),
    )


def read_all(path: Path) -> list[model.Trajectory | model.Unreadable]:
    return list(store.read(path))


def readable(path: Path) -> list[model.Trajectory]:
    return [item for item in read_all(path) if isinstance(item, model.Trajectory)]


def content(ref: model.ImageRef | None) -> bytes | None:
    if ref is None:
        return None
    return ref.data if ref.data is not None else (ref.path or Path()).read_bytes()


def by_content(found: model.Trajectory) -> dict[str, Any]:
    """Everything, with each image as its bytes, wherever they are."""
    record = found.model_dump()
    record["goal_images"] = [content(ref) for ref in found.goal_images]
    for step, dumped in zip(found.steps, record["steps"], strict=True):
        dumped["observation"]["screenshot"] = content(step.observation.screenshot)
    return record


texts = st.text(max_size=20)
images = st.integers(0, 3).map(lambda shade: model.ImageRef(data=png(shade)))
observations = st.builds(
    model.Observation,
    url=st.none() | texts,
    axtree=st.none() | texts,
    axtree_pruned=st.none() | texts,
    screenshot=st.none() | images,
    page_error=st.none() | texts,
)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
trajectories = st.builds(
    model.Trajectory,
    key=st.builds(
        model.TrajectoryKey, benchmark=texts, agent=texts, task_id=texts, attempt=st.integers(0, 9)
    ),
    raw_task_id=texts,
    goal=texts,
    goal_images=st.lists(images, max_size=2).map(tuple),
    steps=st.lists(
        st.builds(
            model.Step,
            index=st.integers(0, 99),
            observation=observations,
            reasoning=st.none() | texts,
            action=st.none() | texts,
        ),
        max_size=3,
    ).map(tuple),
    answer=st.none() | texts,
    official_reward=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    terminated=st.none() | st.booleans(),
    truncated=st.none() | st.booleans(),
    telemetry=st.dictionaries(texts, st.floats(allow_nan=False), max_size=3),
    metadata=st.dictionaries(texts, json_values, max_size=3),
)


@settings(max_examples=examples(60))
@given(st.lists(trajectories, max_size=3), st.sampled_from(["", "gz", "zst"]))
def test_what_is_written_is_read_back_equal_and_fits_the_schema(
    written: list[model.Trajectory], compress: store.Compression
) -> None:
    validate = jsonschema.Draft202012Validator(schema.schema()).validate
    with TemporaryDirectory() as name:
        store.write(Path(name), written, compress=compress)
        found = read_all(Path(name))
        assert [by_content(t) for t in found if isinstance(t, model.Trajectory)] == [
            by_content(t) for t in written
        ]
        lines = [t.to_json(lambda ref: sha256(content(ref) or b"").hexdigest()) for t in written]
        for line in lines:
            validate(json.loads(line))


def test_not_finite_telemetry_survives_as_valid_json(tmp_path: Path) -> None:
    path = store.write(tmp_path, [trajectory(telemetry={"a": float("nan"), "b": float("-inf")})])
    json.loads(path.read_text(), parse_constant=pytest.fail)
    (found,) = read_all(tmp_path)
    assert isinstance(found, model.Trajectory)
    assert str(found.telemetry) == "{'a': nan, 'b': -inf}"


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("1e400", "inf (a reward is finite: write null"),
        ("-Infinity", "-inf (a reward is finite: write null"),
        ('"Infinity"', "'Infinity' (a reward is finite: write null"),
        ("1" + "0" * 400, "1000"),
    ],
)
def test_an_infinite_reward_is_refused_with_its_line(
    tmp_path: Path, written: str, told: str
) -> None:
    path = store.write(tmp_path, [trajectory(goal="a", official_reward=0.5), trajectory(goal="b")])
    path.write_text(
        path.read_text().replace('"official_reward":0.5', f'"official_reward":{written}')
    )
    refused, kept = read_all(tmp_path)
    assert isinstance(refused, model.Unreadable)
    assert refused.source == f"{path}:1"
    assert refused.reason.startswith(f"official_reward is {told}")
    assert isinstance(kept, model.Trajectory)


def test_lone_surrogates_become_replacement_characters(tmp_path: Path) -> None:
    store.write(tmp_path, [trajectory(goal="a\ud83d b", metadata={"x": ["\udc00"]})])
    (found,) = read_all(tmp_path)
    assert isinstance(found, model.Trajectory)
    assert (found.goal, found.metadata) == ("a\ufffd b", {"x": ["\ufffd"]})


def test_an_image_is_written_once(tmp_path: Path) -> None:
    source = tmp_path / "shot.png"
    source.write_bytes(png(7))
    many = [trajectory(f"t.{i}", steps=observed(png(7))) for i in range(3)]
    store.write(tmp_path / "out", [*many, trajectory("p", steps=observed(None, source))])
    (image,) = (tmp_path / "out/images").iterdir()
    assert image.name == f"{sha256(png(7)).hexdigest()}.png"
    written = image.stat().st_ino
    store.write(tmp_path / "out", many)
    assert image.stat().st_ino == written


def test_the_same_trajectories_give_the_same_bytes(tmp_path: Path) -> None:
    for compress in ("", "gz", "zst"):
        files = [
            store.write(tmp_path / str(n), [trajectory()], compress=compress) for n in range(2)
        ]
        assert files[0].read_bytes() == files[1].read_bytes()


def test_a_failed_write_leaves_the_earlier_file_and_no_litter(tmp_path: Path) -> None:
    store.write(tmp_path, [trajectory("old")])

    def breaks() -> Iterator[model.Trajectory]:
        yield trajectory("new")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.write(tmp_path, breaks())
    (found,) = read_all(tmp_path)
    assert isinstance(found, model.Trajectory)
    assert found.raw_task_id == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["images", "trajectories.jsonl"]


def test_a_folder_is_rewritten_from_itself(tmp_path: Path) -> None:
    store.write(tmp_path, [trajectory(steps=observed(png()))])
    again = (t for t in store.read(tmp_path) if isinstance(t, model.Trajectory))
    store.write(tmp_path, again, compress="gz")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["images", "trajectories.jsonl.gz"]
    (found,) = read_all(tmp_path)
    assert isinstance(found, model.Trajectory)
    assert content(found.final.screenshot) == png()


def test_an_image_that_has_gone_is_a_warning(tmp_path: Path) -> None:
    store.write(tmp_path, [trajectory(steps=observed(None, tmp_path / "gone.png"))])
    (found,) = read_all(tmp_path)
    assert isinstance(found, model.Trajectory)
    assert found.final.screenshot == model.ImageRef(problem="it was lost before")
    assert "gone.png" in str(found.metadata["warnings"])
    store.write(tmp_path / "again", [found])
    (again,) = read_all(tmp_path / "again")
    assert isinstance(again, model.Trajectory)
    assert again.final.screenshot == found.final.screenshot


def test_only_wanted_keys_are_read(tmp_path: Path) -> None:
    store.write(tmp_path, [trajectory("a"), trajectory("b")])
    (found,) = store.read(tmp_path, lambda key: key.task_id == "b")
    assert isinstance(found, model.Trajectory)
    assert found.raw_task_id == "b"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "not a trajectory"),
        (b"[1]", "not a JSON object"),
        (b"{}", '"format"'),
        (b'{"format": 1}', "key"),
        (
            b'{"format": 1, "key": {"benchmark": "b", "agent": "a", "task_id": "t"}}',
            "raw_task_id is missing",
        ),
        (b"\xff\xff", "not a trajectory"),
        (b"[" * 100_000, "not a trajectory"),
        (b'{"format": 1, "x\\ud800": ' + b"[" * 100_000, "not a trajectory"),
    ],
)
def test_a_bad_line_is_named_and_the_rest_is_read(line: bytes, reason: str, tmp_path: Path) -> None:
    path = store.write(tmp_path, [trajectory()])
    good = path.read_bytes()
    path.write_bytes(good + line + b"\n\n" + good)
    first, bad, last = read_all(tmp_path)
    assert isinstance(first, model.Trajectory)
    assert isinstance(last, model.Trajectory)
    assert isinstance(bad, model.Unreadable)
    assert bad.source == f"{path}:2"
    assert reason in bad.reason


def test_a_newer_format_is_refused_with_the_mend(tmp_path: Path) -> None:
    path = store.write(tmp_path, [trajectory()])
    path.write_text(path.read_text().replace('"format":1', '"format":2'))
    with pytest.raises(UserError, match=r"format 2, newer than the 1 .* upgrade"):
        read_all(tmp_path)


@pytest.mark.parametrize("name", ["../../secret", "a" * 63, "A" * 64, "/etc/passwd", 5, ["x"]])
def test_an_image_is_referred_to_by_its_hash_alone(name: object, tmp_path: Path) -> None:
    path = store.write(tmp_path, [trajectory(steps=observed(png()))])
    record = json.loads(path.read_text())
    record["steps"][0]["observation"]["screenshot"] = name
    path.write_text(json.dumps(record))
    (found,) = read_all(tmp_path)
    assert isinstance(found, model.Unreadable)
    assert "64 hexadecimal" in found.reason


def test_a_link_in_place_of_an_image_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside.png"
    outside.write_bytes(png(9))
    store.write(tmp_path / "set", [trajectory(steps=observed(png()))])
    (image,) = (tmp_path / "set/images").iterdir()
    image.unlink()
    image.symlink_to(outside)
    (found,) = read_all(tmp_path / "set")
    assert isinstance(found, model.Trajectory)
    assert found.final.screenshot
    assert found.final.screenshot.path is None
    assert "no image" in (found.final.screenshot.problem or "")


@pytest.mark.slow
@pytest.mark.parametrize("compress", ["gz", "zst"])
def test_a_bomb_is_refused_and_memory_stays_bounded(compress: str, tmp_path: Path) -> None:
    path = tmp_path / f"trajectories.jsonl.{compress}"
    zeros = bytes(2**20)
    if compress == "gz":
        with gzip.open(path, "wb") as file:
            for _ in range(600):
                file.write(zeros)
    else:
        with path.open("wb") as raw, zstandard.ZstdCompressor().stream_writer(raw) as writer:
            for _ in range(600):
                writer.write(zeros)
    tracemalloc.start()
    with pytest.raises(UserError, match="decompression bomb"):
        read_all(tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 400 * 2**20


def test_a_long_line_is_in_memory_twice_at_most(tmp_path: Path) -> None:
    seen = [model.Observation(axtree=f"[{n}] link 'Item'\n" * 60_000) for n in range(10, 26)]
    steps = tuple(model.Step(index=n, observation=each) for n, each in enumerate(seen))
    size = store.write(tmp_path, [trajectory(steps=steps)]).stat().st_size
    del seen, steps
    tracemalloc.start()
    try:
        for item in store.read(tmp_path):
            assert isinstance(item, model.Trajectory)
            held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 1.2 * size
    assert peak < 2.2 * size


@pytest.mark.parametrize("compress", ["gz", "zst"])
def test_a_truncated_file_says_so_after_what_it_still_holds(
    compress: store.Compression, tmp_path: Path
) -> None:
    many = [trajectory(f"t.{i}", goal=sha256(bytes([i])).hexdigest()) for i in range(200)]
    path = store.write(tmp_path, many, compress=compress)
    path.write_bytes(path.read_bytes()[:-20])
    *_, last = read_all(tmp_path)
    assert isinstance(last, model.Unreadable)
    assert "damaged from here on" in last.reason


def test_a_file_that_is_not_compressed_in_spite_of_its_name(tmp_path: Path) -> None:
    for suffix in ("gz", "zst"):
        path = tmp_path / f"x.jsonl.{suffix}"
        path.write_bytes(b"plain text")
        (found,) = read_all(path)
        assert isinstance(found, model.Unreadable)
        assert "damaged" in found.reason


def test_two_compressed_files_put_together_are_one(tmp_path: Path) -> None:
    for compress in ("gz", "zst"):
        path = store.write(tmp_path, [trajectory()], compress=compress)
        path.write_bytes(path.read_bytes() * 2)
        assert [type(t) for t in read_all(path)] == [model.Trajectory, model.Trajectory]


def test_no_such_folder_is_the_users_mistake_at_the_call(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"trajectories\.jsonl"):
        store.read(tmp_path)


def test_a_folder_that_cannot_be_written_is_the_users_mistake(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot write"):
        store.write(tmp_path / "file" / "x", [trajectory()])


def test_detection_by_name_in_a_folder_and_by_content_of_a_file(tmp_path: Path) -> None:
    path = store.write(tmp_path, [trajectory()])
    assert trajudge.detect(tmp_path)
    assert trajudge.detect(path)
    other = tmp_path / "judgments.jsonl"
    other.write_text('{"key": {}}\n')
    assert not trajudge.detect(other)
    assert not trajudge.detect(tmp_path / "images")


@settings(max_examples=examples(150))
@given(
    st.lists(st.tuples(st.integers(0, 9_999), st.integers(0, 255)), max_size=5),
    st.integers(0, 9_999),
    st.sampled_from(["", "gz", "zst"]),
)
def test_mutated_files_raise_nothing_but_the_users_mistakes(
    flips: list[tuple[int, int]], length: int, compress: store.Compression
) -> None:
    with TemporaryDirectory() as name:
        path = store.write(Path(name), [trajectory(), trajectory("b")], compress=compress)
        data = bytearray(path.read_bytes())
        for at, value in flips:
            data[at % len(data)] = value
        path.write_bytes(data[: length or None])
        try:
            for found in store.read(path):
                assert isinstance(found, model.Trajectory | model.Unreadable)
        except UserError as error:
            assert "newer" in str(error)  # a flipped version


def test_the_committed_schema_is_that_of_the_models() -> None:
    committed = Path(schema.__file__).with_name("schema.json")
    assert committed.read_text() == schema.text(), (
        "write it anew: its text is what  python -m trajudge.trajectories.schema  prints"
    )


def test_every_field_of_the_schema_is_described() -> None:
    document = schema.schema()
    for name, part in {"Trajectory": document, **document["$defs"]}.items():
        for field, described in part.get("properties", {}).items():
            assert described.get("description"), f"{name}.{field}"


def test_a_full_disk_is_said_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    code = """
import resource, sys
from pathlib import Path
from trajudge.trajectories import store
from trajudge.util.errors import UserError
from trajudge.trajectories.model import Trajectory, TrajectoryKey
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
key = TrajectoryKey(benchmark="b", agent="a", task_id="t")
try:
    store.write(Path(sys.argv[1]), [Trajectory(key=key, raw_task_id="t", goal="x" * 200_000)])
except UserError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert "cannot write" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["images"]


def test_what_pythons_json_writes_is_read(tmp_path: Path) -> None:
    """A byte-order mark, half a character, no number: the reward is then not known, not failed."""
    path = store.write(tmp_path, [trajectory(official_reward=1.0), trajectory(goal="Tea")])
    records = [json.loads(line) for line in path.read_text().splitlines()]
    records[0] |= {"goal": "\ud83d tea", "official_reward": float("nan")}
    text = "".join(f"{json.dumps(record)}\n" for record in records)
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    first, second = readable(tmp_path)
    assert (first.goal, first.official_reward) == ("\ufffd tea", None)
    assert second.goal == "Tea"


def test_a_link_out_is_read_where_it_is_named_itself(tmp_path: Path) -> None:
    path = store.write(tmp_path / "elsewhere", [trajectory()])
    (tmp_path / "data").mkdir()
    link = tmp_path / "data" / path.name
    link.symlink_to(path)
    assert len(read_all(link)) == 1
    with pytest.raises(UserError, match=r"leads out of the data folder.*name the file itself"):
        read_all(tmp_path / "data")


def test_an_image_that_is_no_image_but_endless_is_left_out(tmp_path: Path) -> None:
    endless = tmp_path / "endless.png"
    endless.touch()
    os.truncate(endless, 10 * 2**30)
    store.write(tmp_path / "out", [trajectory(steps=observed(None, endless))])
    (found,) = readable(tmp_path / "out")
    assert found.final.screenshot == model.ImageRef(problem="it was lost before")
    assert "larger than 64 MiB" in str(found.metadata["warnings"])


def test_a_line_that_is_not_wanted_is_told_by_its_key_and_a_damaged_one_is_still_named(
    tmp_path: Path,
) -> None:
    path = tmp_path / "trajectories.jsonl"
    key = {"benchmark": "b", "agent": "a", "task_id": "1", "attempt": 0}
    lines = [
        {"format": 1, "key": key, "steps": "no steps"},
        {"format": 1, "key": {**key, "attempt": -1}},
        {"format": 1, "key": {**key, "other": 1}},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"format": 1,\n')
    asked: list[str] = []

    def unwanted(key: model.TrajectoryKey) -> bool:
        asked.append(str(key))
        return False

    found = list(store.read(path, unwanted))
    assert asked == ["b/a/1"]
    bad = [one.source for one in found if isinstance(one, model.Unreadable)]
    assert bad == [f"{path}:{number}" for number in (2, 3, 4)]


@pytest.mark.parametrize(
    ("needs", "screenshot", "goal_image"),
    [
        (NO_NEEDS, NOT_READ, NOT_READ),
        (Needs(answer=True, goal_images=True), NOT_READ, "no image"),
        (Needs(screenshots=FINAL), "no image", NOT_READ),
    ],
)
def test_pictures_that_are_not_needed_are_not_looked_for(
    tmp_path: Path, needs: Needs, screenshot: Any, goal_image: Any
) -> None:
    """Where a picture is missing, only who needs it is given a warning; a step without one has
    none."""
    steps = (*observed(png()), model.Step(index=1))
    goal_images = (model.ImageRef(data=png(9)),)
    store.write(tmp_path, [trajectory(steps=steps, goal_images=goal_images)])
    shutil.rmtree(tmp_path / "images")
    (found,) = (
        one for one in store.read(tmp_path, needs=needs) if isinstance(one, model.Trajectory)
    )
    first, second = (step.observation.screenshot for step in found.steps)
    assert second is None and (found.goal, found.key.task_id) == ("Buy\n", "t.1")
    for ref, expected in ((first, screenshot), (found.goal_images[0], goal_image)):
        assert ref is not None
        assert ref == expected if expected is NOT_READ else expected in str(ref.problem)
    missing = [screenshot, goal_image].count("no image")
    assert str(found.metadata.get("warnings", "")).count("no image") == missing


def test_a_damaged_reference_is_named_also_where_no_picture_is_needed(tmp_path: Path) -> None:
    path = store.write(tmp_path, [trajectory(steps=observed(png()))])
    line = json.loads(path.read_text())
    line["steps"][0]["observation"]["screenshot"] = "../secret.png"
    path.write_text(json.dumps(line) + "\n")
    (found,) = store.read(tmp_path, needs=NO_NEEDS)
    assert isinstance(found, model.Unreadable) and "64 hexadecimal digits" in found.reason
