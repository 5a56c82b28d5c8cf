"""Writing for many at once: texts join a batch as they come, and leave it as they end (chapter on serving)."""

import dataclasses
from collections import Counter, deque
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from plainformer.checks import NonNegative, Positive, checked
from plainformer.generation.adjusting import Adjust
from plainformer.generation.pages import PageTables, copy_pages, extend_in_pages, make_pages
from plainformer.generation.prompts import LanguageModel, Prompt, check_model, check_tokenizer, read_prompts, start_of
from plainformer.generation.sampling import Continuation, Draw, TopP, check_finite, choice_of, key_for, numbers_of, pick
from plainformer.generation.stopping import stop_ids, text_of
from plainformer.tokens.tokenizer import Tokenizer


@dataclasses.dataclass
class _Text:
    """A text that is being written, and what tells its random stream."""

    number: int
    prompt: list[int]
    most: int
    stream: np.ndarray
    tokens: list[int] = dataclasses.field(default_factory=list)
    log_probs: list[float] = dataclasses.field(default_factory=list)


class Server:
    r"""Writes for many at once: a text that ends leaves its place at once, and the next one takes it.

    After Orca (Yu et al., 2022, section 3). Keys and values lie in pages, which texts with a common beginning share.
    Two programs are compiled in all: one reads a prompt, as many tokens at a time as a page has room for, the other
    reads one token of each text. Every text is what `generate` writes.

    Args:
        model: a `Decoder`, or what writes like one.
        places: how many texts are written side by side.
        page_size: for how many tokens a page has room.
        num_pages: how many pages there are; `None` for enough, whatever comes. With fewer, a text waits until there are
            enough to write it to its end.
        temperature, top_k, top_p, min_p, adjust, stop_tokens, tokenizer, key: as for `generate`.

    Example:
        Three prompts share two places; the second one ends first, and the third takes its place.

        >>> model, tokenizer = pf.load_pretrained("decoder")
        >>> server = pf.generation.Server(model, places=2, temperature=0, tokenizer=tokenizer)
        >>> numbers = [server.submit(prompt, length) for prompt, length in [("The ", 12), ("If ", 3), ("A ", 5)]]
        >>> [(number, text.text) for number, text in server.run().items()]
        [(0, 'standard typ'), (1, 'the'), (2, 'conta')]
    """

    @checked
    def __init__(
        self,
        model: LanguageModel,
        *,
        places: Positive = 4,
        page_size: Positive = 16,
        num_pages: Positive | None = None,
        temperature: NonNegative = 1.0,
        top_k: Positive | None = None,
        top_p: TopP | None = None,
        min_p: TopP | None = None,
        adjust: Adjust | None = None,
        stop_tokens: Sequence[int | str] = (),
        tokenizer: Tokenizer | None = None,
        key: PRNGKeyArray | None = None,
    ):
        check_model(model)
        config = model.config
        check_tokenizer(tokenizer, config.vocab_size)
        self.model, self.tokenizer, self.num_steps = model, tokenizer, 0
        self.page_size, self.pages_of_text = min(page_size, config.context_len), -(-config.context_len // page_size)
        num_pages = num_pages or places * self.pages_of_text
        self.page_tables, self.most_held = PageTables(num_pages, self.page_size), 0
        self._pages = make_pages(model, num_pages, self.page_size)
        choice = choice_of(temperature, top_k, top_p, min_p, config.vocab_size)
        stop = stop_ids(stop_tokens, config.vocab_size, tokenizer=tokenizer)
        self._draw = Draw(choice, stop, key_for(choice, key), numbers_of([[0]]), adjust)
        self._stop = set(stop.tolist())
        self._seen, self._submitted = Counter[int](), 0
        self._waiting: deque[_Text] = deque()
        self._writing: list[_Text | None] = [None] * places

    @checked
    def submit(self, prompt: Prompt, max_new_tokens: Positive) -> int:
        """Put a prompt at the end of the queue; return its number, counted from 0."""
        texts, single = read_prompts(prompt, self.model.config.vocab_size, self.tokenizer, "prompt")
        if not single:
            raise TypeError("prompt is a list of prompts; expected one: submit each of them.")
        start_of(self.model.config, texts, max_new_tokens)  # raises where it is too long
        text = _Text(self._submitted, texts[0], max_new_tokens, np.asarray(numbers_of(texts, self._seen)[0]))
        if (pages := self._pages_for(text)) > len(self.page_tables.counts):
            raise ValueError(
                f"The text needs {pages} pages of {self.page_size} tokens, and there are "
                f"{len(self.page_tables.counts)}; expected a shorter one, or more pages: num_pages={pages}."
            )
        self._waiting.append(text)
        self._submitted += 1
        return text.number

    def step(self) -> dict[int, Continuation]:
        """Let waiting texts join where there is a place, and write a token of each; return those that end, by number.

        With nothing to write it returns {} at once.
        """
        ended: dict[int, Continuation] = {}
        for place in range(len(self._writing)):
            while self._writing[place] is None and self._waiting and self._has_pages_for(self._waiting[0]):
                self._writing[place] = self._begun(self._waiting.popleft())
                self._leave(place, ended)
        if any(self._writing):
            self._read(self._writing, [[] if text is None else text.tokens[-1:] for text in self._writing], seq=1)
            self.num_steps += 1
        for place in range(len(self._writing)):
            self._leave(place, ended)
        return ended

    def run(self) -> dict[int, Continuation]:
        """Write until nothing waits; return all texts that ended, by number."""
        ended: dict[int, Continuation] = {}
        while self._waiting or any(self._writing):
            ended |= self.step()
        return dict(sorted(ended.items()))

    def _pages_for(self, text: _Text) -> int:
        """How many pages a text holds at most; the token that it writes last is never read."""
        return -(-(len(text.prompt) + text.most - 1) // self.page_size)

    def _has_pages_for(self, text: _Text) -> bool:
        """Whether a text can be written to its end beside those that are being written, however long these become."""
        held = sum(self._pages_for(each) for each in self._writing if each is not None)
        return held + self._pages_for(text) <= len(self.page_tables.counts)

    def _begun(self, text: _Text) -> _Text:
        """The text with its prompt read, but for what another one has read, and its first token written."""
        first = self.page_tables.begin(text.number, text.prompt)
        for start in range(first, len(text.prompt), self.page_size):
            text.tokens, text.log_probs = [], []
            self._read([text], [text.prompt[start : start + self.page_size]], seq=self.page_size)
        return text

    def _read(self, texts: Sequence[_Text | None], pieces: list[list[int]], seq: int) -> None:
        """Read these tokens of the texts, and add to each the token that comes next."""
        batch, nobody = len(texts), len(self.page_tables.counts)
        tables = np.full((batch, self.pages_of_text), nobody, np.int32)
        tokens, positions = np.zeros((batch, seq), np.int32), np.full((batch, seq), -1, np.int32)
        copies, numbers = np.full((2, batch), nobody, np.int32), np.zeros((batch, 3), np.uint32)
        for row, (text, piece) in enumerate(zip(texts, pieces, strict=True)):
            if text is None:
                continue
            start = len(self.page_tables.tokens[text.number])
            places = [self.page_tables.append(text.number, token) for token in piece]
            if places[0].copied_from is not None:
                copies[:, row] = places[0].copied_from, places[0].page
            table = self.page_tables.tables[text.number]
            tables[row, : len(table)] = table
            tokens[row, : len(piece)], positions[row, : len(piece)] = piece, range(start, start + len(piece))
            numbers[row] = len(text.tokens), *text.stream
        self.most_held = max(self.most_held, self.page_tables.num_held)
        adjusted = None if self._draw.adjust is None else self._as_adjusted(texts)
        given = self.model, self._draw, tables, tokens, positions, copies, numbers, adjusted
        self._pages, found, log_probs = _read_compiled(given, self._pages)
        for text, token, log_prob in zip(texts, found.tolist(), log_probs.tolist(), strict=True):
            if text is not None:
                text.tokens.append(token)
                text.log_probs.append(log_prob)

    def _as_adjusted(self, texts: Sequence[_Text | None]) -> tuple[np.ndarray, np.ndarray]:
        """The prompts and what was written so far, as `adjust` reads them, -1 where there is nothing."""
        prompts, written = np.full((2, len(texts), self.model.config.context_len), -1, np.int32)
        for row, text in enumerate(texts):
            if text is not None:
                prompts[row, -len(text.prompt) :] = text.prompt
                written[row, : len(text.tokens)] = text.tokens
        return prompts, written

    def _leave(self, place: int, ended: dict[int, Continuation]) -> None:
        """Let the text in this place leave if it has ended."""
        text = self._writing[place]
        if text is None or (len(text.tokens) < text.most and text.tokens[-1] not in self._stop):
            return
        check_finite(text.log_probs)
        stopped = text.tokens[-1] in self._stop
        written = text_of(text.tokens, stopped, self.tokenizer)
        ended[text.number] = Continuation(text.tokens, written, sum(text.log_probs), stopped, text.log_probs)
        self.page_tables.end(text.number)
        self._writing[place] = None


@eqx.filter_jit(donate="all-except-first")  # so that a token is written into the pages where they lie
def _read_compiled(given: tuple, pages):
    model, draw, tables, tokens, positions, copies, numbers, adjusted = given
    rows, pages = extend_in_pages(model, copy_pages(pages, *copies), tables, tokens, positions)
    last = jnp.maximum((positions >= 0).sum(axis=1) - 1, 0)
    rows = jnp.take_along_axis(rows, last[:, None, None], axis=1)
    draw = draw._replace(numbers=numbers[:, 1:])
    found, log_probs = pick(draw, model.logits(rows)[:, 0], numbers[:, 0].astype(np.int32), adjusted)
    return pages, found, log_probs
