"""The report of runs that are still going, served to this machine alone.

The server only reads, and answers two routes: ``/`` with the page or a list of runs, and ``/data?run=NAME`` with the
data of a run. A name is looked up among the runs in the folder and never becomes a path. Requests for another host are
refused, so that no web site can read the data through the browser of this machine.
"""

from __future__ import annotations

import html
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qs, quote, urlsplit

from gdi.errors import UserError
from gdi.report.document import document_json
from gdi.report.page import live_page
from gdi.report.report import report
from gdi.report.runs import find_run_folders, is_run_folder, read_run

LOOPBACK = "127.0.0.1"
# After an answer that took a second, the same answer is given for this many seconds.
REST = 3.0
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
LIST_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
LIST_STYLE = ":root{color-scheme:light dark}body{font:16px system-ui,sans-serif;margin:2rem}li{margin:.4rem 0}"


@dataclass(frozen=True)
class Answer:
    """What the server says to one request."""

    code: int
    kind: str
    text: str


@dataclass
class Kept:
    """The newest data of a run, and the time until which they are not read again."""

    text: str
    until: float


class LiveReports:
    """The answers about the runs in one folder."""

    def __init__(self, root: Path) -> None:
        """``root`` is a run folder, or a folder of run folders. Raise UserError if it holds no run."""
        if not root.is_dir():
            raise UserError(f"{root} is not a folder: name a run folder, or a folder of them.")
        self._root = root
        self._is_run = is_run_folder(root)
        self._kept: dict[str, Kept] = {}
        self._lock = threading.Lock()
        if not self.runs():
            raise UserError(f"{root} has no run yet: start one with gdi train --run-dir.")

    def runs(self) -> dict[str, Path]:
        """Return the run folders by name, as they are now."""
        if self._is_run:
            return {self._root.resolve().name: self._root} if is_run_folder(self._root) else {}
        return {str(folder.relative_to(self._root)): folder for folder in find_run_folders(self._root)}

    def answer(self, target: str) -> Answer:
        """Return the answer to a GET request."""
        url = urlsplit(target)
        query = parse_qs(url.query, keep_blank_values=True)
        if url.path not in ("/", "/data") or set(query) - {"run"} or len(query.get("run", [])) > 1:
            return Answer(404, "text/plain", "There is no such page.")
        runs = self.runs()
        name = query["run"][0] if "run" in query else next(iter(runs)) if len(runs) == 1 else None
        if url.path == "/":
            if name is None:
                return Answer(200, "text/html", list_page(self._root.resolve().name, runs))
            title = f"{name} (live)" if name in runs else "gdi watch"
            return Answer(200, "text/html", live_page(title))
        if name not in runs:
            return Answer(404, "text/plain", "The run is gone, or there is none of this name.")
        return Answer(200, "application/json", self._data(name, runs[name]))

    def _data(self, name: str, folder: Path) -> str:
        with self._lock:
            kept = self._kept.get(name)
            began = time.monotonic()
            if kept is None or began >= kept.until:
                text = document_json(report([read_run(folder)]))
                seconds = time.monotonic() - began
                kept = self._kept[name] = Kept(text, began + (1 + REST) * seconds)
            return kept.text


def list_page(title: str, runs: Mapping[str, Path]) -> str:
    """Return a page with a link to each run."""
    items = "\n".join(f'<li><a href="/?run={quote(name, safe="")}">{html.escape(name)}</a></li>' for name in runs)
    name = html.escape(title)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{LIST_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{name}</title><link rel="icon" href="data:,">
<style>{LIST_STYLE}</style>
</head><body><main><h1>Runs in {name}</h1>
<ul>
{items}
</ul></main></body></html>
"""


class Handler(BaseHTTPRequestHandler):
    """A reader of GET requests. Other methods are refused by the base class."""

    reports: ClassVar[LiveReports]
    server_version, sys_version = "gdi", ""

    def do_GET(self) -> None:
        """Answer a request for this host; refuse any other."""
        if self.headers.get_all("Host") not in self._own_names():
            self._send(Answer(403, "text/plain", "This server answers requests for this machine only."))
            return
        try:
            answer = self.reports.answer(self.path)
        except (UserError, OSError, ValueError):
            answer = Answer(404, "text/plain", "The run is gone.")
        self._send(answer)

    def _own_names(self) -> list[list[str]]:
        port = self.connection.getsockname()[1]
        return [[f"{name}:{port}"] for name in (LOOPBACK, "localhost")]

    def _send(self, answer: Answer) -> None:
        body = answer.text.encode()
        self.send_response(answer.code)
        self.send_header("Content-Type", f"{answer.kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing, because the page asks every two seconds."""


def make_server(root: Path, port: int) -> ThreadingHTTPServer:
    """Return a server of the runs in a folder on the loopback address; port 0 takes any free one."""
    handler = type("RunHandler", (Handler,), {"reports": LiveReports(root)})
    try:
        return ThreadingHTTPServer((LOOPBACK, port), handler)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(
            f"--port {port} cannot be used: {reason}. Choose another port, or 0 for any free one."
        ) from None


def url_of(server: ThreadingHTTPServer) -> str:
    """Return the address to open."""
    return f"http://{LOOPBACK}:{server.server_address[1]}/"
