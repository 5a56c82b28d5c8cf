"""Exercise `devices_needed`: over how many devices a state has to be cut until it leaves room for the rest."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake


def devices_needed(
    num_parameters,
    memory,
    share,
    *,
    state=lambda num_parameters: 16 * num_parameters,
    room=lambda memory, share: share * memory,
    whole=np.ceil,
):
    """Return the least number of devices, fully sharded, with which the state takes at most a share of each memory."""
    return np.asarray(whole(state(num_parameters) / room(memory, share)))


MISTAKES = [
    Mistake(
        "you count four bytes for each number of the model: its weight alone, or one byte for each of four numbers",
        "What does training keep beside a weight, and how many bytes has each of these numbers?",
        state=lambda num_parameters: 4 * num_parameters,
    ),
    Mistake(
        "you count eight bytes for each number of the model: weight and gradient alone, or two bytes for each of four",
        "How many numbers are kept for each weight, with Adam's running means, and how many bytes has each?",
        state=lambda num_parameters: 8 * num_parameters,
    ),
    Mistake(
        "you count twelve bytes for each number of the model: one of four is missing",
        "Weight, gradient, and how many moments?",
        state=lambda num_parameters: 12 * num_parameters,
    ),
    Mistake(
        "you fill the whole memory, and not a share of it",
        "Where would the activations lie?",
        room=lambda memory, share: memory,
    ),
    Mistake(
        "you take the rest of the memory for the state, and leave the share free",
        "Which of the two is share: what the state may take, or what stays free?",
        room=lambda memory, share: (1 - share) * memory,
    ),
    Mistake(
        "you multiply by the share, where you should divide by it",
        "In Python a / b * c is (a / b) * c. What should stand in brackets?",
        room=lambda memory, share: memory / share,
    ),
    Mistake(
        "you round down",
        "With that many devices, how much would each have to hold?",
        whole=np.floor,
    ),
    Mistake(
        "you round to the nearest whole number",
        "If it is 33.3 devices' worth of memory, are 33 enough?",
        whole=np.round,
    ),
    Mistake(
        "you always take one device more, also where the state divides exactly",
        "With 28 devices' worth of memory exactly, is the 29th needed?",
        whole=lambda devices: np.floor(devices) + 1,
    ),
    Mistake(
        "you do not round",
        "What is a third of a device?",
        whole=lambda devices: devices,
    ),
    Mistake(
        "you take the next power of two",
        "That is how many one might buy. How many are enough?",
        whole=lambda devices: 2 ** np.ceil(np.log2(devices)),
    ),
    Mistake(
        "you take the power of two below",
        "Do these devices hold the state?",
        whole=lambda devices: 2 ** np.floor(np.log2(devices)),
    ),
]


def _case(name, billions, gigabytes, share, is_edge=False):
    return Case(name, {"num_parameters": billions * 10**9, "memory": gigabytes * 10**9, "share": share}, is_edge)


EXERCISE = Exercise(
    devices_needed,
    MISTAKES,
    cases=[
        _case("405 billion numbers", 405, 141, 0.4),
        _case("70 billion numbers", 70, 96, 0.35),
        _case("a state that divides exactly", 70, 80, 0.5),
        _case("a model that fits on one device", 1, 80, 0.75, is_edge=True),
    ],
    examples=[_case("", 70, 96, 0.35).inputs, _case("", 70, 80, 0.5).inputs, _case("", 405, 141, 0.4).inputs],
    result="()",
    tried_on="models of 1 to 405 billion numbers",
)
