"""Headless chromium, and the document that it makes of a page."""

from __future__ import annotations

import shutil
from html.parser import HTMLParser

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Document(HTMLParser):
    """The elements of a dumped document with their attributes, and the text inside elements of a class or a name."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.within: list[tuple[str, set[str]]] = []
        self.pieces: list[tuple[list[tuple[str, set[str]]], str]] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.elements.append((tag, given))
        if tag not in ("meta", "link", "br", "input", "img"):
            self.within.append((tag, set((given.get("class") or "").split()) | {given.get("id") or ""}))

    def handle_endtag(self, tag):
        if any(name == tag for name, _ in self.within):
            while self.within.pop()[0] != tag:
                pass

    def handle_data(self, data):
        self.pieces.append((list(self.within), data))

    def text(self, name: str) -> str:
        """The text inside elements that have this tag, class or id, with single blanks."""
        found = [data for within, data in self.pieces if any(name == tag or name in names for tag, names in within)]
        return " ".join(" ".join(found).split())

    def having(self, **wanted: str) -> list[dict[str, str | None]]:
        return [given for _, given in self.elements if wanted.items() <= given.items()]

    def with_class(self, name: str) -> list[dict[str, str | None]]:
        return [given for _, given in self.elements if name in (given.get("class") or "").split()]
