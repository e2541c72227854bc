"""Put what a benchmark printed into benchmarks/README.md, between its marks."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

README = Path(__file__).with_name("README.md")


def command_line(doc: str | None) -> argparse.ArgumentParser:
    """Make the parser of a benchmark, which has ``--write``."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the output into benchmarks/README.md")
    return parser


def put(name: str, heading: str, text: str) -> None:
    """Replace what stands between ``<!-- name -->`` and ``<!-- /name -->``; both are made at the end if need be."""
    old = README.read_text(encoding="utf-8")
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    if begin not in old:
        old = f"{old.rstrip()}\n\n## {heading}\n\n{begin}\n{end}\n"
    new = re.sub(f"{begin}.*{end}", lambda _: f"{begin}\n{text}\n{end}", old, flags=re.DOTALL)
    README.write_text(new, encoding="utf-8")
