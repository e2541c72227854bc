"""Malformed data files of every format: one line that says what is wrong, or a training that ends well."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import random
from pathlib import Path

from cases import REVIEWS, SMALL, Part, command, faults_of, inside

FORMATS = {
    "classify": (("tsv", "csv", "jsonl", "tsv.gz", "tsv.xz"), REVIEWS),
    "regress": (("tsv",), [f"text {i} of some\t{i / 7:.3f}" for i in range(40)]),
    "tag": (("conll", "conllu"), [f"w{i}\tB-PER\nof\tO\nit\tO\n" for i in range(30)]),
    "rank": (("tsv",), [f"what is {i // 2}\tit is {i}\t{i % 2}" for i in range(60)]),
    "lm": (("tok.txt",), [f"a line of words number {i}" for i in range(60)]),
    "chars": (("txt",), [f"a line of letters number {i}" for i in range(60)]),
    "brackets": (("txt",), ["([]){}", "(()[])", "{[()]}"] * 15),
}


def spell(suffix: str, rows: list[str]) -> bytes:
    """Write rows in a format."""
    if suffix == "csv":
        rows = [",".join(f'"{cell}"' for cell in row.split("\t")) for row in rows]
    if suffix == "jsonl":
        rows = [json.dumps(dict(zip(("text", "label"), row.split("\t"), strict=True))) for row in rows]
    if suffix == "conllu":
        rows = [
            "\n".join(
                f"{k}\t{word.split(chr(9))[0]}\t_\tNOUN\t_\t_\t0\t_\t_\t_"
                for k, word in enumerate(row.split("\n")[:-1], 1)
            )
            + "\n"
            for row in rows
        ]
    content = ("\n".join(rows) + "\n").encode()
    return (
        gzip.compress(content)
        if suffix.endswith("gz")
        else lzma.compress(content)
        if suffix.endswith("xz")
        else content
    )


def spoil(content: bytes, draw: random.Random) -> bytes:
    """Damage a file in one of many ways, sometimes in two."""
    place = draw.randrange(len(content) + 1)
    line = content.split(b"\n")
    which = draw.randrange(len(line))
    odd = [
        b"\x00", b"\xff\xfe", b"\xc3", b"\xef\xbb\xbf", b"\x1b[2J", b"\r", b"\t" * 5, b'"', b"{", b"\xe2\x80\xa8",
        b"1e308", b"nan", b"-", "\u202e".encode(), b"\n\n\n", b"[" * 2000, b"9" * 5000, b"\x85", b"\\u0000",
    ]  # fmt: skip
    ways = [
        lambda: content[:place],
        lambda: content[:place] + draw.choice(odd) + content[place:],
        lambda: b"\n".join([*line[:which], draw.choice(odd), *line[which:]]),
        lambda: b"\n".join([*line[:which], line[which] + draw.choice(odd), *line[which + 1 :]]),
        lambda: b"\n".join(each.rpartition(b"\t")[0] for each in line),
        lambda: content.replace(b"\n", b"\r\n"),
        lambda: content.replace(b"\n", b" "),
        lambda: b"review\tsentiment\n" + content,
        lambda: draw.randbytes(draw.randrange(3000)),
        lambda: b"",
        lambda: b"\n" * 50,
        lambda: content.replace(b"\t", b" "),
        lambda: content.replace(b" ", b""),
        lambda: bytes(byte ^ (draw.random() < 0.01) for byte in content),
        lambda: content + b"word " * 300_000 + b"\tpos\n",
        lambda: b"\n".join(line[:1] * 30),
        lambda: content.decode(errors="replace").encode("utf-16"),
        lambda: content.decode(errors="replace").encode("latin-1", "replace"),
        lambda: b"\n".join(draw.sample(line, len(line))),
    ]
    content = draw.choice(ways)()
    return spoil(content, draw) if draw.random() < 0.2 and len(content) < 10**6 else content


def run(number: int, draw: random.Random, place: Path, _) -> list[str]:
    """Train on one malformed file, given as training, dev or test file."""
    task = sorted(FORMATS)[number % len(FORMATS)]
    suffixes, rows = FORMATS[task]
    suffix = draw.choice(suffixes)
    broken, sound = place / f"broken.{suffix}", place / f"sound.{suffix}"
    whole = spell(suffix, rows)
    sound.write_bytes(whole)
    kind = draw.random()
    if kind < 0.03:
        broken.mkdir()
    elif kind < 0.06:
        broken.symlink_to(broken.name)
    else:
        broken.write_bytes(spoil(whole, draw))
    role = draw.choice(("data", "data", "dev", "test"))
    words = ["--data", broken] if role == "data" else ["--data", sound, f"--{role}", broken]
    with inside(place):
        said = command("train", task, *words, *SMALL, "--out", "run", "--steps", "2")
    faults = faults_of(said)
    if said.code and (place / "run").exists():
        faults.append(f"a run folder was left; {said.err.strip()[-200:]}")
    if os.listdir(place) and any(name.startswith(".run") for name in os.listdir(place)):
        faults.append("a hidden folder was left")
    return [f"{task}, {role}, {suffix}: {fault}" for fault in faults]


PARTS = (Part("malformed files", "one line and a documented exit code, or a whole run", 200, run),)
