"""A small server on loopback that speaks the Hugging Face Hub's protocol for one dataset.

Small text files are answered after a relative redirect, large ones by a redirect to a "CDN", as
the real hub does; every answer names the commit.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha1, sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

from tests.http_thread import serving

REPO = "McGill-NLP/agent-reward-bench"
COMMIT = "c0ffee" + "0" * 34


@dataclass
class Hub:
    """What the server has, what it was asked, and the trouble it is to make.

    ``trouble[path]`` is a list of (status, headers) to be answered before the file is resolved,
    ``trouble["content/" + path]`` before its content is given;
    ``sent`` counts the bytes of bodies; ``cut[path]`` counts how often the body breaks off;
    ``listed[path]`` is what the listing takes for the file's content.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    commit: str = COMMIT
    requests: list[tuple[str, str]] = field(default_factory=list)
    trouble: dict[str, list[tuple[int, dict[str, str]]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    cut: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    listed: dict[str, bytes] = field(default_factory=dict)
    endpoint: str = ""
    repo: str = REPO
    sent: int = 0

    def fetched(self) -> list[str]:
        """Paths of the files whose content was asked for, in order."""
        return [path for method, path in self.requests if method == "GET"]


def _handler(hub: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            """Silent."""

        def do_HEAD(self) -> None:
            self.route()

        def do_GET(self) -> None:
            self.route()

        def route(self) -> None:
            path = unquote(urlsplit(self.path).path)
            base = f"/datasets/{hub.repo}/resolve/"
            tree = f"/api/datasets/{hub.repo}/tree/{hub.commit}"
            revisions = f"/api/datasets/{hub.repo}/revision/"
            if path.startswith(tree):
                self.tree(path.removeprefix(tree).strip("/"))
            elif path.startswith(revisions):
                self.revision(path.removeprefix(revisions))
            elif path.startswith("/content/"):
                self.content(path.removeprefix("/content/"))
            elif path.startswith(base):
                revision, _, name = path.removeprefix(base).partition("/")
                self.resolve(revision, name)
            else:
                self.answer(404, {"X-Error-Code": "RepoNotFound"})

        def revision(self, named: str) -> None:
            hub.requests.append(("REVISION", named))
            if named not in ("main", hub.commit):
                self.answer(404, {"X-Error-Code": "RevisionNotFound"})
                return
            body = json.dumps({"id": hub.repo, "sha": hub.commit}).encode()
            self.answer(200, {"Content-Type": "application/json"}, body)

        def resolve(self, revision: str, name: str) -> None:
            hub.requests.append((f"{self.command} resolve", name))
            if hub.trouble[name]:
                self.answer(*hub.trouble[name].pop(0))
            elif revision not in ("main", hub.commit):
                self.answer(404, {"X-Error-Code": "RevisionNotFound"})
            elif name not in hub.files:
                self.answer(404, {"X-Error-Code": "EntryNotFound"})
            elif name.endswith(".csv"):
                self.answer(307, {**self.about(name), "Location": f"/content/{name}"})
            else:
                data = hub.files[name]
                linked = {
                    "X-Linked-Etag": f'"{sha256(data).hexdigest()}"',
                    "X-Linked-Size": str(len(data)),
                    "Location": f"{hub.endpoint}/content/{name}",
                }
                self.answer(302, {**self.about(name), **linked})

        def content(self, name: str) -> None:
            hub.requests.append((self.command, name))
            if hub.trouble[f"content/{name}"] and self.command == "GET":
                self.answer(*hub.trouble[f"content/{name}"].pop(0))
                return
            data = hub.files[name]
            start, end = 0, len(data) - 1
            if wanted := self.headers.get("Range"):
                first, _, last = wanted.removeprefix("bytes=").partition("-")
                start, end = int(first), int(last or end)
            if self.command == "GET" and hub.cut[name]:
                hub.cut[name] -= 1
                self.answer(200, self.about(name), data[: len(data) // 2], length=len(data))
                self.close_connection = True
                return
            span = {"Content-Range": f"bytes {start}-{end}/{len(data)}"}
            headers = {**self.about(name), **(span if wanted else {})}
            self.answer(206 if wanted else 200, headers, data[start : end + 1])

        def tree(self, folder: str) -> None:
            hub.requests.append(("TREE", folder))
            names = [
                name
                for name in sorted(hub.files)
                if (name.startswith(f"{folder}/") if folder else "/" not in name)
            ]
            entries = [self.listed(name, hub.listed.get(name, hub.files[name])) for name in names]
            if not entries:
                self.answer(404, {"X-Error-Code": "EntryNotFound"})
                return
            body = json.dumps(entries).encode()
            self.answer(200, {"Content-Type": "application/json"}, body)

        def listed(self, name: str, data: bytes) -> dict[str, object]:
            """As the hub lists a file: git's hash of it, or its SHA-256 where it is large."""
            blob = b"blob %d\0" % len(data) + data
            entry = {"type": "file", "path": name, "size": len(data), "oid": sha1(blob).hexdigest()}
            if name.endswith((".png", ".parquet")):
                large = {"oid": sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
                return {**entry, "oid": "0" * 40, "lfs": large}
            return entry

        def about(self, name: str) -> dict[str, str]:
            digest = sha256(hub.files[name]).hexdigest()
            etag = digest if name.endswith(".parquet") else digest[:40]
            return {"X-Repo-Commit": hub.commit, "ETag": f'"{etag}"'}

        def answer(
            self, status: int, headers: dict[str, str], body: bytes = b"", length: int | None = None
        ) -> None:
            self.send_response(status)
            for header, value in headers.items():
                self.send_header(header, value)
            self.send_header("Content-Length", str(len(body) if length is None else length))
            self.end_headers()
            if self.command == "GET":
                hub.sent += len(body)
                self.wfile.write(body)

    return Handler


@contextmanager
def serve(hub: Hub) -> Iterator[Hub]:
    """Serves ``hub`` on a free port; stopped, and the port closed, at the end of the block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    server.daemon_threads = True
    with serving(server) as hub.endpoint:
        yield hub
