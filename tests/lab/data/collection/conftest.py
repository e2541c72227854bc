"""A server of our own, a data folder, and a manifest that says what is on the one and may come into the other."""

from __future__ import annotations

import hashlib
import io
import threading
import zipfile
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from unrolled.lab.data.collection import fetch as fetching
from unrolled.lab.data.collection.manifest import Manifest

TEXT = b"first line\nsecond line\n"
MEMBERS = {"inner/a.txt": b"a\n" * 100_000, "inner/b.txt": b"b\n"}


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def packed(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


ARCHIVE = packed(MEMBERS)


class Handler(BaseHTTPRequestHandler):
    """Answers with what its server was told to."""

    def do_GET(self):
        self.server.asked.append((self.path, self.headers["User-Agent"]))
        answer = self.server.answers.get(self.path)
        if answer is None:
            self.send_error(404, "Not Found")
        elif isinstance(answer, str):
            self.send_response(302)
            self.send_header("Location", answer)
            self.end_headers()
        else:
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer) + self.server.missing))
            self.end_headers()
            self.wfile.write(answer)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    """On this machine alone, and so without encryption: the one thing that is let through for these tests."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.answers = {"/text": TEXT, "/archive.zip": ARCHIVE}
        server.asked, server.missing = [], 0
        server.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=partial(server.serve_forever, poll_interval=0.01))
        thread.start()
        monkeypatch.setattr(fetching, "_SCHEMES", ("http", "https"))
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def manifest(server):
    files = {
        "books/text.txt": {"bytes": len(TEXT), "sha256": sha256(TEXT), "address": f"{server.address}/text"},
        "closed/text.txt": {"bytes": 3, "sha256": sha256(b"abc")},
        "sets/unknown.txt": {"archive": "sets", "member": "inner/b.txt"},
    }
    for name, content in MEMBERS.items():
        files[name.replace("inner", "sets")] = {
            "bytes": len(content),
            "sha256": sha256(content),
            "archive": "sets",
            "member": name,
        }
    return Manifest(
        sources={
            "book": {"files": ["books/text.txt"]},
            "sets": {"files": ["sets/a.txt", "sets/b.txt", "sets/unknown.txt"]},
            "wikiqa": {"files": ["closed/text.txt"], "request_url": "https://example.org/ask"},
        },
        files=files,
        archives={"sets": {"address": f"{server.address}/archive.zip", "sha256": sha256(ARCHIVE)}},
    )
