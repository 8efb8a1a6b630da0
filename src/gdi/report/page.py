"""The report as one HTML file, which needs no network and forbids itself any request.

The page's script draws the embedded data. A server that leaves the data out (``live``) must answer ``/data`` with the
same JSON, ``document_json``; the script then asks for it again and again.
"""

from __future__ import annotations

import base64
import hashlib
import html

from gdi import __version__
from gdi.report.data import PLOTLY, read_text
from gdi.report.document import Document, document_json

NO_SCRIPT = "This page draws its data with a script. Allow scripts to see it."
REQUESTS = {False: "This page makes no network request.", True: "This page asks only the gdi that serves it."}


def page(document: Document) -> str:
    """Return the page with its data inside."""
    return _html(document.title, document_json(document))


def live_page(title: str) -> str:
    """Return the page without data, which it asks its server for."""
    return _html(title, None)


def content_security_policy(*scripts: str, live: bool) -> str:
    """Return a policy that allows these scripts, embedded pictures and videos, and otherwise nothing.

    A live page may ask its own server. Plotly sets styles from its script.
    """
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    rules = {
        "default-src": "'none'",
        "script-src": " ".join(f"'sha256-{value}'" for value in hashes),
        "style-src": "'unsafe-inline'",
        "img-src": "data: blob:",
        "media-src": "data:",
        "connect-src": "'self'" if live else "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def _html(title: str, data: str | None) -> str:
    plotly, script = read_text(PLOTLY), f"\n{read_text('page.js')}"
    policy = content_security_policy(plotly, script, live=data is None)
    embedded = "" if data is None else f'<script id="report" type="application/json">{data}</script>\n'
    name = html.escape(title)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{name}</title><link rel="icon" href="data:,">
<style>{read_text("page.css")}</style></head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header><h1>{name}</h1><p id="status" class="warning" role="status"></p></header>
<nav aria-label="Sections"><ul></ul></nav>
<main id="content" tabindex="-1"><noscript><p>{NO_SCRIPT}</p></noscript></main>
<footer>Written by gdi {__version__}. Drawn by Plotly. {REQUESTS[data is None]}</footer>
{embedded}<script>{plotly}</script>
<script>{script}</script>
</body></html>
"""
