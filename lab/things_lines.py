"""Lines with the names of one thing in many languages, to learn to fill and to continue.

Whoever finds out which letters of two names correspond can fill a hole in one from the others.
"""

import numpy as np

import plainformer as pf

# The characters that occur four times or more, spelt out so that ids stay the same with other versions of Babel.
LETTERS = (
    " &(),-./0123456789:ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz\u00adÁÄÇÉÍÎÓÖØÚÜß"
    "àáâãäåæçèéêëíîïñóôõöøúüýăąćČčėęěğİıŁłńňőřŚśŞşŠšťūůųŵżŽžșțʻʼ–—’"
)
VOCABULARY = pf.Vocabulary.from_characters(LETTERS, special=["<other>", "<mask>", "<start>"], unknown="<other>")
LENGTH, BATCH_SIZE = 64, 48
BLOCKS = pf.StackConfig(d_model=96, num_layers=3, num_heads=4, d_ff=192, position_scheme="rotary", dropout_rate=0.1)
TRAINING = pf.TrainingConfig(
    num_steps=10_000, learning_rate=3e-3, warmup_steps=100, min_lr_ratio=0.02, weight_decay=0.02
)
SEEDS = range(3)


def line_of(names: list[str], rng: np.random.Generator) -> list[str]:
    """Names of one thing in a random order, as many of them as the line takes."""
    line: list[str] = []
    for place in rng.permutation(len(names)):
        if len(", ".join([*line, names[place]])) <= LENGTH:
            line.append(names[place])
    return line


def lines_at(things: dict[str, list[str]], seed: int):
    """From the number of the step to a batch of lines, as ids, padded; things with more names come more often."""
    lists = list(things.values())
    shares = np.array([len(names) for names in lists]) / sum(map(len, lists))

    def batch_at(step):
        rng = np.random.default_rng([seed, step])
        chosen = rng.choice(len(lists), size=BATCH_SIZE, p=shares)
        return pf.data.pad_texts([VOCABULARY.encode(", ".join(line_of(lists[n], rng))) for n in chosen], LENGTH)

    return batch_at


def questions(things: dict[str, list[str]], number: int, seed: int = 0) -> list[tuple[list[str], int, int]]:
    """Lines with at least four names, the number of one name in each, and a place in it: the letter to be hidden."""
    rng, found = np.random.default_rng(seed), list[tuple[list[str], int, int]]()
    lists = [names for names in things.values() if len(names) >= 4]
    while len(found) < number:
        line = line_of(lists[rng.integers(len(lists))], rng)
        name = int(rng.integers(len(line)))
        if len(line) >= 4:
            found.append((line, name, int(rng.integers(len(line[name])))))
    return found


def as_text(line: list[str], name: int, place: int) -> tuple[str, int]:
    """The names of a question as one text, and the place of the hidden letter in it."""
    return ", ".join(line), len(", ".join([*line[:name], ""])) + place
