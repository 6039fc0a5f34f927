"""The house's import rule, held by reading every module's imports."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.trees import outline

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "trajudge"
ALLOWED = {
    "util": set[str](),
    "stats": set[str](),
    "trajectories": {"util"},
    "annotations": {"util", "trajectories"},
    "prompts": {"util", "trajectories"},
    "judges": {"util", "trajectories", "prompts", "rules"},
    "rules": {"util", "stats", "trajectories"},
    "environments": {
        *("util", "stats", "trajectories", "annotations", "prompts", "rules", "judges"),
    },
    "eval": {"util", "stats", "trajectories", "annotations", "prompts", "judges", "rules"},
    "app": {"util", "stats", "trajectories", "annotations", "prompts", "judges", "eval"},
    "robustness": {"util", "stats", "trajectories", "annotations", "prompts", "judges", "eval"},
    "rewards": {"util", "stats", "trajectories", "judges", "eval"},
    "proxy": {"util", "judges"},
}
# What starts the commands of every room by name, and what makes public names of them.
DISPATCHERS = {"eval/cli.py"}
# What is started as a process of its own, and by whom: it is reached over the network alone.
STARTED = {"environments/recording/fault_proxy.py": {"eval"}}
HEAVY = {"openai", "anthropic", "litellm", "datasets", "huggingface_hub", "sklearn", "playwright"}
# Takes what is quick of it: huggingface_hub imports its client when that is first used.
QUICK = {"trajectories/hub.py": {"huggingface_hub"}}


def modules(package: str) -> Iterator[Path]:
    home = PACKAGE if package in ALLOWED else ROOT
    yield from sorted((home / package).rglob("*.py"))


def imported(path: Path, *, top_level_only: bool = False) -> set[str]:
    """The absolute imports of a module: the room of ours, else the first segment."""
    nodes = outline(path).body if top_level_only else outline(path).imports
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute"
            names.add(str(node.module))
    ours = {_room_of(name) for name in names if name.startswith("trajudge.")}
    others = {name.split(".")[0] for name in names} - {"trajudge"}
    assert not others & ALLOWED.keys(), f"import trajudge.{min(others & ALLOWED.keys())} instead"
    return ours | others


def _room_of(name: str) -> str:
    return name.removeprefix("trajudge.").split(".")[0]


# A line that imports a room without ``trajudge.``, or relatively; some are none, in strings.
_ROOMS = "|".join(ALLOWED)
BARE = re.compile(
    rf"^[ \t]*(?:from +(?:\.|(?:{_ROOMS})\b)|import +(?:[\w.]+(?: as \w+)?, *)*(?:{_ROOMS})\b)",
    flags=re.M,
)


@pytest.mark.parametrize("package", [*ALLOWED, "tests", "benchmarks"])
def test_our_rooms_have_one_import_name(package: str) -> None:
    """A bare ``import judges`` would load a second copy, or a stranger's package."""
    for module in modules(package):
        if BARE.search(module.read_text(encoding="utf-8")):
            imported(module)


@pytest.mark.parametrize(
    ("line", "bare"),
    [
        ("import judges", True),
        ("    from eval.runs import plan", True),
        ("import os, trajectories", True),
        ("from . import model", True),
        ("import os as system, trajectories.model", True),
        ("from trajudge.judges import model", False),
        ("from __future__ import annotations", False),
        ("import trajudge.judges", False),
    ],
)
def test_a_bare_import_is_looked_at(line: str, bare: bool) -> None:
    assert bool(BARE.search(f"x = 1\n{line}\n")) == bare


@pytest.mark.parametrize("room", ["annotations", "judges", "prompts", "trajectories"])
def test_a_room_has_a_link_at_the_root(room: str) -> None:
    """A checkout without links holds a file there, an sdist nothing; the code uses neither."""
    link = ROOT / room
    assert not link.exists() or link.is_file() or link.readlink() == Path("trajudge") / room


def test_nothing_in_the_package_is_a_link() -> None:
    """An sdist, a zip file and a checkout on Windows leave links out."""
    assert [path for path in PACKAGE.rglob("*") if path.is_symlink()] == []


def test_the_page_of_the_architecture_names_every_folder() -> None:
    plan = (ROOT / "docs" / "architecture.md").read_text().split("```")[1]
    named = {word.strip("(),;") for word in plan.split() if word.strip("(),;").endswith("/")}
    folders = {f"{path.parent.name}/" for path in (PACKAGE / "eval").glob("*/__init__.py")}
    assert {f"{room}/" for room in ALLOWED} | folders <= named


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_imports_go_one_way(package: str) -> None:
    for module in modules(package):
        ours = imported(module) & ALLOWED.keys()
        assert ours <= ALLOWED[package] | {package}, module


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_no_string_names_a_module_across_the_arrows(package: str) -> None:
    """What is imported by its name is imported all the same."""
    known = set(_paths())
    for module in modules(package):
        if str(module.relative_to(PACKAGE)) in DISPATCHERS:
            continue
        named = {_room_of(name) for name in _named(module, known)}
        started = STARTED.get(str(module.relative_to(PACKAGE)), set())
        assert named <= ALLOWED[package] | {package} | started, module


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_slow_libraries_are_imported_when_first_used(package: str) -> None:
    for module in modules(package):
        names = imported(module, top_level_only=True)
        own_name = {module.stem} if module.parent.name == "adapters" else set[str]()
        quick = QUICK.get(str(module.relative_to(PACKAGE)), set())
        assert not names & HEAVY - own_name - quick, module


def test_no_package_shadows_the_standard_library() -> None:
    packages = {path.parent.name for root in (ROOT, PACKAGE) for path in root.glob("*/__init__.py")}
    assert not packages & sys.stdlib_module_names


def _paths() -> dict[str, Path]:
    return {_name(path): path for room in ALLOWED for path in modules(room)}


def _graph(package: str | None = None) -> dict[str, set[str]]:
    """Which modules of ours each module imports, wherever in it and for whatever purpose."""
    paths = _paths()
    return {
        name: _ours(path, set(paths)) - {name}
        for name, path in paths.items()
        if package is None or name.startswith(f"trajudge.{package}.")
    }


def _name(path: Path) -> str:
    dotted = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    return f"trajudge.{dotted}".removesuffix(".__init__")


def _ours(path: Path, known: set[str]) -> set[str]:
    names = set()
    for node in outline(path).imports:
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                names.add(full if full in known else node.module)
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names & known


def _named(path: Path, known: set[str]) -> set[str]:
    """The modules that strings name, with or without ``trajudge.``; an f-string that begins with a
    package's name and a dot names all of its modules."""
    found: set[str] = set()
    for node in outline(path).strings:
        if isinstance(node, ast.Constant):
            name = str(node.value).partition(":")[0]  # module:name
            found |= {name, "trajudge." + name} & known
        elif isinstance(node.values[0], ast.Constant):
            start = str(node.values[0].value)
            if start.endswith(".") and start[:-1] in known:
                found |= {name for name in known if name.startswith(start)}
    return found


# Folders whose modules are found by looking into them.
FOUND_BY_FOLDER = {
    "environments/apps/__init__.py": "trajudge.environments.apps.",
    "judges/registry.py": "trajudge.judges.methods.",
    "trajectories/loaders/__init__.py": "trajudge.trajectories.loaders.",
    "annotations/sources/__init__.py": "trajudge.annotations.sources.",
    # Users' programs name them.
    "environments/__init__.py": "trajudge.environments.gym",
    "rewards/__init__.py": "trajudge.rewards.trainers",
}


def test_every_module_is_reached_from_a_command_or_the_public_names() -> None:
    paths = {**_paths(), **{f"trajudge.{p.stem}": p for p in PACKAGE.glob("*.py")}}
    known = set(paths)
    main = 'if __name__ == "__main__":'
    commands = {name for name, path in paths.items() if main in outline(path).text}
    waiting = [*commands, "trajudge.__init__"]
    reached: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached.add(name)
        waiting += _ours(paths[name], known) | _named(paths[name], known)
        start = FOUND_BY_FOLDER.get(str(paths[name].relative_to(PACKAGE)))
        waiting += [other for other in known if start and other.startswith(start)]
        parent = name.rpartition(".")[0]
        waiting += [parent] if parent in known else []
    assert sorted(known - reached) == []


def test_no_import_goes_in_a_circle() -> None:
    """Type-only and late imports count: a tie that is hidden is a tie."""
    TopologicalSorter(_graph()).prepare()  # raises CycleError


def test_the_rooms_of_environments_have_no_circle() -> None:
    rooms: dict[str, set[str]] = {}
    for name, imports in _graph("environments").items():
        for one in imports:
            if one.startswith("trajudge.environments.") and _room(one) != _room(name):
                rooms.setdefault(_room(name), set()).add(_room(one))
    TopologicalSorter(rooms).prepare()


def _room(module: str) -> str:
    """The folder or the module of environments that a module is in."""
    return module.split(".")[2]


def test_text_reaches_a_terminal_as_it_is() -> None:
    """One place makes rich's console: elsewhere, its markup would be read into names."""
    made = re.compile(r"(?<![_\w])Console\(")
    modules_ = [path for package in ALLOWED for path in modules(package)]
    assert [p.name for p in modules_ if made.search(outline(p).text)] == ["terminal.py"]


# Public classes that share a name with another, and why; everything else has one meaning.
SHARED_NAMES = {
    "Option": "of a command, and of a page's menu",
    "Address": "a pattern of the current rules, and that of the published release",
    "ParseFailure": "of a judge's reply, and of an agent's response",
    "Request": "to a model, and in a network trace",
    "Response": "in a network trace, and of an agent",
    "Run": "judgments, and an agent's run as WebArena and WebArena Verified each record one",
    "Task": "of WebArena and of WebArena Verified",
    "Trace": "of WebArena and of WebArena Verified",
    "Url": "a value of the current rules, and of the published release",
    "Verdict": "of a judge, and of a rule",
}


def test_a_public_class_has_a_name_of_its_own() -> None:
    homes: dict[str, list[Path]] = {}
    for path in _paths().values():
        for node in outline(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(path)
    shared = {name for name, paths in homes.items() if len(paths) > 1}
    assert shared == set(SHARED_NAMES), {
        name: homes.get(name) for name in shared ^ set(SHARED_NAMES)
    }


# The module that opens input, and what may open files without it: why.
READER = "util/files.py"
OPENERS = {
    "annotations/queue.py": "SQLite, after check_regular",
    "app/web.py": "files of this package, through importlib",
    "environments/apps/scenarios.py": "files of an application's package, through importlib",
    "environments/chromium/process.py": "locks and logs of browsers that it starts",
    "environments/model/state.py": "SQLite in memory",
    "eval/store/published.py": "thousands of files: O_NONBLOCK, and looked at when open",
    "judges/adapters/failures.py": "files of this package, through importlib",
    "judges/fidelity.py": "files of this package, through importlib",
    "judges/engine/budget.py": "appends",
    "judges/engine/cache.py": "SQLite, after check_regular, and locks next to it",
    "prompts/render.py": "files of this package, through importlib",
    "proxy/addon.py": "settings that process.py wrote for it: it imports nothing of ours",
    "robustness/families/__init__.py": "files of this package, through importlib",
    "robustness/rates.py": "files of this package, through importlib",
    "rules/verified/state.py": "SQLite, after check_regular",
    "util/commands.py": "/dev/null",
}
_LIBRARIES = {
    *("os.open", "io.open", "gzip.open", "bz2.open", "lzma.open", "tarfile.open", "Image.open"),
    *("np.load", "np.loadtxt", "np.genfromtxt", "np.memmap", "json.load", "tomllib.load"),
    *("pickle.load", "yaml.load", "sqlite3.connect", "zipfile.ZipFile", "shutil.copyfile"),
    *("pq.ParquetFile", "pq.read_table", "pq.read_schema", "pq.read_metadata", "pd.read_csv"),
    *("pd.read_parquet", "pd.read_json", "runpy.run_path", "linecache.getlines", "fileinput.input"),
}
# What a module that opens anything holds: no other needs to be parsed.
_OPENS = re.compile(
    rf"(?:open|read_text|read_bytes|{'|'.join(n.rpartition('.')[2] for n in _LIBRARIES)})\("
)
# What was opened, or came over the network, and is handed on: a name for each kind of thing.
_HANDED_ON = {"answer", "archive", "error", "file", "packed", "raw"}

_OTHER_OPENINGS = {"self.protocol.open", "self._calls.open"}  # a connection, engines


def _opening(call: ast.Call) -> str | None:
    """The name of a call that opens a file for reading; None for any other."""
    called, first = call.func, call.args[0] if call.args else None
    if isinstance(called, ast.Name):
        return called.id if called.id == "open" else None
    if not isinstance(called, ast.Attribute):
        return None
    name = f"{ast.unparse(called.value)}.{called.attr}"
    if called.attr in ("read_text", "read_bytes"):
        ours = {"files", "__file__"} & {n.id for n in ast.walk(called) if isinstance(n, ast.Name)}
        return None if ours else name
    if name not in _LIBRARIES:
        if called.attr != "open" or not (first is None or _is_mode(first)):
            return None
        writes = first is not None and bool(set("wax") & set(ast.literal_eval(first)))
        return None if writes or name in _OTHER_OPENINGS else name
    handed = isinstance(first, ast.Name) and first.id in _HANDED_ON
    memory = isinstance(first, ast.Call) and ast.unparse(first.func) == "BytesIO"
    by_name = any(keyword.arg == "fileobj" for keyword in call.keywords)
    writes = len(call.args) > 1 and ast.unparse(call.args[1]) == "'w'"
    return None if handed or memory or by_name or writes else name


def _is_mode(node: ast.expr) -> bool:
    text = node.value if isinstance(node, ast.Constant) else None
    return isinstance(text, str) and bool(text) and set(text) <= set("rwaxbt+")


# What reads pictures among the judges, which run on an event loop, and where it does.
DECODERS = {
    "judges/prompting.py": {"PictureLimits", "PictureLoader"},  # the loader's threads
    "judges/defences.py": {"grey_levels", "picture_size"},  # asyncio.to_thread
}


def test_no_judge_decodes_a_picture_on_the_event_loop() -> None:
    """``tests/judges/prompting/test_pictures.py`` runs all judges; here no module is forgotten."""
    readers: dict[str, set[str]] = {}
    for path in modules("judges"):
        assert "PIL" not in imported(path), path
        for node in outline(path).imports:
            if isinstance(node, ast.ImportFrom) and node.module == "trajudge.trajectories.images":
                names = {alias.name for alias in node.names}
                readers.setdefault(str(path.relative_to(PACKAGE)), set()).update(names)
            if isinstance(node, ast.ImportFrom) and node.module == "trajudge.trajectories":
                assert "images" not in {alias.name for alias in node.names}, path
    assert readers == DECODERS


def test_input_is_opened_by_the_checked_reader_alone() -> None:
    openings = {
        f"{path.relative_to(PACKAGE)}: {name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if _OPENS.search(text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and (name := _opening(node))
    }
    others = {line for line in openings if line.partition(":")[0] not in {READER, *OPENERS}}
    assert others == set()
    assert {line.partition(":")[0] for line in openings} == {READER, *OPENERS}


@pytest.mark.parametrize(
    ("code", "opens"),
    [
        ("open(path)", True),
        ("path.open()", True),
        ("path.open('rb')", True),
        ("path.open('ab')", False),
        ("Path(name).read_text()", True),
        ("files(__package__).joinpath('x').read_text()", False),
        ("np.load(path)", True),
        ("pq.read_table(path)", True),
        ("json.load(file)", False),
        ("json.load(opened(path))", True),
        ("Image.open(BytesIO(content))", False),
        ("Image.open(path)", True),
    ],
)
def test_the_search_for_openings_sees_them(code: str, opens: bool) -> None:
    call = ast.parse(code, mode="eval").body
    assert isinstance(call, ast.Call)
    assert bool(_opening(call)) == opens
