"""Files: written whole, opened safely, and read line by line as JSON."""

from __future__ import annotations

import gzip
import io
import json
import math
import os
import subprocess
import sys
import time
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard
from huggingface_hub import hf_hub_download
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.hub_server import REPO, Hub, serve
from tests.samples import examples
from tests.tables import table
from trajudge.trajectories.model import Record
from trajudge.util.errors import UserError
from trajudge.util.files import (
    DataFolder,
    FileCache,
    UnsafeFile,
    check_file,
    check_folder,
    lock,
    make_folder,
    open_regular,
    read_regular,
    refuse_repeated,
    remove,
    replacing,
    save_bytes,
    write_bytes,
)
from trajudge.util.jsonl import Line, decode, encode, read_lines, repaired
from trajudge.util.masking import MASK, is_secret_header, remember, without_known
from trajudge.util.validation import read_record, read_records, read_token


def test_an_earlier_file_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    for content in (b"first", b""):
        write_bytes(path, content)
        assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("room", "kept"), [(0, "abc"), (-1, "ac")])
def test_a_cache_forgets_what_was_not_used_for_longest(
    room: int, kept: str, tmp_path: Path
) -> None:
    whole = 3 * (32 + 100)  # a checksum before each content
    cache = FileCache(tmp_path / "cache", whole + room)
    for age, name in enumerate("ab"):
        cache.put(name, bytes(100))
        os.utime(tmp_path / "cache" / name, (age, age))
    assert cache.get("a") == bytes(100)  # used now
    cache.put("c", bytes(100))
    assert "".join(name for name in "abc" if cache.get(name) is not None) == kept


def test_a_cache_keeps_the_last_content_of_a_name_and_no_other_file(tmp_path: Path) -> None:
    cache = FileCache(tmp_path / "cache", 1_000)
    assert cache.get("a") is None
    for content in (b"first", b""):
        cache.put("a", content)
        assert FileCache(tmp_path / "cache", 1_000).get("a") == content
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["a"]


def test_a_cache_is_looked_at_whenever_a_sixteenth_of_it_was_written(tmp_path: Path) -> None:
    cache = FileCache(tmp_path, 16 * (32 + 100))
    for number in range(16):
        cache.put(str(number), bytes(100))
        os.utime(tmp_path / str(number), (number, number))
    for number in (16, 17):
        cache.put(str(number), bytes(100))
        assert len([*tmp_path.iterdir()]) == 16
    (tmp_path / "17").write_bytes(bytes(132))
    assert (cache.get("16"), cache.get("17")) == (bytes(100), None)


_WRITER = """
import sys
from pathlib import Path
from trajudge.util.files import FileCache
cache, mine = FileCache(Path(sys.argv[1]), 20_000), sys.argv[2].encode()
seen = 0
for number in range(400):
    name = str(number % 20)
    known = cache.get(name)
    assert known is None or (len(known) == 2_000 and len(set(known)) == 1), known
    seen += known is not None
    cache.put(name, mine * 2_000)
assert seen
"""


def test_two_processes_share_a_cache(tmp_path: Path) -> None:
    """Each reads what the other is writing, and removes it: never a part, and no error."""
    commands = [[sys.executable, "-c", _WRITER, str(tmp_path / "cache"), name] for name in "ab"]
    writers = [subprocess.Popen(command, stderr=subprocess.PIPE) for command in commands]
    assert [writer.communicate()[1].decode() for writer in writers] == ["", ""]
    assert [writer.returncode for writer in writers] == [0, 0]
    assert sum(path.stat().st_size for path in (tmp_path / "cache").iterdir()) <= 24_000


def test_an_earlier_file_stays_when_the_new_one_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    write_bytes(path, b"first")
    with pytest.raises(ValueError, match="half"), replacing(path) as file:
        file.write(b"sec")
        raise ValueError("half way")
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def test_a_name_that_is_taken_by_a_folder_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "file.json").mkdir()
    with pytest.raises(OSError):
        write_bytes(tmp_path / "file.json", b"content")
    assert [path.name for path in tmp_path.iterdir()] == ["file.json"]


def test_the_permissions_are_those_of_an_ordinary_new_file(tmp_path: Path) -> None:
    (tmp_path / "ordinary").write_bytes(b"")
    write_bytes(tmp_path / "whole", b"")
    assert (tmp_path / "whole").stat().st_mode == (tmp_path / "ordinary").stat().st_mode


def test_what_a_user_names_is_looked_at_before_the_work(tmp_path: Path) -> None:
    check_file(tmp_path / "new" / "x.json", "--save")
    assert not (tmp_path / "new").exists()
    with pytest.raises(UserError, match=r"^--save .* is a folder: name a file"):
        check_file(tmp_path, "--save")


@pytest.mark.parametrize("below", ["x.json", "run/x.json"])
def test_a_file_below_a_file_is_refused_with_what_stands_there(below: str, tmp_path: Path) -> None:
    """The system says "File exists"."""
    (tmp_path / "file").touch()
    path = tmp_path / "file" / below
    with pytest.raises(UserError) as raised:
        check_file(path, "--save")
    there = tmp_path / "file"
    told = f"--save {path}: {there} is a file, not a folder: name another file"
    assert str(raised.value) == told


def test_a_folder_that_is_read_only_is_refused_with_what_lies_in_it() -> None:
    """That of a process is, for root, too."""
    for check, place, mend in (
        (check_file, Path("/proc/self/x/y"), "name another file"),
        (check_folder, Path("/proc/self/x/y"), "name another folder"),
        (check_folder, Path("/proc/self"), "name another folder"),
    ):
        with pytest.raises(UserError) as raised:
            check(place, "--out")
        told = f"--out {place}: the folder /proc/self cannot be written: {mend}"
        assert str(raised.value) == told


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    """As root, a device such as ``/dev/stdout`` would be replaced by a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as other:
        content = other.submit(pipe.read_bytes)
        check_file(pipe, "--save")
        save_bytes(pipe, b"said")
        assert content.result(timeout=60) == b"said"
    assert pipe.is_fifo()
    check_file(Path(os.devnull), "--save")
    save_bytes(Path(os.devnull), b"said")
    assert Path(os.devnull).is_char_device()


def test_a_link_is_written_through(tmp_path: Path) -> None:
    place, link = tmp_path / "elsewhere.json", tmp_path / "latest.json"
    link.symlink_to(place)
    for content in (b"first", b"second"):
        save_bytes(link, content)
        assert place.read_bytes() == content
    assert link.is_symlink()


def test_what_was_printed_stands_before_what_is_saved_to_standard_output() -> None:
    code = (
        "from pathlib import Path\n"
        "from trajudge.util.files import save_bytes\n"
        "print('printed')\n"
        "save_bytes(Path('/dev/stdout'), b'saved')\n"
    )
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    said = subprocess.run(
        [sys.executable, "-c", code], env=buffered, capture_output=True, check=True
    ).stdout
    assert said == b"printed\nsaved"


def test_a_pipe_in_place_of_a_file_of_ours_is_replaced_and_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "side-file"
    os.mkfifo(path)
    write_bytes(path, b"kept")
    assert path.is_file()
    assert path.read_bytes() == b"kept"


@pytest.mark.parametrize("below", ["", "run"])
@pytest.mark.parametrize(
    ("there", "kind"), [("file", "file"), ("pipe", "device or a pipe"), ("link", "broken link")]
)
def test_what_has_the_name_of_a_folder_is_said(
    there: str, kind: str, below: str, tmp_path: Path
) -> None:
    """The system says "File exists" or "Not a directory"."""
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("nothing")
    folder = tmp_path / there / below
    with pytest.raises(UserError) as raised:
        make_folder(folder, "--out")
    assert str(raised.value) == f"--out {folder}: {tmp_path / there} is a {kind}: name a folder"


def test_a_folder_that_cannot_be_made_is_said() -> None:
    with pytest.raises(UserError, match=r"^--out /proc/x: cannot be written .*: name another"):
        make_folder(Path("/proc/x"), "--out")


SPARSE = 10 * 2**30


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data" / "deep").mkdir(parents=True)
    (tmp_path / "data" / "deep" / "a.json").write_bytes(b"inside")
    (tmp_path / "data2").mkdir()
    (tmp_path / "data2" / "a.json").write_bytes(b"outside")
    return tmp_path / "data"


def test_a_regular_file_is_read(folder: Path) -> None:
    assert DataFolder(folder).read(folder / "deep" / "a.json", 6) == b"inside"
    assert read_regular(folder / "deep" / "a.json", 6) == b"inside"


def test_a_file_beyond_the_limit_is_not_read_and_the_limit_is_said(folder: Path) -> None:
    path = folder / "sparse.json"
    path.touch()
    os.truncate(path, SPARSE)
    with pytest.raises(UnsafeFile, match=r"sparse\.json is larger than 256 MiB \(10,737,418,240"):
        DataFolder(folder).read(path, 256 * 2**20)


def test_a_large_file_with_holes_is_read_only_by_who_does_not_read_its_lines(
    folder: Path,
) -> None:
    path = folder / "sparse.json"
    path.touch()
    for size in (2**28, 2**28 + 1):
        os.truncate(path, size)
        open_regular(path).close()
        if size == 2**28:
            open_regular(path, sparse=False).close()
    with pytest.raises(
        UnsafeFile, match=r"^sparse\.json is a sparse file \(268,435,457 bytes, most"
    ):
        open_regular(path, sparse=False)
    path.write_bytes(b"whole")
    open_regular(path, sparse=False).close()


def test_what_is_a_file_of_the_folder(folder: Path) -> None:
    data = DataFolder(folder)
    assert data.has_file(folder / "deep" / "a.json")
    for other in (folder / "deep", folder / "none", folder.parent / "data2" / "a.json"):
        assert not data.has_file(other)


def test_a_lock_makes_its_file_unless_told_otherwise(tmp_path: Path) -> None:
    assert lock(tmp_path / "lock", create=False) is None
    first = lock(tmp_path / "lock")
    assert first is not None
    assert lock(tmp_path / "lock") is None
    remove(tmp_path / "lock", first)
    assert not (tmp_path / "lock").exists()


def test_a_folder_that_is_given_twice_is_named_in_both_spellings(tmp_path: Path) -> None:
    again = tmp_path / "x" / ".."
    refuse_repeated([tmp_path, tmp_path / "x"])
    for second, told in ((tmp_path, "is"), (again, f"is the folder {tmp_path}, which is")):
        with pytest.raises(UserError, match=f"^{second}: {told} given twice: give each folder"):
            refuse_repeated([tmp_path, second])


def test_the_system_s_reason_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        UserError, match=r"cannot be written \((File exists|Not a directory)\): name"
    ):
        save_bytes(tmp_path / "file" / "x.json", b"")
    with pytest.raises(UserError, match=r"cannot be read \(No such file or directory\): mend it$"):
        read_record(tmp_path / "none", Words, "mend it")
    with pytest.raises(UserError, match=r"none: cannot be read \(No such file or directory\)$"):
        read_record(tmp_path / "none", Words)


def test_a_token_has_sixteen_characters(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("x" * 16 + "\n")
    assert read_token(tmp_path / "token").get_secret_value() == "x" * 16
    (tmp_path / "token").write_text("x" * 15 + "\n")
    with pytest.raises(UserError, match="its token has fewer than 16 characters"):
        read_token(tmp_path / "token")


def test_what_is_remembered_is_masked_if_it_is_not_as_short_as_a_word() -> None:
    remember("abcdefg-", "abcdefg")
    assert without_known("of abcdefg- and abcdefg") == f"of {MASK} and abcdefg"
    names = ("Authorization", "X-Team", "X-Note")
    values = ("x", "agents", "sk-proj-abcdefghijklmnopqrstuvwx")
    secret = [is_secret_header(name, value) for name, value in zip(names, values, strict=True)]
    assert secret == [True, False, True]


@pytest.mark.parametrize(
    "put",
    [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")],
    ids=["a pipe", "a folder", "a device"],
)
def test_what_is_no_file_is_not_opened(put: Callable[[Path], None], folder: Path) -> None:
    put(folder / "x.json")
    with pytest.raises(UnsafeFile, match=r"x\.json is not a file"):
        open_regular(folder / "x.json")
    with pytest.raises(UnsafeFile):
        DataFolder(folder).open(folder / "x.json")
    assert not DataFolder(folder).has_file(folder / "x.json")


@table(
    "link target name",
    """
    a.json   | ../data2/a.json | a.json
    other    | ../data2        | other/a.json
    one.json | two.json        | one.json
    deep/up  | ../..           | deep/up/data2/a.json
    x        | ..              | x/data2/a.json
    """,
)
def test_links_are_not_followed_out(link: str, target: str, name: str, folder: Path) -> None:
    (folder / "two.json").symlink_to(folder.parent / "data2" / "a.json")
    (folder / link).symlink_to(target)
    assert (folder / name).read_bytes() == b"outside"
    with pytest.raises(UnsafeFile, match="leads out of the data folder"):
        DataFolder(folder).open(folder / name)


def test_neither_is_a_path_that_climbs(folder: Path) -> None:
    assert not DataFolder(folder).holds(folder / "deep" / ".." / ".." / "data2" / "a.json")
    assert DataFolder(folder).holds(f"{folder}/deep/../deep/a.json")


def test_links_inside_and_a_folder_that_is_a_link_itself_are_fine(folder: Path) -> None:
    (folder / "b.json").symlink_to("deep/a.json")
    (folder.parent / "named").symlink_to("data")
    for root in (folder, folder.parent / "named"):
        data = DataFolder(root)
        assert data.read(root / "b.json", 100) == b"inside"
        assert data.read(root / "deep" / "a.json", 100) == b"inside"
    assert DataFolder(folder).holds(folder.parent / "named" / "deep" / "a.json")


def test_a_link_to_itself_is_an_error_of_the_system(folder: Path) -> None:
    (folder / "loop.json").symlink_to("loop.json")
    with pytest.raises(OSError, match="symbolic links"):
        DataFolder(folder).open(folder / "loop.json")


def test_the_hubs_own_cache_is_read(tmp_path: Path) -> None:
    """As huggingface_hub lays it out itself: snapshots/<commit>/... link to blobs/<hash>."""
    names = ["cleaned/webarena/a/b/webarena.1.json", "annotations.csv"]
    with serve(Hub(files={name: name.encode() for name in names})) as hub:
        got = [
            Path(
                hf_hub_download(
                    REPO, name, repo_type="dataset", cache_dir=tmp_path, endpoint=hub.endpoint
                )
            )
            for name in names
        ]
    snapshot = got[1].parent
    assert all(path.is_symlink() and "blobs" in str(path.resolve()) for path in got)
    for root in (snapshot, snapshot / "cleaned", snapshot / "cleaned" / "webarena"):
        assert DataFolder(root).read(got[0], 100) == names[0].encode()
    (snapshot / "evil.json").symlink_to(tmp_path / "elsewhere.json")
    (tmp_path / "elsewhere.json").write_bytes(b"outside")
    with pytest.raises(UnsafeFile):
        DataFolder(snapshot).open(snapshot / "evil.json")


_PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".zst": zstandard.compress,
}


@settings(max_examples=examples(60))
@given(st.lists(st.binary(max_size=30)), st.sampled_from(["", ".gz", ".zst"]))
@example([BOM_UTF8], "")
@example([BOM_UTF8 + b"a", BOM_UTF8], ".gz")
def test_lines_are_those_of_the_file(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], suffix: str
) -> None:
    data = b"\n".join(lines)
    assume(not data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)))
    packed = data if not suffix else _PACK[suffix](data)
    path = tmp_path_factory.mktemp("lines") / f"a.jsonl{suffix}"
    path.write_bytes(packed)
    text = data.removeprefix(BOM_UTF8)
    expected = [(n, line) for n, line in enumerate(text.split(b"\n"), 1) if line.strip()]
    assert [(line.number, line.data) for line in read_lines(path)] == expected


def test_a_line_that_is_too_long_is_named_and_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"a\n" + b"b" * 3_000_000 + b"\nc\n" + b"d" * 100)
    found = list(read_lines(path, max_line_bytes=50))
    assert [(line.number, line.data) for line in found] == [
        (1, b"a"),
        (2, b""),
        (3, b"c"),
        (4, b""),
    ]
    assert "longer than 50 bytes" in found[1].problem
    assert "longer" in found[3].problem
    path.write_bytes(b"abc\nabcd\n\nabc")
    too_long = "the line is longer than 3 bytes"
    assert [*read_lines(path, 3)] == [Line(1, b"abc"), Line(2, b"", too_long), Line(4, b"abc")]


def test_a_file_that_is_not_there_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        list(read_lines(tmp_path / "no.jsonl"))


class Words(Record):
    words: str


FIXES = {"missing": "name another", "damaged": "write it anew"}


@settings(max_examples=examples(60))
@given(st.lists(st.text(st.characters(codec="utf-8"))))
@example(["a\u2028b", "a\u2029b", "a\x85b", "a\x0bb\x0cc\x1cd\re"])
def test_records_are_read_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    path = tmp_path_factory.mktemp("records") / "a.jsonl"
    path.write_bytes(b"".join(encode({"words": text}) + b"\n" for text in texts))
    read = read_records(path, Words.model_validate_json, **FIXES)
    assert read == [(n, Words(words=text)) for n, text in enumerate(texts, start=1)]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b'\n{"words": "a"}\n\n{"words": 7}\n', ", line 4: words is 7 (Input should be a valid"),
        (b'{"words": "a"}\n{"words": "b"', ", line 2: the line is not JSON (EOF while parsing"),
        (b'{"words": "\xff"}', ", line 1: the line is not JSON ("),
        (None, ": cannot be read (No such file or directory): name another"),
    ],
)
def test_a_damaged_record_is_named_with_its_line(
    content: bytes | None, sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError) as error:
        read_records(path, Words.model_validate_json, **FIXES)
    assert str(error.value).startswith(f"{path}{sentence}")
    assert str(error.value).endswith("name another" if content is None else "write it anew")


ANY = msgspec.json.Decoder(Any)
_PARTS = ["NaN", "-Infinity", '"', "\\", "\\ud83d", "\ud83d", "\ude00", "\U0001f600", ", ", ": "]
texts = st.lists(st.sampled_from(_PARTS) | st.text(max_size=3), max_size=5).map("".join)
values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers(-(2**70), 2**70) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


def dumped(value: object, **options: Any) -> bytes:
    file = io.StringIO()
    json.dump(value, file, **options)
    return file.getvalue().encode()


def expected(value: object) -> object:
    """The value with null for no number, and one mark for half a character."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [expected(item) for item in value]
    if isinstance(value, dict):
        return {expected(name): expected(item) for name, item in value.items()}
    return value


@settings(max_examples=examples(60))
@given(values, st.booleans(), st.sampled_from([None, 2]))
def test_whatever_json_dump_writes_is_read(value: object, mark: bool, indent: int | None) -> None:
    content = b"\xef\xbb\xbf" * mark + dumped(value, indent=indent)
    assert decode(content, ANY) == expected(json.loads(dumped(value)))


@settings(max_examples=examples(40))
@given(values)
def test_what_is_json_already_is_left_as_it_is(value: object) -> None:
    content = dumped(expected(value))
    assert repaired(content) is None or ANY.decode(content) == decode(content, ANY)


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (rb'"\ud83d"', "\ufffd"),
        (rb'"\ud83d\ude00"', "\U0001f600"),
        (rb'"\ude00\ud83d\ud83d\ude00"', "\ufffd\ufffd\U0001f600"),
        (rb'"\\ud83d \\\ud83d"', "\\ud83d \\\ufffd"),
        (
            b'{"a": NaN, "b": [-Infinity, Infinity], "NaN": "say \\"NaN, NaN"}',
            {"a": None, "b": [None, None], "NaN": 'say "NaN, NaN'},
        ),
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
    ],
)
def test_by_example(content: bytes, value: object) -> None:
    assert decode(content, ANY) == value


@pytest.mark.parametrize("content", [b"NaNa", b"[NaN", b'"\xff', b"{nan}", b"-NaN", b""])
def test_what_no_json_dump_writes_stays_a_mistake(content: bytes) -> None:
    with pytest.raises(ValueError):
        decode(content, ANY)


def test_no_number_stays_a_mistake_where_null_would_say_something_else() -> None:
    with pytest.raises(ValueError):
        decode(b"[NaN]", ANY, numbers=False)
    found: object = decode(rb'["\ud83d"]', ANY, numbers=False)
    assert found == ["\ufffd"]


@pytest.mark.parametrize(
    "content",
    [
        b'{"a": NaN, "b": "' + rb"\"" * 500_000,
        b'"NaN' * 250_001,
        rb'"\ud83d' * 200_000,
        b"NaN," * 250_000,
    ],
    ids=["a string without an end", "many strings", "many halves", "many numbers"],
)
def test_damaged_files_take_time_in_proportion_to_their_size(content: bytes) -> None:
    began = time.process_time()
    with pytest.raises(ValueError):
        decode(content, ANY)
    assert time.process_time() - began < 3
