"""Notes by tensor agree with PyTorch's weak dictionary, keep nothing alive, and end with their tensors."""

import gc
import random
import weakref

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from unrolled.held_forward.tensor_facts.tensor_notes import TensorNotes


def _tensor():
    return torch.zeros(2, device="cpu")


def test_they_agree_with_pytorchs_dictionary_while_tensors_come_and_go():
    draw, alive = random.Random(0), [_tensor() for _ in range(5)]
    ours, theirs = TensorNotes(), WeakTensorKeyDictionary()
    met = set()
    for step in range(4000):
        chosen = draw.choice(alive)
        match draw.randrange(5):
            case 0:
                ours[chosen] = theirs[chosen] = step
            case 1:
                assert ours.pop(chosen, None) == theirs.pop(chosen, None)
            case 2:  # a new tensor may have the id of one that is gone
                alive = [each for each in alive if each is not chosen]
                del chosen
                alive.append(_tensor())
                met.add(id(alive[-1]))
            case _:
                assert (chosen in ours, ours.get(chosen, -1)) == (chosen in theirs, theirs.get(chosen, -1))
        assert len(ours) == len(theirs)
        assert {id(each): ours[each] for each in ours} == {id(each): theirs[each] for each in theirs}
    assert len(met) < 400  # of about 800 tensors: ids did come again


def test_equal_tensors_have_notes_of_their_own():
    one, same = _tensor(), _tensor()
    notes = TensorNotes()
    notes[one] = "one"
    assert same not in notes
    assert notes.get(same) is None
    assert one.view(2) not in notes


def test_a_tensor_that_only_autograd_holds_keeps_its_note():
    weight = torch.ones(2, device="cpu", requires_grad=True)
    factor = torch.full((2,), 3.0, device="cpu")
    notes = TensorNotes()
    notes[factor] = "factor"
    product = weight * factor
    del factor
    gc.collect()
    assert len(notes) == 1
    (found,) = notes
    assert torch.equal(found, torch.full((2,), 3.0, device="cpu"))
    assert notes[found] == "factor"
    del found, product
    gc.collect()
    assert len(notes) == 0


def test_notes_keep_neither_their_tensors_nor_themselves():
    tensor, value = _tensor(), _tensor()
    notes, gone = TensorNotes(), weakref.ref(value)
    notes[tensor] = value
    del value
    assert gone() is not None
    gc.disable()  # what ends does so without the search for cycles
    try:
        del notes
        assert gone() is None
    finally:
        gc.enable()
    del tensor


def test_a_note_ends_with_its_tensor_at_once():
    tensor, value = _tensor(), _tensor()
    notes, gone = TensorNotes(), weakref.ref(value)
    notes[tensor] = value
    del value
    gc.disable()
    try:
        del tensor
        assert gone() is None
    finally:
        gc.enable()
    assert not list(notes)
