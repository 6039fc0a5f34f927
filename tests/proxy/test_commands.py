"""``trajudge proxy run`` and ``serve`` as a user starts them, with an agent that is any program."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.proxy.site import Site, events_of, open_site
from tests.screens import on_one_line, one_screen
from tests.waiting import wait_until
from trajudge.eval.cli import main

# Standard library alone: it knows nothing of the proxy but the environment.
AGENT = """
import sys, urllib.error, urllib.request
for path in sys.argv[2:]:
    request = urllib.request.Request(sys.argv[1] + path, headers={"Sec-Fetch-Dest": "document"})
    try:
        print(urllib.request.urlopen(request).status)
    except urllib.error.HTTPError as error:
        print(error.code)
sys.exit(5)
"""
PLAN = {
    "seed": 3,
    "faults": [
        {"id": "busy", "kind": "status", "status": 503, "policy": "at(2)"},
        {"id": "late", "kind": "reset", "policy": "at(9)"},
        {"id": "rare", "kind": "reset", "policy": "bernoulli(0)"},
    ],
}


@pytest.fixture
def site() -> Iterator[Site]:
    with open_site() as running:
        yield running


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(PLAN))
    return file


def test_run_shows_exposure_and_cost_on_one_screen(
    site: Site, plan: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out, agent = tmp_path / "run", [sys.executable, "-c", AGENT, site.origin, "/b", "/b", "/b"]
    words = ["proxy", "run", "--faults", str(plan), "--task", "shop.1", "--out", str(out), "--"]
    assert main([*words, *agent]) == 5
    shown = capfd.readouterr().out
    assert shown.split()[:3] == ["200", "503", "200"]
    lines = [line.split() for line in one_screen(shown.replace(str(out), "run"), 100)]
    assert ["shop.1", "3", "3", "0", "–", "–", "–"] in [line[:7] for line in lines]
    assert ["busy", "status", "1", "1", "1", "0", "0", "0"] in lines
    assert ["late", "reset", "1", "0", "0", "0", "0", "1"] in lines
    assert ["rare", "reset", "0", "drawn", "0", "0", "0", "0", "0"] in lines
    assert json.loads((out / "summary.json").read_text())["tasks"][0]["page_loads"] == 3
    assert json.loads((out / "plan.json").read_text())["seed"] == 3
    assert (out / "traces/shop_1.har").exists()
    assert main([*words, "true"]) == 2
    assert "holds a run already" in capfd.readouterr().err


def test_what_a_run_cost_is_shown_where_the_summary_cannot_be_written(
    site: Site, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It was a traceback, and nothing was shown."""
    summary = tmp_path / "run" / "summary.json"
    summary.mkdir(parents=True)
    words = ["proxy", "run", "--task", "shop.1", "--out", str(tmp_path / "run"), "--"]
    assert main([*words, sys.executable, "-c", AGENT, site.origin, "/b"]) == 2
    captured = capfd.readouterr()
    assert "shop.1" in captured.out
    assert f"error: {summary}: cannot be written (Is a directory)" in captured.err


def test_a_site_elsewhere_is_mapped(
    site: Site, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["proxy", "run", "--out", str(tmp_path / "run")]
    words += ["--site", f"www.shop.test=http://127.0.0.1:{site.port}", "--"]
    assert main([*words, sys.executable, "-c", AGENT, "http://www.shop.test", "/b"]) == 5
    assert capfd.readouterr().out.startswith("200\n")
    assert site.seen[0][2]["host"] == "www.shop.test"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--site", "a.test", "--site", "A.test=http://127.0.0.1:1"], "a.test is given twice"),
        (["--site", "http://shop"], "--site 'http://shop' is not a host"),
        (["--site", "https://shop.test/"], "name the host alone, shop.test"),
        (["--site", "shop=ftp://x"], "not the address of a server"),
        (["--api", "mistral"], "--api 'mistral': name one of openai, anthropic"),
        (["--api", "openai=nowhere"], "has no URL"),
        (["--task-signature", "("], "is not a regular expression"),
        (["--page-requests", "("], "--page-requests '(' is not a regular expression"),
        (["--mitmdump", "none/mitmdump"], "--mitmdump none/mitmdump: no program"),
        (["--task-signature", ""], "--task-signature is empty: give a value, or leave it out"),
        (["--task", " "], "names no task: give a name, or leave --task out"),
        (["--horizon", "1000000000"], "--horizon 1000000000: must be at most 10000"),
        (["--faults", "none.json"], "none.json: No such file or directory"),
        ([], "'no-such-agent' cannot be started"),
    ],
)
def test_a_mistake_is_one_sentence(
    words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(tmp_path / "run")]
    assert main(["proxy", "run", *words, *out, "--", "no-such-agent"]) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "run").exists(), "the corrected command may name the same folder"


def test_a_file_in_the_place_of_the_folder_is_named_as_it_was_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    out.touch()
    assert main(["proxy", "run", "--out", str(out), "--", "true"]) == 2
    assert f"--out {out}: {out} is a file: name a folder" in capsys.readouterr().err


def test_a_plan_without_horizon_never_runs_in_silence(
    site: Site, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.json"
    fault = {"id": "busy", "kind": "status", "status": 503, "policy": "random(1)"}
    plan.write_text(json.dumps({"faults": [fault]}))
    words = ["--faults", str(plan)]
    assert main(["proxy", "plan", *words]) == 2
    run = ["proxy", "run", *words, "--out", str(tmp_path / "run"), "--horizon", "1", "--"]
    assert "give --horizon N" in capfd.readouterr().err
    assert main([*run, sys.executable, "-c", AGENT, site.origin, "/b"]) == 5
    assert capfd.readouterr().out.startswith("503\n")


@pytest.mark.parametrize("command", ["plan", "run", "serve"])
def test_more_page_loads_than_a_task_takes_are_not_drawn(
    command: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Two of three were planned, and nobody was told."""
    plan = tmp_path / "plan.json"
    faults = [
        {"id": name, "kind": "status", "status": 503, "policy": policy}
        for name, policy in (("own", "random(4, 5)"), ("busy", "random(3)"))
    ]
    plan.write_text(json.dumps({"faults": faults}))
    rest = {"plan": [], "run": ["--", "true"], "serve": []}[command]
    assert main(["proxy", command, "--faults", str(plan), "--horizon", "2", *rest]) == 2
    sentence = "fault 'busy' is random(3), which --horizon 2 has too few page loads for"
    assert sentence in capfd.readouterr().err
    assert main(["proxy", "plan", "--faults", str(plan), "--horizon", "3"]) == 0
    assert "1, 2, 3" in capfd.readouterr().out


def test_serve_tells_where_it_is_and_ends_orderly(site: Site, plan: Path, tmp_path: Path) -> None:
    out = tmp_path / "served"
    words = ["proxy", "serve", "--faults", str(plan), "--out", str(out)]
    command = [sys.executable, "-m", "trajudge.eval.cli", *words]
    clean = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean
    ) as process:
        assert process.stdout and process.stderr
        ready = json.loads(process.stdout.readline())
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(ready["control"] + "/health") as answer:
            assert json.load(answer) == {"nonce": ready["nonce"], "pid": process.pid}
        begin = urllib.request.Request(ready["control"] + "/task", data=b'{"id": "one"}')
        direct.open(begin).close()
        agent = [sys.executable, "-c", AGENT, site.origin, "/b", "/b"]
        env = {**clean, "http_proxy": ready["proxy"]}
        ran = subprocess.run(agent, env=env, capture_output=True, text=True, check=False)
        assert ran.stdout.split() == ["200", "503"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        assert "busy" in process.stderr.read()
    assert [event["type"] for event in events_of(out)][-2:] == ["task_end", "end"]


def test_serve_ends_with_the_program_that_started_it(plan: Path, tmp_path: Path) -> None:
    """A recorder that is killed leaves no proxy behind."""
    out = tmp_path / "run"
    words = ["proxy", "serve", "--faults", str(plan), "--out", str(out)]
    starter = (
        "import subprocess, sys; "
        "served = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE); "
        "print(served.stdout.readline().decode(), flush=True); served.wait()"
    )
    command = [sys.executable, "-m", "trajudge.eval.cli", *words, "--stop-with-stdin"]
    with subprocess.Popen(
        [sys.executable, "-c", starter, *command], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert "control" in json.loads(process.stdout.readline())
        process.kill()
    assert wait_until(lambda: events_of(out, "end"), every=0.05)


def test_an_agent_trusts_https_by_its_environment_alone(
    site: Site, plan: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    words = ["proxy", "run", "--faults", str(plan), "--out", str(out)]
    words += ["--site", f"www.shop.test=http://127.0.0.1:{site.port}", "--"]
    agent = [sys.executable, "-c", AGENT, "https://www.shop.test", "/b", "/b", "/b"]
    assert main([*words, *agent]) == 5
    assert capfd.readouterr().out.split()[:3] == ["200", "503", "200"]
    pages = events_of(out, "page")
    assert [page["url"] for page in pages] == ["https://www.shop.test/b"] * 3
    (recovery,) = events_of(out, "recovery")
    assert (recovery["means"], recovery["at"]) == ("reloaded", 3)


def test_a_missing_mitmproxy_is_one_sentence_that_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TRAJUDGE_MITMDUMP")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    out = tmp_path / "run"
    assert main(["proxy", "run", "--out", str(out), "--", "true"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        "error: mitmproxy is not installed: install it with  pipx install mitmproxy , or name its "
        "mitmdump with --mitmdump FILE or TRAJUDGE_MITMDUMP=FILE"
    )
    assert not out.exists()


def test_an_agent_keeps_the_threads_that_its_user_gave_it(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Our own commands have no threads for linear algebra; that is nothing an agent inherits."""
    show = [sys.executable, "-c", "import os; print(os.environ.get('OPENBLAS_NUM_THREADS'))"]
    for number in ("3", None):
        if number is None:
            monkeypatch.delenv("OPENBLAS_NUM_THREADS")
        else:
            monkeypatch.setenv("OPENBLAS_NUM_THREADS", number)
        assert main(["proxy", "run", "--out", str(tmp_path / f"run-{number}"), "--", *show]) == 0
        assert capfd.readouterr().out.startswith(f"{number}\n")


def test_runs_of_one_second_have_folders_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("time.strftime", lambda form: "20260101-120000")
    for _ in range(3):
        assert main(["proxy", "run", "--", "true"]) == 0
    folders = sorted(path.name for path in Path("proxy-runs").iterdir())
    assert folders == ["20260101-120000", "20260101-120000-2", "20260101-120000-3"]
    assert all(Path("proxy-runs", name, "summary.json").exists() for name in folders)


def test_a_default_folder_that_cannot_be_made_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("proxy-runs").write_text("")
    assert main(["proxy", "run", "--", "true"]) == 2
    assert "name a folder with --out" in capfd.readouterr().err


PROGRAM = """
import sys, urllib.error, urllib.request
proxies = urllib.request.ProxyHandler(None if sys.argv[1] == "by the proxy" else {})
try:
    urllib.request.build_opener(proxies).open(sys.argv[2]).close()
except urllib.error.HTTPError:
    pass
"""


@pytest.mark.parametrize(
    ("way", "address", "sentence"),
    [
        (
            "past it",
            "SITE/a",
            "nothing came through the proxy: programs use it by HTTP_PROXY and HTTPS_PROXY",
        ),
        ("by the proxy", "SITE/a", "no request of 1 through the proxy loads a page"),
        ("by the proxy", "http://other.test/", "refused all 1 requests: name their hosts with"),
    ],
)
def test_a_program_without_page_loads_is_told_how_to_use_the_proxy(
    way: str,
    address: str,
    sentence: str,
    site: Site,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """It need not be a browser, and what came instead of page loads decides what is to be done."""
    agent = [sys.executable, "-c", PROGRAM, way, address.replace("SITE", site.address)]
    assert main(["proxy", "run", "--out", str(tmp_path / "run"), "--", *agent]) == 0
    shown = one_screen(capfd.readouterr().out.replace(str(tmp_path), ""), 100)
    assert sentence in on_one_line("\n".join(shown))


@pytest.mark.slow
def test_programs_behind_mitmproxy_are_told_the_variables_of_its_certificate(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    show = "import os; print(*os.environ)"
    words = ["proxy", "run", "--out", str(tmp_path / "run"), "--"]
    assert main([*words, sys.executable, "-c", show]) == 0
    names, _, screen = capfd.readouterr().out.partition("\n")
    told = screen.partition("nothing came through the proxy")[2]
    named = set(re.findall(r"[A-Z]+(?:_[A-Z]+)+", told))
    assert {"HTTPS_PROXY", "SSL_CERT_FILE", "CURL_CA_BUNDLE", "TRAJUDGE_PROXY_CHROMIUM"} <= named
    assert named <= set(names.split())


def test_an_agent_that_a_signal_ends_has_the_exit_code_that_a_shell_gives_it(
    site: Site, tmp_path: Path
) -> None:
    kill = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    words = ["proxy", "run", "--out", str(tmp_path / "run"), "--", sys.executable, "-c", kill]
    assert main(words) == 128 + signal.SIGKILL
