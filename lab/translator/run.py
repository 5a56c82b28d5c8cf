"""Train translators of captions: encoder and decoder, and a decoder alone; write down how well they translate.

The captions are those of `captions.read_captions()`. Nothing but numbers, ten translations and one map is kept, because
the terms of the captions allow no weights for every use.
"""

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest, Result

import plainformer as pf
from lab.translator import captions_by_counting
from lab.translator.captions import (
    BATCH_SIZE,
    LABEL_SMOOTHING,
    LENGTH,
    VOCAB_SIZE,
    WARMUP_STEPS,
    Captions,
    averaged,
    between_words,
    by_rarity,
    fitted,
    judged,
    kept,
    minutes,
    read_captions,
)

PASSES = {"both": 36, "alone": 7}
LEARNING_RATE, AVERAGED, BEAM_WIDTH, EVERY = 0.003, (1, 3, 9), 4, 4
NUM_SHOWN, SHOWN_EVERY, ALIGNED = 10, 100, 12  # translations that are kept; the sentence whose weights are
SEARCHES = {
    "beam of 4": (4, 1.0),
    "beam of 8": (8, 1.0),
    "beam of 4, sum of logarithms": (4, 0.0),
}
STACK = pf.StackConfig(
    d_model=192,
    num_heads=4,
    d_ff=384,
    norm="rms",
    activation="swiglu",
    position_scheme="rotary",
    use_bias=False,
    dropout_rate=0.3,
)


def new_both(captions: Captions) -> pf.Seq2Seq:
    """Encoder and decoder, three blocks each."""
    return pf.Seq2Seq(sizes_of_both(captions), key=jax.random.key(0))


def sizes_of_both(captions: Captions) -> pf.Seq2SeqConfig:
    """What makes the encoder–decoder what it is."""
    stack = dataclasses.replace(STACK, num_layers=3)
    return pf.Seq2SeqConfig(VOCAB_SIZE, LENGTH, LENGTH, captions.start, captions.stop, encoder=stack, decoder=stack)


def new_alone(captions: Captions) -> pf.Decoder:
    """One stack of seven blocks, for source, start token, target and stop token in one text."""
    config = pf.DecoderConfig(VOCAB_SIZE, 2 * LENGTH + 2, stack=dataclasses.replace(STACK, num_layers=7))
    return pf.Decoder(config, key=jax.random.key(0))


def arrays_for_both(pairs: Sequence, captions: Captions) -> pf.data.TranslationBatch:
    """Pairs as an encoder–decoder reads them."""
    return pf.translation_batch(pairs, sizes_of_both(captions))


def arrays_for_one(pairs: Sequence, captions: Captions) -> pf.data.PaddedWindows:
    """Pairs as one text each, in which the tokens behind the start token count."""
    texts = [[*source, captions.start, *target, captions.stop] for source, target in pairs]
    ids, is_token = (np.asarray(array) for array in pf.data.pad_texts(texts))
    has_begun = (ids == captions.start).cumsum(axis=1) > 0
    counts = is_token[:, 1:] & has_begun[:, :-1]
    return pf.data.PaddedWindows(*map(jnp.asarray, (ids[:, :-1], ids[:, 1:], counts)))


def loss_of_one(model, batch: pf.data.PaddedWindows, key=None, *, label_smoothing: float = 0.0):
    """Mean surprise at what counts, as `pf.translation_loss` has it for an encoder–decoder."""
    logits = model(batch.inputs, key=key)
    return pf.cross_entropy(logits, batch.targets, batch.counts, label_smoothing=label_smoothing)


KINDS: dict[str, tuple[Callable, Callable, Callable]] = {
    "both": (new_both, arrays_for_both, pf.translation_loss),
    "alone": (new_alone, arrays_for_one, loss_of_one),
}


def trained(name: str, captions: Captions) -> list[dict]:
    """Train one of the two, and return what was measured in each step."""
    new, arrays_of, loss = KINDS[name]
    arrays = {part: [arrays_of(bucket, captions) for bucket in buckets] for part, buckets in captions.buckets.items()}
    return fitted(name, new(captions), loss, captions, arrays, PASSES[name], LEARNING_RATE).metrics


def translations(model, sources: list[str], captions: Captions, beam_width: int | None = None) -> list[str]:
    """What a model writes for each German sentence, greedily or by a beam."""
    tokenizer = captions.tokenizer
    if isinstance(model, pf.Seq2Seq):
        return [str(each.text) for each in pf.translate(model, sources, beam_width=beam_width, tokenizer=tokenizer)]
    prompts = [[*tokenizer.encode(source), captions.start] for source in sources]
    order, size = np.argsort([len(prompt) for prompt in prompts], kind="stable"), 125
    found: dict[int, str] = {}
    for first in range(0, len(order), size):
        rows = order[first : first + size].tolist()
        ids = written_behind(model, [prompts[row] for row in rows], captions.stop, beam_width)
        found |= {row: tokenizer.decode(text) for row, text in zip(rows, ids, strict=True)}
    return [found[row] for row in range(len(sources))]


def written_behind(model: pf.Decoder, prompts: list[list[int]], stop: int, beam_width: int | None) -> list[list[int]]:
    """What a decoder writes behind each prompt, without the stop token."""
    if beam_width is None:
        tokens = [each.tokens for each in pf.generate(model, prompts, LENGTH, temperature=0.0, stop_tokens=[stop])]
    else:
        beams = pf.beam_search(model, prompts, LENGTH, beam_width=beam_width, stop_tokens=[stop])
        tokens = [best.tokens for best, *_ in beams]
    return [text[:-1] if text[-1] == stop else text for text in tokens]


def curve_of(metrics: list[dict], captions: Captions) -> list[list]:
    """After each pass: its number, the mean loss in it, smoothed and with dropout, and the loss on held-out pairs."""
    every, losses = captions.steps_a_pass, [each["loss"] for each in metrics]
    held_out = [each["validation_loss"] for each in metrics if "validation_loss" in each]
    return [
        [n, round(float(np.mean(losses[(n - 1) * every : n * every])), 4), round(loss, 4)]
        for n, loss in enumerate(held_out, start=1)
    ]


def validated(name: str, last: int, num: int, captions: Captions) -> dict[str, float]:
    """Loss and BLEU of greedy search on the validation part, of a mean of the passes up to the `last`."""
    new, arrays_of, loss = KINDS[name]
    german, english = map(list, zip(*captions.splits.validation, strict=True))

    def measure() -> dict[str, float]:
        model = averaged(name, new(captions), captions, last, num)
        buckets = [arrays_of(bucket, captions) for bucket in captions.buckets["validation"]]
        nats = pf.training.mean_loss(model, loss, pf.data.consecutive_batches(buckets, BATCH_SIZE))
        return {"loss": round(nats, 4), "BLEU": judged(translations(model, german, captions), english)["cased"]}

    return kept(f"{name}_{last}_{num}_validated", measure)


def averages(name: str, last: int, captions: Captions) -> dict[str, dict]:
    """What is found on the validation part of means over the last passes, one and more."""
    return {str(num): validated(name, last, num, captions) for num in AVERAGED if num <= last}


def operations(name: str, captions: Captions) -> int:
    """Floating-point operations of reading a pair of 17 tokens each, which is about their mean."""
    model, text = KINDS[name][0](captions), jnp.zeros(17, int)
    target = text.at[0].set(captions.start)
    read = (text, target) if name == "both" else (jnp.concatenate([text, target]),)
    return pf.training.count_flops(lambda model, *read: model(*read), model, *read)


def best(averages: dict[str, dict]) -> int:
    """Of how many passes the mean is best, by BLEU on the validation part."""
    return int(max(averages, key=lambda num: averages[num]["BLEU"]))


def tested(name: str, last: int, num: int, captions: Captions) -> tuple[dict, list[str]]:
    """BLEU of both searches on the test, of a mean of the passes up to the `last`; and what the beam found."""
    german, english = map(list, zip(*captions.splits.test, strict=True))

    def measure() -> dict[str, list[str]]:
        model = averaged(name, KINDS[name][0](captions), captions, last, num)
        searches = {"greedy": None, "beam": BEAM_WIDTH}
        return {search: translations(model, german, captions, width) for search, width in searches.items()}

    texts = kept(f"{name}_{last}_{num}_tested", measure)
    return {search: judged(found, english) for search, found in texts.items()}, texts["beam"]


def searches(last: int, num: int, captions: Captions) -> dict[str, float]:
    """BLEU on the validation part of wider and narrower beams, and of one that does not mind lengths."""
    german, english = map(list, zip(*captions.splits.validation, strict=True))

    def measure(width: int, power: float) -> float:
        model = averaged("both", new_both(captions), captions, last, num)
        found = pf.translate(model, german, beam_width=width, length_power=power, tokenizer=captions.tokenizer)
        return judged([str(each.text) for each in found], english)["cased"]

    return {
        name: kept(f"both_{last}_{num}_beam_{width}_{power}", partial(measure, width, power))
        for name, (width, power) in SEARCHES.items()
    }


def compared(systems: dict[str, list[str]], captions: Captions) -> dict[str, dict]:
    """BLEU of each system in a thousand draws of the test's sentences: mean, half of 95 %, and p against the first."""
    references = [english for _, english in captions.splits.test]
    test = PairedTest(list(systems.items()), {"BLEU": BLEU(references=[references])}, None, "bs", n_samples=1000)
    _, found = test()
    return {
        name: {
            "mean": round(float(one.mean or 0), 2),
            "half": round(float(one.ci or 0), 2),
            "p": one.p_value and round(one.p_value, 4),
        }
        for name, one in zip(systems, found["BLEU"], strict=True)
        if isinstance(one, Result)
    }


def map_of(model: pf.Seq2Seq, text: str, captions: Captions) -> dict:
    """What each word of a translation reads, by the cross-attention of the last block."""
    german, _ = captions.splits.test[ALIGNED]
    source, target = captions.tokenizer.encode(german), captions.tokenizer.encode(text)
    weights = eqx.filter_jit(model.cross_attention_weights)(jnp.asarray(source), jnp.asarray([captions.start, *target]))
    return between_words(np.asarray(weights[-1]), source, target, captions.tokenizer)


def samples(texts: list[str], captions: Captions) -> list[dict]:
    """Some sentences of the test, evenly spaced, with their translations, and the words that training never showed."""
    chosen = range(0, SHOWN_EVERY * NUM_SHOWN, SHOWN_EVERY)
    german, english = zip(*captions.splits.test, strict=True)
    return [
        {"source": german[n], "written": texts[n], "reference": english[n], "new": captions.unseen(german[n])}
        for n in chosen
    ]


def learned(name: str, captions: Captions) -> dict:
    """Train one of the two, and say how it went: on the way, means of the last quarter of the passes."""
    metrics, end = trained(name, captions), PASSES[name]
    means = averages(name, end, captions)
    return {
        "parameters": pf.count_parameters(KINDS[name][0](captions)),
        "minutes": minutes(name, captions, end),
        "operations": operations(name, captions),
        "curve": curve_of(metrics, captions),
        "passes": {str(n): validated(name, n, max(n // 4, 1), captions) for n in [*range(EVERY, end, EVERY), end]},
        "averaged": means,
        "chosen": best(means),
    }


def results_of(captions: Captions) -> dict:
    """Train both, choose how many passes to average on the validation part, and judge them on the test."""
    found, systems = {name: learned(name, captions) for name in KINDS}, {}
    for name, one in found.items():
        one["test"], systems[name] = tested(name, PASSES[name], one["chosen"], captions)
    both, short = found["both"], PASSES["alone"]
    both["test, last pass alone"], systems["last pass"] = tested("both", PASSES["both"], 1, captions)
    both["averaged, as long as alone"] = averages("both", short, captions)
    num = both["chosen, as long as alone"] = best(both["averaged, as long as alone"])
    both["test, as long as alone"], systems["as long"] = tested("both", short, num, captions)
    model = averaged("both", new_both(captions), captions, PASSES["both"], both["chosen"])
    english = [reference for _, reference in captions.splits.test]
    counted = kept("captions by counting", captions_by_counting.results)
    systems["counted"] = counted.pop("written")
    return found | {
        "data": {
            "pairs": [len(part) for part in captions.splits],
            "words": round(np.mean([len(text.split()) for _, text in captions.splits.training]), 1),
        },
        "bootstrap": {
            name: one
            for pair in (("both", "last pass"), ("both", "counted"), ("as long", "alone"))
            for name, one in compared({name: systems[name] for name in pair}, captions).items()
        },
        "exactly as the person": sum(map(str.__eq__, systems["both"], english)),
        "words": [sum(len(text.split()) for text in texts) for texts in (systems["both"], english)],
        "searches": searches(PASSES["both"], both["chosen"], captions),
        "by rarity": by_rarity(systems["both"], captions),
        "samples": samples(systems["both"], captions),
        "map": map_of(model, systems["both"][ALIGNED], captions),
        "counted": counted,
    }


def rows(found: dict) -> list[tuple[str, dict]]:
    """What was tested, in words."""
    both, alone = found["both"], found["alone"]
    end, short = len(both["curve"]), len(alone["curve"])
    return [
        (f"encoder–decoder, after {end} passes", both["test, last pass alone"]),
        (f"encoder–decoder, mean of the last {both['chosen']} of {end}", both["test"]),
        (
            f"encoder–decoder, mean of the last {both['chosen, as long as alone']} of {short}",
            both["test, as long as alone"],
        ),
        (f"decoder alone, mean of the last {alone['chosen']} of {short}", alone["test"]),
    ]


def table(found: dict) -> str:
    """The lines of the card: BLEU on the test, with capitals / without."""
    lines = ["| | greedy | beam of 4 |", "|---|---|---|"]
    for name, one in rows(found):
        cells = [f"{one[search]['cased']:.1f} / {one[search]['lower case']:.1f}" for search in ("greedy", "beam")]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def validation_table(found: dict) -> str:
    """The lines of the card for what was chosen by the validation part."""
    lines = ["| | passes | mean of the last | loss | BLEU, greedy |", "|---" * 5 + "|"]
    both, alone, short = found["both"], found["alone"], len(found["alone"]["curve"])
    for kind, passes, averages in (
        ("encoder–decoder", len(both["curve"]), both["averaged"]),
        ("encoder–decoder", short, both["averaged, as long as alone"]),
        ("decoder alone", short, alone["averaged"]),
    ):
        for num, one in averages.items():
            lines.append(f"| {kind} | {passes} | {num} | {one['loss']:.3f} | {one['BLEU']:.1f} |")
    return "\n".join(lines)


def curve_table(found: dict) -> str:
    """The lines of the card for the passes."""
    lines = [
        "| pass | encoder–decoder: training | validation | decoder alone: training | validation |",
        "|---" * 5 + "|",
    ]
    others = {n: (training, loss) for n, training, loss in found["alone"]["curve"]}
    for n, training, loss in found["both"]["curve"]:
        other = " | ".join(f"{each:.3f}" for each in others[n]) if n in others else " | "
        lines.append(f"| {n} | {training:.3f} | {loss:.3f} | {other} |")
    return "\n".join(lines)


def points(found: dict) -> dict[str, float]:
    """BLEU on the test and on the validation part, and how many points lie between two ways."""
    both, alone, counted = found["both"], found["alone"], found["counted"]["phrases"]["test"]
    beam, greedy = (both["test"][search]["cased"] for search in ("beam", "greedy"))
    passes = {number: each["BLEU"] for number, each in both["passes"].items()}
    *_, before, end = passes.values()
    return {
        **{f"both.passes.{number}.bleu": bleu for number, bleu in passes.items()},
        "both.passes.gain_of_last": end - before,
        "both.beam.bleu": beam,
        "both.beam.lower_case": both["test"]["beam"]["lower case"],
        "both.beam.gain": beam - greedy,
        "both.averaged.gain": beam - both["test, last pass alone"]["beam"]["cased"],
        "counted.bleu": counted,
        "counted.behind": beam - counted,
        "alone.greedy.bleu": alone["averaged"][str(alone["chosen"])]["BLEU"],
        "alone.behind": both["test, as long as alone"]["beam"]["cased"] - alone["test"]["beam"]["cased"],
        "searches.greedy": both["averaged"][str(both["chosen"])]["BLEU"],
        **{f"searches.{name.replace(', ', '.')}": bleu for name, bleu in found["searches"].items()},
    }


def facts(found: dict) -> dict[str, str]:
    """What chapters say: BLEU, how sure it is, what rare words cost, sizes, and minutes."""
    both, luck = found["both"], found["bootstrap"]
    (_, rare, words_of_rare), *_, (_, common, words_of_common) = found["by rarity"].values()
    return {
        **{name: f"{bleu:.1f}" for name, bleu in points(found).items()},
        "both.beam.bleu.whole": f"{both['test']['beam']['cased']:.0f}",
        "both.half": f"{luck['both']['half']:.1f}",
        **{f"{name}.p": f"{luck[name]['p']:g}" for name in ("last pass", "counted", "alone")},
        "rare.behind": f"{common - rare:.0f}",
        "rare.words": f"{words_of_rare:.0f}",
        "common.words": f"{words_of_common:.0f}",
        **{f"{name}.parameters": f"{found[name]['parameters']:,}" for name in KINDS},
        "both.millions": f"{both['parameters'] / 1e6:.1f}",
        "both.minutes": f"{both['minutes']:.0f}",
    }


def what_was_done(found: dict) -> str:
    """The part of the card about data, models and training."""
    both, alone, data = found["both"], found["alone"], found["data"]
    return f"""\
- **Data.** Multi30k (Elliott et al., 2016), `plainformer.data.multi30k("de", "en")`: {data["pairs"][0]:,} pairs to
  learn from, {data["pairs"][1]:,} for validation, {data["pairs"][2]:,} of 2016 to test on; {data["words"]} words to an
  English caption. One byte-pair encoding of {VOCAB_SIZE:,} tokens, learned from both languages of the training part.
- **Models.** RMS norm, SwiGLU, rotary, no biases, one tied table, {STACK.d_model} wide, {STACK.num_heads} heads,
  inner width {STACK.d_ff}. The encoder–decoder has 3 + 3 blocks and {both["parameters"]:,} parameters. The decoder
  alone has 7 blocks and {alone["parameters"]:,}; it reads source, start token, target, stop token as one text, and only
  what follows the start token counts, so that both learn from the same loss.
- **Training.** Batches of {BATCH_SIZE} pairs of about equal length, the same for both; dropout
  {STACK.dropout_rate}, label smoothing {LABEL_SMOOTHING}; AdamW, weight decay 0.1, betas 0.9 and 0.98, gradients
  clipped to length 1; the rate rises to {LEARNING_RATE} in {WARMUP_STEPS:,} steps, then falls with the root of their
  number; seed 0. {len(both["curve"])} passes took {both["minutes"]:g} minutes on one processor, beside other work,
  and {len(alone["curve"])} of the decoder alone {alone["minutes"]:g}. For a pair of 17 tokens each they compute
  {both["operations"] / 1e6:.0f} and {alone["operations"] / 1e6:.0f} million operations. `make models ONLY=translator
  MULTI30K=folder` trains them again; without a folder the captions are downloaded, and if they cannot be, nothing is
  trained."""


def what_came_out(found: dict) -> str:
    """The part of the card about the test and the validation part."""
    both, alone, luck = found["both"], found["alone"], found["bootstrap"]
    counted = found["counted"]
    other = ", ".join(f"{name} {bleu:.1f}" for name, bleu in found["searches"].items())
    return f"""\
- **Result.** BLEU on the test by sacrebleu, cut by 13a, with capitals / without. How many passes are averaged was
  chosen by BLEU on the validation part.

{table(found)}

  In a thousand draws of the test's sentences the beam has {luck["both"]["mean"]:.1f} ± {luck["both"]["half"]:.1f} with
  the mean of several passes, and {luck["last pass"]["mean"]:.1f} ± {luck["last pass"]["half"]:.1f} with the last pass
  alone (p = {luck["last pass"]["p"]}). After {len(alone["curve"])} passes each, the encoder–decoder has
  {luck["as long"]["mean"]:.1f} ± {luck["as long"]["half"]:.1f}, the decoder alone {luck["alone"]["mean"]:.1f} ±
  {luck["alone"]["half"]:.1f} (p = {luck["alone"]["p"]}).
- **Chosen on the validation part.**

{validation_table(found)}

- **Knobs turned.** BLEU on the validation part of the same model with other searches: greedy
  {both["averaged"][str(both["chosen"])]["BLEU"]:.1f}, {other}. The short training of
  {{ref}}`sec-seq2seq`, 2,000 steps of a model
  of 2 + 2 blocks in the form of 2019 with a dropout of 0.1, is in `benchmarks/multi30k.json`, with three seeds.
- **Counting.** A translator that counts words and phrases, without a network (`captions_by_counting.py`),
  has {counted["phrases"]["test"]:.1f} on the test and {counted["phrases"]["validation"]:.1f} on the validation part, on
  whose first {captions_by_counting.NUM_TUNING} pairs its weights were chosen. In a thousand draws of the test's
  sentences it has {luck["counted"]["mean"]:.1f} ± {luck["counted"]["half"]:.1f}, the encoder–decoder
  {luck["both"]["mean"]:.1f} ± {luck["both"]["half"]:.1f} (p = {luck["counted"]["p"]}). What was written
  for the most similar German caption of the training part has {counted["most similar"]["test"]:.1f}.
- **Published.** Wu et al. (2021) report 41.0 for text alone on the same photographs from English into German, the
  other direction, with 4 + 4 blocks 128 wide, cut into words and without capitals."""


def what_is_wrong(found: dict) -> str:
    """The part of the card about mistakes, with ten translations."""
    (written, wanted), number = found["words"], found["data"]["pairs"][2]
    rare = "; ".join(
        f"{name}: {bleu:.1f} ({number} sentences of {length} words)"
        for name, (number, bleu, length) in found["by rarity"].items()
    )
    shown = "\n".join(
        f"| {each['source']} | {each['written']} | {each['reference']} | {', '.join(each['new'])} |"
        for each in found["samples"]
    )
    return f"""\
- **Mistakes.** {found["exactly as the person"]} of {number:,} translations are the person's, to the letter.
  All have {written:,} words, the person's {wanted:,}. BLEU by how often the rarest German word stands in the training
  part: {rare}.
- **Ten translations**, every hundredth sentence of the test, by a beam of {BEAM_WIDTH}:

| German | written | a person | never seen |
|---|---|---|---|
{shown}"""


def card(found: dict) -> str:
    """What was done, and what came out."""
    return f"""# Captions from German into English

An encoder–decoder, and a decoder alone, learn to translate captions of photographs. The weights are not stored: the
captions come from Flickr30k, which is provided for non-commercial research and education only, and the README of
Multi30k names no licence that allows more. All that {{ref}}`sec-seq2seq` shows of them is in `record.json`.

{what_was_done(found)}
{what_came_out(found)}
{what_is_wrong(found)}

- **After each pass**: loss in training, smoothed and with dropout, and on the validation part, nats per token.

{curve_table(found)}

- **Limits.** One seed of each; sizes, dropout and rate were set beforehand, by the literature.
- **Licence.** The numbers and what the models wrote are Apache-2.0, as the code. The ten German sentences and the ten
  English ones are quoted from Multi30k.
"""


def results() -> dict:
    """Train both and return what came of it: without captions nothing, which leaves the record as it is."""
    try:
        splits = read_captions()
    except OSError as error:
        print(f"translator: skipped, for want of captions; MULTI30K may name their folder. {error}", flush=True)
        return {}
    return results_of(Captions(splits))
