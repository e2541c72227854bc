from __future__ import annotations

import pytest

from unrolled.errors import ConfigError, FileError, UsageError
from unrolled.lab.cli.settings_file import read_settings

KNOWN = ("encoder", "hidden", "lr", "word_dropout", "options")


def written(tmp_path, text):
    path = tmp_path / "run.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_keys_values_and_their_lines_are_read(tmp_path):
    text = "# mine\nencoder: mmlstm\nhidden: 64\nlr: 0.01\nword-dropout: 0.2\noptions: {choices: 8}\n"
    found = read_settings(written(tmp_path, text))
    found.check(KNOWN)
    assert found.values == {
        "encoder": "mmlstm",
        "hidden": 64,
        "lr": 0.01,
        "word_dropout": 0.2,
        "options": {"choices": 8},
    }
    assert found.lines == {"encoder": 2, "hidden": 3, "lr": 4, "word_dropout": 5, "options": 6}


def test_a_byte_order_mark_and_crlf_are_no_part_of_it(tmp_path):
    assert read_settings(written(tmp_path, b"\xef\xbb\xbfhidden: 3\r\nlr: 1.0\r\n")).values == {"hidden": 3, "lr": 1.0}


BOMB = "a: &a [x, x]\n" + "\n".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [*{chr(97 + i)}, *{chr(97 + i)}]" for i in range(24)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; write key: value lines"),
        ("- hidden\n- 3\n", "run.yaml:1: expected key: value lines"),
        ("hidden: 3\nhidden: 4\n", "run.yaml:2: hidden is already set in line 1; remove one line"),
        ("hidden: [3\nlr: 1\n", "run.yaml:2: expected YAML"),
        ("hidden:\t3\n\tlr: 2\n", "run.yaml:1: expected YAML"),
        (BOMB, r"run.yaml:2: expected plain values, found the alias \*a"),
        (
            "hidden: !!python/object/apply:os.system ['true']\n",
            "run.yaml:1: expected YAML; could not determine a constr",
        ),
        (b"hidden: \xff\n", "byte 8 is not valid UTF-8; save the file as UTF-8"),
        ("hidden: 3\x00\n", "expected YAML"),
        ("x: 1\n" * 25_000, "has 125,000 bytes; a settings file may have at most 100,000"),
        ("[" * 5000, "run.yaml:1: expected plain values, found brackets or indents more than 20 deep"),
        ("a: 1\nb: " + "{x: " * 5000, "run.yaml:2: expected plain values, found brackets or indents more than 20 deep"),
        ("a: 1\nb:\n" + "- " * 5000, "run.yaml:3: expected plain values, found brackets or indents more than 20"),
        ("\n".join(" " * i + "x:" for i in range(400)), "run.yaml:21: expected plain values, found brackets or inden"),
        ("hidden: 3\nseed: 2024-99-99\n", "run.yaml:2: expected a plain value, found '2024-99-99', which cannot be re"),
        ("seed: !!timestamp x\n", "run.yaml:1: expected a plain value, found 'x', which cannot be read as timestamp"),
        ("lr: !!int abc\n", "run.yaml:1: expected a plain value, found 'abc', which cannot be read as int"),
        ("lr: !!bool abc\n", "run.yaml:1: expected a plain value, found 'abc', which cannot be read as bool"),
        ("lr: !!float ''\n", "run.yaml:1: expected a plain value, found '', which cannot be read as float"),
        ("lr: !!seq abc\n", "run.yaml:1: expected YAML; expected a sequence node"),
        ("options:\n  a: 1\n  b: [" + "9" * 5000 + "]\n", "run.yaml:3: expected a plain value, found '9{39}…', which"),
        ("lr: 1.0\nseed: 010\n", "run.yaml:2: found 010, which YAML reads as 8; write 8, or put it in quotes"),
        ("options: {choices: -0_17}\n", "run.yaml:1: found -0_17, which YAML reads as -15; write -15"),
        ("epochs: 1:30\n", "run.yaml:1: found 1:30, which YAML reads as 90; write 90"),
        ("lr: 1:30.5\n", r"run.yaml:1: found 1:30\.5, which YAML reads as 90\.5; write"),
        ("!!int x: 1\n", "run.yaml:1: expected a plain value, found 'x', which cannot be read as int"),
    ],
)
def test_what_is_no_settings_file_is_refused_in_one_line(tmp_path, text, message):
    with pytest.raises(ConfigError, match=message) as caught:
        read_settings(written(tmp_path, text))
    assert caught.value.exit_code == 78


def test_zeros_and_other_forms_of_a_number_are_what_they_look_like(tmp_path):
    text = "a: 0\nb: 00\nc: 0.10\nd: 1_000\ne: 0x1F\nf: '010'\ng: data:v1\nh: 100\ni: 0.5\nj: '1:30'\nk: -0\nl: 0.017\n"
    found = read_settings(written(tmp_path, text)).values
    assert list(found.values()) == [0, 0, 0.1, 1000, 31, "010", "data:v1", 100, 0.5, "1:30", 0, 0.017]


def test_an_unknown_key_is_answered_with_its_line_and_the_nearest(tmp_path):
    found = read_settings(written(tmp_path, "encoder: gru\nhiden: 3\n"))
    with pytest.raises(ConfigError, match=r"run.yaml:2: unknown setting 'hiden'; did you mean 'hidden'\?"):
        found.check(KNOWN)


def test_what_other_libraries_call_a_setting_is_answered_with_its_name_here(tmp_path):
    found = read_settings(written(tmp_path, "learning-rate: 0.1\n"))
    with pytest.raises(ConfigError, match=r"run.yaml:1: unknown setting 'learning_rate'; did you mean 'lr'\?"):
        found.check(KNOWN)
    with pytest.raises(ConfigError, match=r"unknown setting 'learning_rate'; expected one of: hidden"):
        found.check(["hidden"])


def test_a_wrong_value_is_blamed_on_its_line(tmp_path):
    found = read_settings(written(tmp_path, "encoder: gru\nhidden: many\n"))
    error = found.locate(UsageError("hidden is 'many'; expected a valid integer"))
    assert str(error).endswith("run.yaml:2: hidden is 'many'; expected a valid integer")


def test_a_key_that_begins_another_is_not_blamed_for_it(tmp_path):
    found = read_settings(written(tmp_path, "dev: mine.tsv\ndevice: tpu\n"))
    assert ":2: device is 'tpu'" in str(found.locate(UsageError("device is 'tpu'; expected cpu")))
    assert ":1: dev is" in str(found.locate(UsageError("dev is 3; expected files")))


@pytest.mark.parametrize("brackets", ["[]", ("{x: ", "}")])
def test_values_may_be_nested_twenty_deep(tmp_path, brackets):
    begin, end = brackets
    found = read_settings(written(tmp_path, "x: " + begin * 19 + end * 19))
    assert str(found.values["x"]).count(begin[0]) == 19
    with pytest.raises(ConfigError, match="more than 20 deep"):
        read_settings(written(tmp_path, "x: " + begin * 20 + end * 20))


def test_a_missing_file_is_a_file_error(tmp_path):
    with pytest.raises(FileError, match=r"none\.yaml: cannot be read: No such file"):
        read_settings(tmp_path / "none.yaml")
