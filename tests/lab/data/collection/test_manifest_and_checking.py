"""The manifest knows every dataset, and checking finds what differs."""

from __future__ import annotations

import gzip
import hashlib
import inspect
import lzma
from importlib.resources import files

import pytest

from unrolled.errors import DataError, FileError, UnknownNameError, UsageError
from unrolled.lab.data.collection.manifest import (
    DataFile,
    Manifest,
    check_dataset,
    check_file,
    is_complete,
    read_manifest,
)
from unrolled.lab.data.datasets import DATASETS

TEXT = b"some text\n"
KNOWN = DataFile(bytes=len(TEXT), sha256=hashlib.sha256(TEXT).hexdigest())


@pytest.mark.parametrize("name", DATASETS.names())
def test_a_dataset_that_reads_files_is_in_the_manifest_and_any_other_needs_no_folder(name, monkeypatch):
    source = read_manifest().source(name)
    if source.files:
        assert source.counts is not None, f"write the counts of the splits into [sources.{name}] of manifest.toml"
        assert "folder" in inspect.signature(DATASETS.get(name).read).parameters
    else:
        monkeypatch.delenv("UNROLLED_DATA", raising=False)
        assert isinstance(read_without_folder(name), DATASETS.get(name).kind)


def read_without_folder(name):
    try:
        return DATASETS.get(name)().read()
    except UsageError as error:
        pytest.fail(
            f"list the files of {name} in src/unrolled/lab/data/collection/manifest.toml, or generate it: {error}"
        )


def test_a_dataset_whose_files_the_manifest_lacks_is_sent_to_it(monkeypatch):
    monkeypatch.delenv("UNROLLED_DATA", raising=False)
    with pytest.raises(
        pytest.fail.Exception, match=r"list the files of uci-yelp in \S+/manifest\.toml, or generate it"
    ):
        read_without_folder("uci-yelp")
    assert len(read_without_folder("negation").test) == 200  # the control: it is generated


def test_the_generated_datasets_have_no_files():
    manifest = read_manifest()
    assert {"dyck", "negation", "python"} <= {name for name in DATASETS.names() if not manifest.source(name).files}


def test_the_manifest_speaks_of_known_files_and_known_datasets_alone():
    manifest = read_manifest()
    assert set(manifest.sources) - set(DATASETS.names()) == {"glove"}
    used = {path for source in manifest.sources.values() for path in source.files}
    assert used == set(manifest.files)
    assert {file.archive for file in manifest.files.values()} - {None} == set(manifest.archives)
    for file in manifest.files.values():
        assert (file.archive is None) is (file.member is None)
        assert file.sha256 is not None or manifest.archives[file.archive].sha256


def test_only_what_is_openly_licensed_is_fetched_and_by_https_alone():
    manifest = read_manifest()
    openly = {
        name
        for name, source in manifest.sources.items()
        if source.files and all(manifest.files[p].downloadable for p in source.files)
    }
    assert openly >= {
        "tinyshakespeare", "uci-amazon", "uci-imdb", "uci-yelp", "war_and_peace", "wikitext103", "wikitext2",
    }  # fmt: skip
    for name in openly:
        assert DATASETS.get(name).licence in {"public domain", "CC BY 4.0", "CC BY-SA 3.0"}, (
            f"{name} has addresses: leave them out, or add its licence here if it allows copies"
        )
    for name, source in manifest.sources.items():
        assert name in openly or not source.files or source.request_url, (
            f"files of {name} have no address: write into its request_url where they are asked for"
        )
    addresses = [each.address for each in (*manifest.files.values(), *manifest.archives.values()) if each.address]
    assert all(address.startswith("https://") for address in addresses)


def test_the_manifest_is_in_the_package_and_an_unknown_key_in_it_is_refused():
    assert files("unrolled.lab.data.collection").joinpath("manifest.toml").is_file()
    with pytest.raises(UsageError, match="file"):
        Manifest(sources={"a": {"file": ["x"]}}, files={}, archives={})
    with pytest.raises(UsageError, match="sha256"):
        DataFile(sha256="short")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t", TEXT),
        ("t.xz", lzma.compress(TEXT)),
        ("t.xz", lzma.compress(TEXT, preset=0)),
        ("t.gz", gzip.compress(TEXT)),
    ],
    ids=["plain", "xz", "xz-preset-0", "gz"],
)
def test_a_text_is_right_however_it_is_packed(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    assert check_file(tmp_path / name, KNOWN) == f"{tmp_path / name}: sha256 correct"


def test_a_packed_file_that_is_known_need_not_be_unpacked(tmp_path):
    (tmp_path / "t.xz").write_bytes(b"not xz at all")
    known = KNOWN.model_copy(update={"compressed_sha256": hashlib.sha256(b"not xz at all").hexdigest()})
    assert check_file(tmp_path / "t.xz", known) == f"{tmp_path / 't.xz'}: sha256 correct"
    with pytest.raises(DataError, match=r"t\.xz: expected a whole \.xz file, found .*; download it again"):
        check_file(tmp_path / "t.xz", KNOWN)


@pytest.mark.parametrize(
    ("name", "content"),
    [("t", TEXT + b"!"), ("t", b""), ("t.xz", lzma.compress(TEXT[:-1])), ("t.gz", gzip.compress(b"x"))],
    ids=["longer", "empty", "xz-shorter", "gz-other"],
)
def test_a_text_that_differs_is_not(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(
        DataError, match=r"expected 10 bytes with the sha256 [0-9a-f]{12}…, found \d+ with [0-9a-f]{12}…"
    ):
        check_file(tmp_path / name, KNOWN)
    cut = tmp_path / "cut.xz"
    cut.write_bytes(lzma.compress(TEXT)[:-5])
    with pytest.raises(DataError, match=r"cut\.xz: expected a whole \.xz file"):
        check_file(cut, KNOWN)


def test_a_file_that_is_not_there_is_no_data_error(tmp_path):
    with pytest.raises(FileError, match="cannot be read"):
        check_file(tmp_path / "t", KNOWN)


def write_uci(folder, rows):
    (folder / "uci_sentiment").mkdir(exist_ok=True)
    content = "".join(f"sentence {number}\t{number % 2}\n" for number in range(rows)).encode()
    (folder / "uci_sentiment" / "yelp_labelled.txt").write_bytes(content)
    file = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    return {"uci_sentiment/yelp_labelled.txt": file}


def test_counts_are_compared_once_the_files_are_right(tmp_path):
    known = write_uci(tmp_path, 100)
    source = {"files": list(known), "counts": (80, 10, 10)}
    manifest = Manifest(sources={"uci-yelp": source}, files=known, archives={})
    assert is_complete(manifest.source("uci-yelp"), tmp_path)
    lines = list(check_dataset("uci-yelp", manifest, tmp_path))
    assert lines[-1] == "uci-yelp: 80 / 10 / 10 in train / dev / test, as expected"
    other = Manifest(sources={"uci-yelp": {**source, "counts": (81, 10, 9)}}, files=known, archives={})
    with pytest.raises(DataError, match=r"uci-yelp: expected 81 / 10 / 9 in train / dev / test, found 80 / 10 / 10"):
        list(check_dataset("uci-yelp", other, tmp_path))
    write_uci(tmp_path, 99)
    with pytest.raises(DataError, match=r"yelp_labelled\.txt: expected .* bytes with the sha256"):
        list(check_dataset("uci-yelp", manifest, tmp_path))


def test_what_is_missing_is_not_at_hand(tmp_path):
    source = read_manifest().source("wikiqa")
    assert not is_complete(source, tmp_path)
    assert is_complete(read_manifest().source("negation"), None)
    with pytest.raises(UnknownNameError, match="did you mean 'wikiqa'"):
        read_manifest().source("wikiq")


def test_what_is_generated_has_counts_too():
    assert list(check_dataset("negation", read_manifest(), None)) == [
        "negation: 4,120 / 200 / 200 in train / dev / test, as expected"
    ]
