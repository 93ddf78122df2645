"""A page as a browser shows it, after a script of the test has acted on it."""

import base64
import hashlib
import shutil
import subprocess

import pytest

needs_browser = pytest.mark.skipif(not shutil.which("chromium"), reason="needs a browser")


def shown(text, script, folder, query=""):
    """The document once the script has run; the page's policy allows it beside the page's own, and nothing more."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = folder / "acted.html"
    page.write_text(
        text.replace("script-src '", f"script-src 'sha256-{digest}' '", 1).replace(
            "</body>", f"<script>{script}</script></body>"
        )
    )
    return _browsed(folder, "--dump-dom", f"{page.as_uri()}{query}")


def printed(text, folder):
    """The page on paper, as the bytes of a PDF."""
    page, target = folder / "printed.html", folder / "printed.pdf"
    page.write_text(text)
    _browsed(folder, f"--print-to-pdf={target}", page.as_uri())
    return target.read_bytes()


def _browsed(folder, *words):
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
             f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=8000"]  # fmt: skip
    command = ["chromium", *flags, *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
