"""Answer selection as a task: a made-up rule is learned, from words alone or from what is shared."""

from __future__ import annotations

import json
import math
import random

import pytest
import torch

import unrolled
from unrolled.errors import DataError, UnknownNameError, UsageError
from unrolled.lab.data.corpus import Candidate, Question, Selection
from unrolled.lab.tasks.rank import Rank, RankSettings

ASKED = {"who": "ann", "where": "rome", "when": "noon"}
FILLERS = ("it", "was", "so", "they", "say")


def told(count: int, seed: int) -> tuple[Question, ...]:
    """The answer has the word that belongs to the question's; no word is shared."""
    draw = random.Random(seed)
    questions = []
    for _ in range(count):
        asked = draw.choice(tuple(ASKED))
        wrong = [word for word in ASKED.values() if word != ASKED[asked]]
        told = [ASKED[asked], *draw.choices(wrong, k=draw.randint(1, 4))]
        draw.shuffle(told)
        texts = [(*draw.choices(FILLERS, k=draw.randint(0, 3)), word, draw.choice(FILLERS)) for word in told]
        candidates = tuple(Candidate(text, ASKED[asked] in text) for text in texts)
        questions.append(Question((asked, "then", "?")[: draw.randint(1, 3)], candidates))
    return tuple(questions)


def shared(count: int, seed: int) -> tuple[Question, ...]:
    """The answer has the name of the question in it; names are new every time."""
    draw = random.Random(seed)
    questions = []
    for number in range(count):
        name = f"name{seed}-{number}"
        names = (name, f"other{seed}-{number}", f"third{seed}-{number}", f"last{seed}-{number}")
        texts = [(draw.choice(FILLERS), word, draw.choice(FILLERS)) for word in names]
        draw.shuffle(texts)
        candidates = tuple(Candidate(text, name in text) for text in texts)
        questions.append(Question(("who", "is", name), candidates))
    return tuple(questions)


def corpus_of(make) -> Selection:
    return Selection(name="told", train=make(150, 0), dev=make(40, 1), test=make(40, 2))


@pytest.fixture(scope="module")
def corpus() -> Selection:
    return corpus_of(told)


def task_of(corpus: Selection, **architecture) -> Rank:
    chosen = {"hidden": 8, "embedding": 8, "dropout": 0.0, "word_dropout": 0.0} | architecture
    return Rank.from_corpus(corpus, RankSettings(**chosen))


def built(task: Rank):
    torch.manual_seed(0)
    return task.build()


def test_words_of_a_ranker_by_matrix_products_start_at_the_identity(corpus):
    sizes = {"hidden": 16, "embedding": 16}
    products, others = (built(task_of(corpus, encoder=name, **sizes)).embedding.weight for name in ("mm", "gru"))
    identity = torch.eye(4).flatten()
    assert (products - identity).abs().max() < 0.2
    assert (others - identity).abs().max() > 0.8  # control


def learned(task: Rank, corpus: Selection, epochs: int = 6):
    model, split = built(task), task.encode(corpus.train)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    order = torch.Generator().manual_seed(0)
    for _ in range(epochs):
        for which in split.plan(8, order):
            loss = task.loss(model, split.select(which), ())
            optimiser.zero_grad()
            (loss.total / loss.count).backward()
            optimiser.step()
    return model.eval()


@torch.no_grad()
def judged(task: Rank, model, questions, size=8):
    split = task.encode(questions)
    return task.compute_metrics(model.eval(), [split.select(which) for which in split.plan(size)])


@pytest.mark.parametrize(
    "switches",
    [
        {},
        pytest.param({"overlap": False}, marks=pytest.mark.slow),
        pytest.param({"encoder": "mlstm", "pooling": "last"}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_rule_about_words_is_learned_and_without_training_it_is_not(corpus, switches):
    task = task_of(corpus, **switches)
    before, after = judged(task, built(task), corpus.dev), judged(task, learned(task, corpus), corpus.dev)
    assert before["mrr"] < 0.8 < 0.95 < after["mrr"]
    assert after["loss"] < 0.3 < before["loss"]


@pytest.mark.slow
def test_names_that_nobody_knows_are_found_by_what_is_shared_alone():
    corpus = corpus_of(shared)
    found = {}
    for overlap in (True, False):
        task = task_of(corpus, overlap=overlap, word_dropout=0.5)  # training names are not to be learned by heart
        found[overlap] = judged(task, learned(task, corpus, 8), corpus.dev)["mrr"]
    assert found[False] < 0.9 < 0.99 < found[True]


def test_the_switch_takes_the_counts_away_and_nothing_else(corpus):
    with_counts, without = (built(task_of(corpus, overlap=overlap)).state_dict() for overlap in (True, False))
    assert with_counts.keys() - without.keys() == {"overlap.weight"}
    assert all(with_counts[name].shape == value.shape for name, value in without.items())


def test_the_loss_is_the_cross_entropy_of_the_right_ones_one_question_at_a_time(corpus):
    task = task_of(corpus)
    model = built(task).double().eval()
    split = task.encode(corpus.dev[:5])
    batch = split.select(torch.arange(5))
    batch = type(batch)(**{**vars(batch), "shared": batch.shared.double()})
    total = 0.0
    for question in corpus.dev[:5]:
        scores = []
        for candidate in question.candidates:
            asked, read = (
                model.read(torch.tensor([task.vocabulary.encode(tokens)]))
                for tokens in (question.tokens, candidate.tokens)
            )
            counts = torch.tensor(
                [task.overlap.features(question.tokens, candidate.tokens)], dtype=torch.float32
            ).double()
            scores.append(model.score(asked, read, counts).item())
        whole = math.log(sum(math.exp(score) for score in scores))
        right = [whole - score for score, each in zip(scores, question.candidates, strict=True) if each.right]
        total += sum(right) / len(right)
    loss = task.loss(model, batch, ())
    assert loss.count == 5
    assert loss.total.item() == pytest.approx(total, abs=1e-9)


def test_nothing_hangs_on_how_batches_are_cut(corpus):
    task = task_of(corpus)
    model = learned(task, corpus, 1)
    one, other = (judged(task, model, corpus.dev, size) for size in (1, 40))
    assert one == pytest.approx(other, abs=1e-5)


def test_the_parts_of_a_batch_cost_together_what_it_costs(corpus):
    task = task_of(corpus)
    model = built(task)
    batch = task.encode(corpus.dev).select(torch.arange(9))
    parts = [task.loss(model, batch.share(rank, 2), ()) for rank in range(2)]
    whole = task.loss(model, batch, ())
    assert whole.count == sum(part.count for part in parts) == 9
    assert whole.total.item() == pytest.approx(sum(part.total.item() for part in parts), abs=1e-4)


def test_questions_without_an_answer_are_left_out(corpus):
    task = task_of(corpus)
    nobody = Question(("who",), (Candidate(("it",), False),))
    assert len(task.encode((nobody, *corpus.dev, nobody))) == len(corpus.dev)
    model = built(task)
    assert judged(task, model, (nobody, *corpus.dev)) == judged(task, model, corpus.dev)


def test_their_words_are_learned_all_the_same():
    nobody = Question(("wherefore",), (Candidate(("alas",), False),))
    somebody = Question(("who",), (Candidate(("ann",), True),))
    task = task_of(Selection(name="told", train=(nobody, somebody), dev=(somebody,), test=(somebody,)))
    assert set(task.vocabulary.words[2:]) == {"wherefore", "alas", "who", "ann"}
    assert task.overlap.sentences == 2


def test_every_question_is_in_one_batch(corpus):
    split = task_of(corpus).encode(corpus.train)
    plain, drawn = split.plan(8), split.plan(8, torch.Generator().manual_seed(0))
    for plan in (plain, drawn):
        assert sorted(torch.cat(list(plan)).tolist()) == list(range(150))
        assert max(map(len, plan)) == 8
    assert torch.cat(plain).tolist() == list(range(150)) != torch.cat(drawn).tolist()


def test_a_batch_holds_what_was_said(corpus):
    task = task_of(corpus)
    chosen = corpus.dev[:3]
    batch = task.encode(chosen).select(torch.tensor([2, 0]))
    for row, question in enumerate((chosen[2], chosen[0])):
        assert batch.questions[row, : batch.lengths[row]].tolist() == task.vocabulary.encode(question.tokens)
        assert not batch.questions[row, batch.lengths[row] :].any()
        assert (batch.sizes[row] > 0).sum() == len(question.candidates)
        for place, candidate in enumerate(question.candidates):
            words = batch.candidates[row, place, : batch.sizes[row, place]]
            assert words.tolist() == task.vocabulary.encode(candidate.tokens)
            assert batch.right[row, place] == candidate.right
            expected = torch.tensor(task.overlap.features(question.tokens, candidate.tokens))
            assert torch.equal(batch.shared[row, place], expected)


def test_fields_make_the_same_task_again(corpus):
    task = task_of(corpus)
    again = Rank.from_record(json.loads(json.dumps(task.to_record())), task.architecture)
    assert (again.vocabulary, again.overlap) == (task.vocabulary, task.overlap)
    assert judged(task, built(task), corpus.dev[:5]) == judged(again, built(again), corpus.dev[:5])


@pytest.mark.parametrize(
    ("change", "message"),
    [({"vocabulary": {}}, "not a vocabulary;"), ({"overlap": {"sentences": 1}}, 'expected "sentences" and')],
)
def test_fields_that_were_touched_are_refused(corpus, change, message):
    task = task_of(corpus)
    with pytest.raises(DataError, match=message):
        Rank.from_record({**task.to_record(), **change}, task.architecture)


RIGHT = Candidate(("ann",), True)


@pytest.mark.parametrize(
    ("questions", "message"),
    [
        ([], "none of 0 questions has a right candidate"),
        ([Question(("who",), (Candidate(("it",), False),))], "none of 1 questions has a right candidate"),
        ([Question(("who",), (RIGHT,)), Question((), (RIGHT,))], "question 2 of 2 is empty"),
        ([Question(("who",), (RIGHT,))] * 3, "none of the 3 questions with a right candidate has a wrong one too"),
        ([Question(("who",), (RIGHT, Candidate((), False)))], "question 1 of 1 has an empty candidate"),
    ],
)
def test_splits_that_teach_nothing_are_refused(corpus, questions, message):
    with pytest.raises(DataError, match=message):
        task_of(corpus).encode(questions)


def test_settings_are_checked():
    with pytest.raises(UnknownNameError, match="did you mean 'overlap'"):
        RankSettings(overlaps=True)


@pytest.mark.parametrize("overlap", [True, False])
def test_the_score_of_a_pair_opens(corpus, overlap):
    task = task_of(corpus, overlap=overlap)
    model = learned(task, corpus, 3)
    question, sentence = ("who", "then"), ("It", "was", "ann", "nowhere")
    reading = task.prepare(model, "who then ||| It was ann nowhere")
    assert (reading.tokens, reading.unknown, reading.outputs) == (sentence, ("nowhere",), ("score",))
    split = task.encode([Question(question, (Candidate(sentence, True), Candidate(("it",), False)))])
    batch = split.select(torch.tensor([0]))
    shared = batch.shared if overlap else None
    expected = model(batch.questions, batch.lengths, batch.candidates, batch.sizes, shared)[0, 0].item()
    found = unrolled.explain(reading.model, *reading.inputs, tokens=reading.tokens, rnn=reading.rnn)
    assert found.ledger.logit == pytest.approx(expected, abs=1e-5)
    assert abs(found.ledger.remainder) < 1e-4 < 0.01 < abs(found.ledger.ngrams)


@pytest.mark.parametrize("text", ["", "who", "who |||", "||| ann", "who ||| ann ||| it"])
def test_a_text_that_is_no_pair_is_refused(corpus, text):
    task = task_of(corpus)
    with pytest.raises(UsageError, match=r"the text does not have the form: question \|\|\| sentence"):
        task.prepare(built(task), text)


def test_a_pair_has_no_positions(corpus):
    task = task_of(corpus)
    with pytest.raises(UsageError, match="at is 1, but the task rank has one output"):
        task.prepare(built(task), "who ||| ann", 1)
