"""Fetching: only what was asked for, only what it should be, whole or not at all."""

from __future__ import annotations

import pytest

from unrolled.errors import DataError, FileError, UnknownNameError, UsageError
from unrolled.lab.data.collection import fetch as fetching
from unrolled.lab.data.collection.fetch import fetch_dataset

TEXT = b"first line\nsecond line\n"


def fetched(name, manifest, folder):
    reports = []
    lines = list(fetch_dataset(name, manifest, folder, lambda *report: reports.append(report)))
    return lines, reports


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_file_comes_to_its_place_with_its_progress(tmp_path, server, manifest):
    lines, reports = fetched("book", manifest, tmp_path / "new folder")
    path = tmp_path / "new folder" / "books" / "text.txt"
    assert path.read_bytes() == TEXT
    assert lines == [f"{path}: downloaded, sha256 correct"]
    assert reports[-1] == (f"{server.address}/text", len(TEXT), len(TEXT))
    assert files(tmp_path) == ["new folder/books/text.txt"]
    ((_, agent),) = server.asked
    assert agent.startswith("unrolled/")
    (tmp_path / "written").touch()
    assert path.stat().st_mode == (tmp_path / "written").stat().st_mode  # as readable as any file of the user's


def test_what_is_there_is_checked_and_not_fetched_again(tmp_path, server, manifest):
    fetched("book", manifest, tmp_path)
    lines, _ = fetched("book", manifest, tmp_path)
    assert lines[0].endswith("text.txt: sha256 correct; not downloaded again")
    assert len(server.asked) == 1
    (tmp_path / "books" / "text.txt").write_bytes(b"touched")
    with pytest.raises(DataError, match=r"text\.txt: expected 23 bytes with the sha256 .*, found 7 with"):
        fetched("book", manifest, tmp_path)
    assert (tmp_path / "books" / "text.txt").read_bytes() == b"touched"


def test_an_archive_is_fetched_once_and_nothing_stays_of_it(tmp_path, server, manifest):
    fetched("sets", manifest, tmp_path)
    assert files(tmp_path) == ["sets/a.txt", "sets/b.txt", "sets/unknown.txt"]
    assert (tmp_path / "sets" / "a.txt").read_bytes() == b"a\n" * 100_000
    assert [path for path, _ in server.asked] == ["/archive.zip"]


@pytest.mark.parametrize("name", ["book", "sets"])
@pytest.mark.parametrize("content", [b"", b"something else", b"x" * 10**6], ids=["empty", "short", "long"])
def test_what_is_something_else_is_not_kept(tmp_path, server, manifest, name, content):
    server.answers.update({"/text": content, "/archive.zip": content})
    with pytest.raises(
        DataError, match=rf"expected the sha256 .*, found .* in {len(content):,} bytes; nothing was kept"
    ):
        fetched(name, manifest, tmp_path)
    assert files(tmp_path) == []


def test_a_right_archive_with_wrong_files_is_not_kept(tmp_path, manifest):
    wrong = manifest.files["sets/a.txt"].model_copy(update={"sha256": "0" * 64})
    other = manifest.model_copy(update={"files": {**manifest.files, "sets/a.txt": wrong}})
    with pytest.raises(DataError, match="expected 200,000 bytes with the sha256 000000000000"):
        fetched("sets", other, tmp_path)
    missing = manifest.files["sets/a.txt"].model_copy(update={"member": "inner/c.txt"})
    other = manifest.model_copy(update={"files": {**manifest.files, "sets/a.txt": missing}})
    with pytest.raises(DataError, match=r"sets\.zip: expected inner/c\.txt in it"):
        fetched("sets", other, tmp_path)
    assert files(tmp_path) == []


def test_a_connection_that_ends_early_is_no_file(tmp_path, server, manifest):
    server.missing = 100
    with pytest.raises(FileError, match=r"/text: cannot be downloaded: .*"):
        fetched("book", manifest, tmp_path)
    assert files(tmp_path) == []


def test_more_than_there_may_be_is_not_read_to_its_end(tmp_path, manifest, monkeypatch):
    monkeypatch.setattr(fetching, "_MOST", 10)
    with pytest.raises(DataError, match="expected at most 10 bytes, found more; nothing was kept"):
        fetched("book", manifest, tmp_path)
    assert files(tmp_path) == []


def test_an_address_that_does_not_answer_is_said(tmp_path, server, manifest):
    del server.answers["/text"]
    with pytest.raises(FileError, match=r"/text: cannot be downloaded: 404 Not Found"):
        fetched("book", manifest, tmp_path)
    server.answers["/text"] = "http://127.0.0.1:9/text"  # nobody is there
    with pytest.raises(FileError, match=r"/text: cannot be downloaded: .*refused"):
        fetched("book", manifest, tmp_path)
    assert files(tmp_path) == []


def test_a_redirection_is_followed_but_never_out_of_encryption(tmp_path, server, manifest, monkeypatch):
    server.answers["/elsewhere"] = server.answers["/text"]
    server.answers["/text"] = f"{server.address}/elsewhere"
    fetched("book", manifest, tmp_path)
    for target in ("ftp://127.0.0.1/text", "file:///etc/hostname"):
        (tmp_path / "books" / "text.txt").unlink(missing_ok=True)
        server.answers["/text"] = target
        with pytest.raises(FileError, match=r"not downloaded; expected an address that begins with https://"):
            fetched("book", manifest, tmp_path)
    asked = len(server.asked)
    monkeypatch.setattr(fetching, "_SCHEMES", ("https",))
    with pytest.raises(FileError, match=r"http://127.*: not downloaded; expected an address that begins with https://"):
        fetched("book", manifest, tmp_path)
    assert len(server.asked) == asked  # not even asked
    assert files(tmp_path) == []


def test_what_is_not_ours_to_fetch_says_on_what_terms_it_is_and_where_to_ask(tmp_path, server, manifest):
    with pytest.raises(UsageError) as caught:
        fetched("wikiqa", manifest, tmp_path)
    for words in (
        "its licence does not permit it",
        "not to be redistributed",
        "https://example.org/ask",
        "closed/text.txt",
    ):
        assert words in str(caught.value)
    assert server.asked == []


def test_what_is_generated_needs_no_fetching_and_what_is_unknown_is_said(tmp_path, manifest):
    assert fetched("negation", manifest, tmp_path)[0] == ["negation: generated, there is nothing to download"]
    with pytest.raises(UnknownNameError, match="did you mean 'book'"):
        fetched("books", manifest, tmp_path)


def test_a_folder_that_cannot_be_written_is_said(tmp_path, manifest):
    (tmp_path / "books").write_text("a file where a folder should be")
    with pytest.raises(FileError, match=r"text\.txt: cannot be written"):
        fetched("book", manifest, tmp_path)
