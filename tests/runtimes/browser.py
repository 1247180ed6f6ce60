"""A headless browser, and a local server of its pages."""

import functools
import http.server
import queue
import re
import shutil
import subprocess
import threading
from contextlib import contextmanager
from html import unescape

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE localhost",
]


def browser():
    """Return the path of Chromium, or skip the test."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("Chromium is not installed")
    return found


class Handler(http.server.SimpleHTTPRequestHandler):
    extensions_map = {
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def __init__(self, *args, mounts, **kwargs):
        self.mounts = mounts
        super().__init__(*args, **kwargs)

    def translate_path(self, path):
        first, _, rest = path.partition("?")[0].lstrip("/").partition("/")
        return f"{self.mounts.get(first, '/nowhere')}/{rest}"

    def do_POST(self):
        length = int(self.headers["Content-Length"])
        self.server.answers.put(self.rfile.read(length).decode())
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args):
        pass


class Address(str):
    """Address of a server, with the texts that pages post to it."""

    def __new__(cls, text, answers):
        found = super().__new__(cls, text)
        found.answers = answers
        return found


@contextmanager
def served(**mounts):
    """Yield the address at which folders are served under their names."""
    server = http.server.ThreadingHTTPServer(("localhost", 0), functools.partial(Handler, mounts=mounts))
    server.answers = queue.Queue()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield Address(f"http://localhost:{server.server_port}", server.answers)
    finally:
        server.shutdown()
        server.server_close()


def text_of(url, tmp_path, milliseconds=60000):
    """Return the text of the element ``result`` of a page after some virtual time."""
    command = [
        browser(),
        *OPTIONS,
        f"--virtual-time-budget={milliseconds}",
        f"--user-data-dir={tmp_path / 'profile'}",
        "--dump-dom",
        url,
    ]
    found = subprocess.run(command, capture_output=True, text=True, timeout=180)
    match = re.search(r'<pre id="result">(.*?)</pre>', found.stdout, re.DOTALL)
    assert match, found.stdout + found.stderr
    return unescape(match[1])


#: Options of WebGPU, emulated in software.
WEBGPU = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"]


def posted_by(address, page, tmp_path, options=()):
    """Return the text that a page posts, in real time."""
    command = [browser(), *OPTIONS, *options, f"--user-data-dir={tmp_path / 'profile'}", f"{address}{page}"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        return address.answers.get(timeout=180)
    finally:
        process.terminate()
        process.wait()
