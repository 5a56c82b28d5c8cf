"""Train an encoder by masking, on names without their languages, and let it find slips."""

import math
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.records import BUILD, LAB, percent
from lab.slips import Question, slips_found, with_slips
from plainformer.data.names import LabelledName, NameSplits

# All letters and signs of the names to learn from, spelt out so that ids stay the same with other versions of Babel.
LETTERS = (
    " &'(),-./:ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyzÁÄÆÇÉÍÎÓÖØÚÜß"
    "àáâãäåæçèéêëìíîïñóôõöøùúûüýăąćČčďđėęěğİıŁłńňőřŚśŞşŠšūůųŵźżŽžșȚțʼ–—’"
)
VOCABULARY = pf.Vocabulary.from_characters(LETTERS, special=["<other>", "<mask>"], unknown="<other>")
MASKING = {"mask_token": VOCABULARY.special["<mask>"], "vocab_size": len(VOCABULARY), "first_ordinary": 2}
FRACTION = 0.3

ENCODER = pf.EncoderConfig(
    vocab_size=len(VOCABULARY),
    context_len=32,
    stack=pf.StackConfig(d_model=96, num_layers=3, num_heads=4, d_ff=192, position_scheme="rotary", dropout_rate=0.1),
    use_class_token=True,
)
TRAINING = pf.TrainingConfig(num_steps=6000, learning_rate=3e-3, warmup_steps=100, min_lr_ratio=0.02, weight_decay=0.02)
BATCH_SIZE = 96


def encode(texts: list[str], length: int) -> tuple[jax.Array, jax.Array]:
    """Ids of the texts, cut and padded to a length, and where there are any."""
    return pf.data.pad_texts([VOCABULARY.encode(text[:length]) for text in texts], length)


@eqx.filter_jit
def masked(tokens, is_token, seed, step):
    """A batch for `masked_token_loss`."""
    key = jax.random.fold_in(jax.random.key(seed), step)
    corrupted, is_selected = pf.mask_tokens(tokens, is_token, fraction=FRACTION, key=key, **MASKING)
    return pf.data.MaskedBatch(corrupted, tokens, is_selected, is_token)


def masked_batches(names: list[LabelledName], seed: int = 0):
    """From the number of the step to a batch of names, each by itself, hidden anew each time."""

    def batch_at(step):
        chosen = np.random.default_rng([seed, step]).integers(len(names), size=BATCH_SIZE)
        texts = [names[n].text for n in chosen]
        return masked(*encode(texts, ENCODER.context_len), seed, jnp.asarray(step))

    return batch_at


def train_encoder(names: list[LabelledName], training=TRAINING, directory=BUILD / "encoder"):
    """The masked language model after training, and its metrics."""
    return pf.fit(
        pf.MaskedLanguageModel(ENCODER, key=jax.random.key(0)),
        pf.masked_token_loss,
        masked_batches(names),
        training,
        directory=directory,
    )


def masked_results(model: pf.MaskedLanguageModel, names: list[LabelledName]) -> tuple[float, float]:
    """Loss, and share of letters guessed right, at the selected letters of names, each by itself."""
    corrupted, tokens, is_selected, is_token, _ = masked(*encode([name.text for name in names], 20), 1, 0)
    logits = eqx.filter_jit(model)(corrupted, is_token)
    right = (logits.argmax(axis=-1) == tokens) & is_selected
    return float(pf.cross_entropy(logits, tokens, is_selected)), float(right.sum() / is_selected.sum())


def one_slip_each(names: list[LabelledName], learnt: list[LabelledName]) -> list[Question]:
    """Names with at least five letters, the first twenty of each, with one wrong letter."""
    rng, asked = np.random.default_rng(0), []
    for text in (name.text[:20] for name in names):
        places = [place for place, letter in enumerate(text) if letter.isalpha()]
        if len(places) >= 5:
            asked.append(([text], 0, int(rng.choice(places))))
    return with_slips(asked, [name.text for name in learnt])


def surprise_by_encoder(model: pf.MaskedLanguageModel, asked: list[Question]) -> np.ndarray:
    """At each place that is asked about the surprise, in nats, given the rest of the name."""
    found, rows = [], np.arange(500)
    for start in range(0, len(asked), 500):
        some = (asked[start : start + 500] * 500)[:500]  # the last ones over again, so that one program does
        tokens, is_token = encode([line[0] for line, _, _ in some], 20)
        places = np.array([place for *_, place in some])
        log_probs = letters_at_all_places(model, tokens.at[rows, places].set(MASKING["mask_token"]), is_token)
        found.append(-np.asarray(log_probs)[rows, places, np.asarray(tokens)[rows, places]])
    return np.concatenate(found)[: len(asked)]


@eqx.filter_jit
def letters_at_all_places(model: pf.MaskedLanguageModel, ids: jax.Array, is_token: jax.Array) -> jax.Array:
    """The log-probability of every letter at every place."""
    return jax.nn.log_softmax(model(ids, is_token))


def surprise_by_counting(names: list[LabelledName], asked: list[Question]) -> np.ndarray:
    """The same, by a 5-gram model of whole names."""
    begin, end = len(VOCABULARY), len(VOCABULARY) + 1

    def marked(text: str) -> list[int]:
        return [begin] * 4 + VOCABULARY.encode(text) + [end] * 4

    read = [each for name in names for each in marked(name.text)]
    model, found = pf.training.NgramModel(read, order=5, vocab_size=len(VOCABULARY) + 2, discount=None), []
    for line, _, place in asked:
        ids, log_probs = marked(line[0]), []
        shown = ids[place + 4]
        for letter in range(len(VOCABULARY)):
            ids[place + 4] = letter
            five = range(place + 4, place + 9)  # the factors in which the letter takes part
            log_probs.append(sum(math.log(model.probability(ids[n], ids[n - 4 : n])) for n in five))
        found.append(np.logaddexp.reduce(log_probs) - log_probs[shown])
    return np.array(found)


def slips_by(model: pf.MaskedLanguageModel, splits: NameSplits) -> dict:
    """In how many names the wrong letter is found by the encoder, by guessing and, in every sixth, by counting."""
    texts, slips = [name.text for name in splits.training], one_slip_each(splits.test, splits.training)
    some, guessed = slips[::6], float(np.mean([1 / len(line[0]) for line, *_ in slips]))
    found, of_some = (slips_found(partial(surprise_by_encoder, model), each, texts) for each in (slips, some))
    counted = slips_found(partial(surprise_by_counting, splits.training), some, texts)
    shares = {"found": found, "guessed": guessed, "found in some": of_some, "counted in some": counted}
    return {"names": len(slips)} | {name: round(share, 4) for name, share in shares.items()}


def results() -> dict:
    """Train the masked language model, and return how well it guesses hidden letters and finds wrong ones."""
    splits = pf.data.name_splits()
    model, metrics = train_encoder(splits.training)
    pf.save_model(LAB / "encoder" / "encoder.safetensors", model, VOCABULARY)
    loss, share = masked_results(model, splits.test)
    return {
        "languages": len({name.language for name in splits.training}),
        "names": [len(splits.training), len(splits.test)],
        "parameters": pf.count_parameters(model),
        "training loss": round(float(np.mean([step["loss"] for step in metrics[-100:]])), 4),
        "loss": round(loss, 4),
        "right": round(share, 4),
        "slips": slips_by(model, splits),
    }


def facts(found: dict) -> dict[str, str]:
    """What the chapter says: how many names there are, and per cent of the slips that are found."""
    learning, held_out = found["names"]
    texts = {"names": f"{learning:,}", "names.held_out": f"{held_out:,}"}
    return texts | {f"slips.{name}": percent(share) for name, share in found["slips"].items() if name != "names"}


def slips_line(slips: dict) -> str:
    """What the card says of wrong letters."""
    number, found, guessed, of_some, counted = slips.values()
    return f"""\
- **Slips.** In {number:,} of them one letter was replaced by a wrong one, drawn as often as letters occur. Bayes'
  rule, from each letter's probability given all others and from how often it occurs, finds it in {found:.1%}; a blind
  guess finds it in {guessed:.1%}. In every sixth of these names it is so in {of_some:.1%}; by a 5-gram model of whole
  names, counted on the same text, in {counted:.1%}."""


def card(found: dict) -> str:
    """What was done, and what came out."""
    (learning, held_out), languages = found["names"], found["languages"]
    training_loss, loss = found["training loss"], found["loss"]
    return f"""# The encoder of names

A character-level masked language model of names in {languages} languages. It guesses hidden letters of names; its
encoder is what {{ref}}`sec-encoder` tunes to tell languages with a few labels, and what the live figure there shows. It
knows names of countries, languages, months and weekdays, and nothing else. To tell languages, to guess a letter or to
find a wrong one, counting does better, as is shown there: use it to study how an encoder learns.

- **Data.** The training part of `plainformer.data.name_splits()`, which is from CLDR through Babel:
  {learning:,} names, without their languages. A text is a name, cut after {ENCODER.context_len} characters.
  The names of the things held out, {held_out:,}, are not among them. One token per character: the vocabulary is
  in the file, too.
- **Model.** `encoder.json`, {found["parameters"]:,} parameters.
- **Training.** {TRAINING.num_steps:,} steps of {BATCH_SIZE} names, {FRACTION:.0%} of the characters selected,
  of these 80 % hidden, 10 % replaced and 10 % left alone, anew in each step; seed 0 for weights, batches and
  dropout; AdamW, learning rate up to {TRAINING.learning_rate:g}. All settings stand in
  `lab/encoder/run.py`; `make models` trains it again.
- **Result.** In the last hundred steps a loss of {training_loss:.3f} nats per selected character. On the held-out
  names, each by itself, of 20 characters at most, with as many selected: loss {loss:.3f} nats per selected character,
  {found["right"]:.3f} of them guessed right. Other versions of Babel have a few other names.
{slips_line(found["slips"])}
- **Licence.** The weights are Apache-2.0, as the code; the names are CLDR's, under the Unicode License.
"""
