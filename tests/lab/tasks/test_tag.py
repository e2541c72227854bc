from __future__ import annotations

import copy
import json
import random

import pytest
import torch

import unrolled
from unrolled.errors import DataError, UsageError
from unrolled.lab.data.corpus import TaggedSentence, Tagging
from unrolled.lab.data.formats import read_split
from unrolled.lab.data.vocabulary import Vocabulary
from unrolled.lab.tasks.tag import Tag, TagSettings

SMALL = {"embedding": 6, "hidden": 8, "dropout": 0.0, "word_dropout": 0.0}
PEOPLE, PLACES = ("Ada", "Alan", "Grace"), ("Paris", "Rome", "Oslo")


def sentences(count, seed):
    """A name of one or two words, a place or another name behind it: told by the word ``in`` alone."""
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        names = [draw.choice(PEOPLE) for _ in range(draw.randint(1, 2))]
        tags = ["S-PER"] if len(names) == 1 else ["B-PER", "E-PER"]
        there = draw.choice(PLACES)
        place = draw.random() < 0.5
        found.append(
            TaggedSentence(
                (*names, "slept", "in" if place else "beside", there), (*tags, "O", "O", "S-LOC" if place else "S-PER")
            )
        )
    return tuple(found)


CORPUS = Tagging(name="told", train=sentences(60, 0), dev=sentences(20, 1), test=sentences(20, 2), spans=True)
PARTS = Tagging(
    name="parts",
    spans=False,
    **{
        split: tuple(
            TaggedSentence(tokens, tags)
            for tokens, tags in ((("the", "cat", "ran"), ("DT", "NN", "VB")), (("cat",), ("NN",)))
        )
        for split in ("train", "dev", "test")
    },
)


def made(corpus=CORPUS, **parts):
    return Tag.from_corpus(corpus, TagSettings(**SMALL | parts))


@pytest.mark.parametrize("crf", [True, False])
def test_it_learns_who_and_where(learn, judge, crf):
    task = made(crf=crf)
    scores = judge(task, learn(task, CORPUS.train), CORPUS.test)
    assert scores["f1"] == scores["precision"] == scores["recall"] == scores["accuracy"] == 1.0
    torch.manual_seed(0)
    assert judge(task, task.build().eval(), CORPUS.test)["f1"] < 0.5


def test_of_untold_names_it_learns_but_the_tags_that_are_common(learn, judge):
    draw = random.Random(0)
    mixed = tuple(
        TaggedSentence(each.tokens, tuple(draw.choice(("O", "S-PER")) for _ in each.tags)) for each in CORPUS.train
    )
    task = made(Tagging(name="mixed", train=mixed, dev=mixed, test=mixed, spans=True))
    assert judge(task, learn(task, mixed), mixed)["accuracy"] < 0.8


@pytest.mark.parametrize("crf", [True, False])
def test_batches_and_their_order_change_nothing(learn, judge, cost, crf):
    task = made(crf=crf)
    model = learn(task, CORPUS.train, steps=3).double()
    whole = cost(task, model, CORPUS.dev, 20)
    assert whole == pytest.approx(cost(task, model, CORPUS.dev[::-1], 3))
    assert whole == pytest.approx(cost(task, model, CORPUS.dev, 1))
    assert judge(task, model, CORPUS.dev) == pytest.approx(judge(task, model, CORPUS.dev[::-1], 7))
    assert whole[1] == (20 if crf else sum(len(each.tokens) for each in CORPUS.dev))


def test_without_a_field_the_loss_is_the_cross_entropy_of_every_token(cost):
    task = made(crf=False, bidirectional=False, encoder="gru")
    torch.manual_seed(0)
    model = task.build().double().eval()
    total = 0.0
    for each in CORPUS.dev:
        words = torch.tensor([task.vocabulary.encode(each.tokens)])
        shapes = task.encode([each]).select(torch.tensor([0])).shapes
        vectors = torch.cat((model.embedding(words), model.shapes(shapes)), dim=-1)
        logs = model.head(model.encoder(vectors)[0])[0].log_softmax(-1)
        total -= sum(logs[t, task.tags.index(tag)].item() for t, tag in enumerate(each.tags))
    assert cost(task, model, CORPUS.dev, 20)[0] == pytest.approx(total)
    assert cost(made(), made().build().double(), CORPUS.dev, 20)[0] != pytest.approx(total)


@pytest.mark.parametrize("parts", [{}, {"crf": False}, {"shapes": 0}, {"encoder": "mvma_g", "bidirectional": False}])
def test_gradient_reaches_every_parameter(parts):
    task = made(**parts)
    model, split = task.build(), task.encode(CORPUS.train)
    task.loss(model, split.select(torch.arange(60)), ()).total.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name


def test_shapes_tell_what_lower_case_hides(learn, judge):
    words = tuple(
        TaggedSentence((word, "ran"), ("S-PER" if word[0].isupper() else "O", "O"))
        for word in ("bill", "Bill", "mark", "Mark")
    )
    corpus = Tagging(name="case", train=words, dev=words, test=words, spans=True)
    seeing, blind = made(corpus), made(corpus, shapes=0)
    assert judge(seeing, learn(seeing, words), words)["accuracy"] == 1.0
    assert judge(blind, learn(blind, words), words)["accuracy"] == 0.75


def test_tags_that_spell_nothing_are_judged_by_tokens_alone(learn, judge):
    task = made(PARTS)
    assert task.tags == ("DT", "NN", "VB")
    assert [each.name for each in task.metrics] == ["accuracy", "loss"]
    assert made().metrics[0].name == "f1"
    scores = judge(task, learn(task, PARTS.train), PARTS.test)
    assert set(scores) == {"accuracy", "loss"}
    assert scores["accuracy"] == 1.0


def test_a_field_never_says_what_is_no_entity():
    task = made()
    torch.manual_seed(3)
    model = task.build().eval()
    split = task.encode(CORPUS.dev)
    batch = split.select(torch.arange(20))
    with torch.no_grad():
        emissions = 5 * torch.randn(20, batch.tokens.shape[1], len(task.tags))
        inside = torch.arange(batch.tokens.shape[1]) < batch.lengths[:, None]
        said = model.output.decode(emissions, inside)
        free = emissions.argmax(-1).tolist()
    spelled = [TaggedSentence(each.tokens, tuple(task.tags[tag] for tag in tags)) for each, tags in _rows(said)]
    task.encode(spelled)  # refuses what is not well-formed, as it does the emissions' own best tags
    with pytest.raises(DataError):
        task.encode(
            [
                TaggedSentence(each.tokens, tuple(task.tags[tag] for tag in tags[: len(each.tokens)]))
                for each, tags in _rows(free)
            ]
        )


def _rows(said):
    return [(CORPUS.dev[i], tags) for i, tags in enumerate(said)]


def test_its_fields_make_the_same_task_again():
    for task in (made(), made(PARTS)):
        again = Tag.from_record(json.loads(json.dumps(task.to_record())), task.architecture)
        assert again.to_record() == task.to_record()
        assert (again.tags, again.spans, again.grammar, again.metrics) == (
            task.tags,
            task.spans,
            task.grammar,
            task.metrics,
        )
        again.build().load_state_dict(task.build().state_dict())


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("vocabulary", None, "not a vocabulary"),
        ("tags", "O", "tags is O; expected a list of names"),
        ("tags", ["O", "O"], "tags contains a name twice"),
        ("tags", ["O", "NN"], "'NN' is not a tag of IOBES"),
        ("spans", 1, "spans is 1; expected true or false"),
    ],
)
def test_fields_that_were_touched_are_refused(key, value, message):
    fields = copy.deepcopy(dict(made().to_record()))
    for wrong in ({**fields, key: value}, {name: each for name, each in fields.items() if name != key}):
        with pytest.raises(DataError, match=message if key in wrong else key):
            Tag.from_record(wrong, TagSettings(**SMALL))


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        (("S-GOD", "O"), "sentence 1 has the tag 'S-GOD', which no training sentence has; expected one of: O, B-LOC"),
        (("B-PER", "O"), "sentence 1, token 2, 'slept': expected I-PER or E-PER after B-PER, found 'O'"),
        (("O", "B-PER"), "sentence 1, token 2, 'slept': expected S-PER at a sentence's end"),
    ],
)
def test_tags_that_cannot_be_learned(tags, message):
    with pytest.raises(DataError, match=message):
        made().encode([TaggedSentence(("Ada", "slept"), tags)])


def test_a_type_that_training_knows_in_one_form_is_known_in_all():
    rome = TaggedSentence(("New", "Rome"), ("B-LOC", "E-LOC"))
    assert "E-LOC" not in {tag for each in CORPUS.train for tag in each.tags}
    assert made().encode([rome]).select(torch.tensor([0])).tags.tolist() == [[1, 3]]


def test_nothing_is_refused():
    with pytest.raises(DataError, match="no examples"):
        made().encode([])
    with pytest.raises(DataError, match="example 1 of 1 is empty"):
        made().encode([TaggedSentence((), ())])


def test_only_training_words_are_known():
    assert made().vocabulary == Vocabulary.from_texts([each.tokens for each in CORPUS.train], lowercase=True)


def test_what_it_says_of_one_token_is_accounted_for(learn):
    task = made()
    model = learn(task, CORPUS.train).double()
    reading = task.prepare(model, "Ada Lovelace slept in Rome", at=0)
    assert (reading.tokens, reading.unknown) == (("Ada", "Lovelace", "slept", "in", "Rome"), ("Lovelace",))
    assert reading.outputs == task.tags
    logits = reading.model(*reading.inputs)
    assert logits.shape == (1, len(task.tags))
    found = unrolled.explain(reading.model, *reading.inputs, target=task.tags.index("B-PER"), tokens=reading.tokens)
    assert abs(found.ledger.remainder) < 1e-6
    assert found.ledger.logit == pytest.approx(logits[0, task.tags.index("B-PER")].item())
    last = task.prepare(model, "Ada Lovelace slept in Rome")
    assert torch.equal(
        last.model(*last.inputs), task.prepare(model, "Ada Lovelace slept in Rome", at=4).model(*last.inputs)
    )
    for text, at, message in (("", None, "the sentence is empty"), ("Ada slept", 2, "at is 2; expected 0 to 1")):
        with pytest.raises(UsageError, match=message):
            task.prepare(model, text, at)


@pytest.mark.parametrize("crf", [True, False])
def test_sentences_have_the_same_tags_alone_and_beside_longer_ones(learn, crf):
    task = made(crf=crf)
    model = learn(task, CORPUS.train).eval()
    found = task.tag(model, [each.tokens for each in CORPUS.test])
    assert found == [each.tags for each in CORPUS.test]
    assert found == [task.tag(model, [each.tokens])[0] for each in CORPUS.test]
    assert task.tag(model, []) == []


def test_a_sentence_without_tokens_and_one_that_is_not_split_are_refused():
    task = made()
    model = task.build().eval()
    with pytest.raises(UsageError, match=r"sentences\[1\] has no token; leave it out"):
        task.tag(model, [["Ada"], []])
    with pytest.raises(UsageError, match=r"sentences\[0\] is the string 'Ada slept'; expected a list of its tokens"):
        task.tag(model, ["Ada slept"])


def test_the_labels_that_it_knows_are_types_of_spans_or_tags():
    assert made().known_labels == ("LOC", "PER")
    assert made(PARTS).known_labels == ("DT", "NN", "VB")


def test_a_tagger_of_plain_tags_knows_a_sentence_whose_tags_alone_spell_spans(tmp_path):
    tagged = tuple(TaggedSentence(("a", "b"), tags) for tags in (("B-1", "NN"), ("I-1", "VB")))
    task = made(Tagging(name="mixed", train=tagged, dev=tagged, test=tagged, spans=False))
    path = tmp_path / "new.conll"
    path.write_text("a B-1\nb I-1\n\na B-1\nb NN\n")
    examples, _ = read_split(task.kind, [path], task.known_labels)
    assert [example.tags for example in examples] == [("B-1", "I-1"), ("B-1", "NN")]
    assert len(task.encode(examples)) == 2
    path.write_text("a B-2\nb I-2\n\na B-1\nb NN\n")  # control: a type that no training sentence has
    with pytest.raises(DataError, match=r"new.conll:1: expected a label that training examples have, found '2'"):
        read_split(task.kind, [path], task.known_labels)
