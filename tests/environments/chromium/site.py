"""A small site on loopback, with everything that can go wrong in a browser."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode

from tests.http_thread import serving

FORM = """<form method=post action=/order>
  <label>Name <input name=name></label>
  <label>Day <input type=date name=day></label>
  <label>Size <select name=size><option value=s>Small</option><option value=l>Large</option>
  </select></label>
  <label><input type=checkbox name=gift> Gift</label>
  <button>Order</button> <button disabled>Pay</button>
</form>"""

PARTS = """<h1>Cart</h1><nav><a href="#a">Home</a> <a href="#b">Orders</a></nav>
<form><label>Qty <input type=number value=2 required min=1></label>
<select aria-label=Ship><option>Std</option><option selected>Fast</option></select>
<input type=checkbox aria-label=Gift checked><button disabled>Pay</button>
<button aria-description="at once">Update</button></form>
<ul><li>One</li><li>Two <b>bold</b></li></ul>
<table><tr><td>a</td><td>1</td></tr></table>
<dialog open><p>Sure?</p><button>Yes</button></dialog><textarea aria-label=Note>hi</textarea>"""

CUT = "<label>"  # where /halves stops for a while
RADIO = f"{CUT}<input type=radio> Garden</label>"

PAGES = {
    "/parts": PARTS,
    "/more-parts": f"{PARTS}<input type=date><p style='margin-top:3000px'>Far <button>Low</button>"
    "<details><summary>More</summary>hidden</details><img alt=Logo src=/x.png><svg><g/></svg>",
    "/": '<h1>Home</h1><a href="/form">Form</a> <a href="/slow">Slow</a> <a href="#part">Part</a>'
    "<p id=\"out\"></p><button onclick=\"document.getElementById('out').textContent = 'done'\">"
    'Say</button><p style="margin-top:3000px"><a id="part" href="/form">Far</a></p>',
    "/form": FORM,
    "/dialog": "<main><a href='/'>Behind</a></main><dialog open><button>Close</button></dialog>",
    "/covered": '<button>Under</button><div style="position:fixed;inset:0">banner</div>',
    "/windows": '<a href="/form" target="_blank">Blank</a>'
    "<button onclick=\"window.open('/form')\">Open</button>"
    '<form action="/form" target="_blank"><button>Send</button></form>',
    "/fetching": "<button onclick=\"fetch('/slow').then(r => r.text())"
    ".then(() => document.title = 'fetched')\">Fetch</button>",
    "/later": "<button onclick=\"setTimeout(() => location = '/form', 0)\">Later</button>",
    "/alert": "<button onclick=\"alert('stop'); document.title = 'went on'\">Alert</button>"
    "<button onclick=\"document.title = String(confirm('sure?'))\">Confirm</button>",
    "/leaving": '<button>Nothing</button><a href="/form">Leave</a>'
    "<script>onbeforeunload = (event) => event.preventDefault()</script>",
    "/hanging": '<button onclick="for (;;);">Hang</button>',
    "/closing": '<button onclick="close()">Close</button>',
    "/file": '<input type=file><a href="/download">Download</a><a href="/nothing">Nothing</a>'
    '<a href="mailto:a@b.c">Mail</a>',
    "/outside": '<a href="http://other.localhost/">Other</a><a href="/away">Away</a>'
    '<a href="file:///etc/passwd">File</a><a href="javascript:document.title=\'ran\'">Script</a>'
    '<a href="data:text/html,hello">Data</a><a href="/never">Never</a>'
    '<img src="http://other.localhost/pixel"><img src="http://example.com/pixel">'
    '<iframe src="http://other.localhost/frame"></iframe>',
    "/storage": "<script>document.title = (localStorage.seen ?? '') + (sessionStorage.seen ?? '')"
    " + document.cookie + window.name; localStorage.seen = sessionStorage.seen = window.name = 'x';"
    " document.cookie = 'seen=x';</script>",
    "/keeping": """<script>
      const mark = (when) => { localStorage.seen = sessionStorage.seen = window.name = when;
        document.cookie = `seen=${when}`; };
      addEventListener("pagehide", () => mark("hidden"));
      setInterval(() => { mark("later"); console.error("later"); fetch("/later"); }, 20);
      (async () => {
        const kept = [localStorage.seen, sessionStorage.seen, window.name, document.referrer,
          document.cookie.replace("run=secret", ""), history.length - 2 || "",
          (await indexedDB.databases()).length || "", (await caches.keys()).join()];
        document.title = kept.filter(Boolean).join() || "nothing";
        mark("at once");
        await caches.open("seen");
        indexedDB.open("seen");
        history.pushState(null, "", "/keeping?seen");
      })();
    </script>""",
    "/clock": "<script>document.title = [new Date().toISOString(), navigator.language,"
    " Intl.DateTimeFormat().resolvedOptions().timeZone, matchMedia('(prefers-reduced-motion)')"
    ".matches].join(' ')</script>",
    "/attributes": "<p>one</p><button>two</button><script>window.seen = () => "
    "document.documentElement.outerHTML</script>",
    "/radio": RADIO,
    "/loop": "<script>setTimeout(() => location.reload(), 0)</script><p>again</p>",
    "/often": "<script>setInterval(() => location.reload(), 20)</script><p>again</p>",
}
DELAY = 0.3  # seconds


class Site(ThreadingHTTPServer):
    """``hits`` are the requests: (host, method, path)."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.hits: list[tuple[str, str, str]] = []

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that goes away is nothing to report."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Site

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        path = self._hit()
        if path == "/away":
            self._send(302, "", Location="http://other.localhost/secret")
        elif path == "/download":
            self._send(200, "x", **{"Content-Disposition": "attachment; filename=x.txt"})
        elif path == "/nothing":
            self._send(204, "")
        elif path == "/never":
            time.sleep(20)
        elif path == "/large":
            rows = "".join(f"<tr><td>{n}<td><a href=/{n}>Item {n}</a>" for n in range(300))
            self._page(f"<table>{rows}</table>")
        elif path == "/halves":
            self._page(RADIO, CUT)
        elif path == "/thanks":
            self._page("<h1>Thanks</h1>")
        else:
            time.sleep(DELAY if path == "/slow" else 0)
            self._page(PAGES.get(path, f"<h1>{path}</h1>"))

    def do_POST(self) -> None:
        self._hit()
        text = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        fields = {name: values[0] for name, values in parse_qs(text).items()}
        time.sleep(DELAY)
        self._send(303, "", Location=f"/thanks?{urlencode(fields)}")

    def _hit(self) -> str:
        path = self.path.partition("?")[0]
        self.server.hits.append((self.headers["Host"], self.command, path))
        return path

    def _page(self, body: str, cut: str = "") -> None:
        page = f"<!doctype html><html lang=en><title>Site</title><body>{body}"
        self._send(200, page, cut, **{"Content-Type": "text/html; charset=utf-8"})

    def _send(self, status: int, text: str, cut: str = "", **headers: str) -> None:
        """Answer; what follows the text ``cut`` is sent after a delay."""
        data = text.encode()
        self.send_response(status)
        for name, value in {**headers, "Set-Cookie": "run=secret; Path=/"}.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        first = text.index(cut) + len(cut)
        self.wfile.write(data[:first])
        time.sleep(DELAY if cut else 0)
        self.wfile.write(data[first:])


@contextmanager
def serve() -> Iterator[Site]:
    """The site on an ephemeral port of loopback."""
    site = Site()
    with serving(site):
        yield site
