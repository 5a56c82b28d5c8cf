"""Conversations: each turn as `generate` would continue the whole text, what was read kept, and what has no room."""

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

import plainformer as pf
from plainformer import chat as terminal
from plainformer.generation import chatting
from plainformer.pretrained.gguf_files import byte_pairs
from plainformer.tokens.hugging_face import HuggingFaceTokenizer

LETTERS = [*"abcdefgh", "Ġ", "<u>", "<a>", "<end>"]
TEMPLATE = (
    "{% for each in messages %}{{ {'system': '', 'user': '<u>', 'assistant': '<a>'}[each.role] }}{{ each.content }}"
    "<end>{% endfor %}{% if add_generation_prompt %}<a>{% endif %}"
)


def tokenizer(template=TEMPLATE, end="<end>"):
    content = byte_pairs(LETTERS, [], [1] * 9 + [3] * 3, "gpt-2", None)
    return HuggingFaceTokenizer(content, template, end=end)


@pytest.fixture(scope="module")
def model():
    """One that says something for a while, and ends."""
    stack = pf.StackConfig(d_model=16, num_layers=2, num_heads=2, position_scheme="rotary")
    found = pf.Decoder(pf.DecoderConfig(len(LETTERS), 256, stack=stack), key=jax.random.key(3))
    return jax.tree.map(lambda leaf: 3 * leaf, found)


def continued(model, messages, most) -> str:
    """What `generate` writes behind the conversation as one text."""
    ids = tokenizer().encode_conversation(messages)
    return pf.generate(model, ids, most, temperature=0, stop_tokens=[11], tokenizer=tokenizer()).text


def test_each_answer_is_what_generate_writes_behind_the_whole_conversation(model, monkeypatch):
    chat, sizes, read = pf.Chat(model, tokenizer(), system="h"), [], chatting._read
    monkeypatch.setattr(chatting, "_read", lambda model, given: (sizes.append(int(given[3])), read(model, given))[1])
    for question in ("abc", "g" * 80, "de f"):
        first = len(sizes)
        said = "".join(chat.say(question, max_new_tokens=6))
        assert said == chat.messages[-1]["content"] == continued(model, chat.messages[:-1], 6)
        new = len(tokenizer().encode_conversation([{"role": "user", "content": question}])) + 2
        assert sum(sizes[first:]) <= new + 6  # and nothing that was read before
    assert [each["role"] for each in chat.messages] == ["system", *["user", "assistant"] * 3]


def test_an_answer_that_is_broken_off_is_kept(model):
    chat = pf.Chat(model, tokenizer())
    answer = chat.say("abc", max_new_tokens=9)
    pieces = [next(answer), next(answer)]
    answer.close()
    assert chat.messages[-1]["content"].startswith("".join(pieces))
    whole = "".join(chat.say("d", max_new_tokens=3))
    assert whole == continued(model, chat.messages[:-1], 3)


def test_another_question_ends_an_answer_that_is_open(model):
    chat = pf.Chat(model, tokenizer())
    chat.say("h")  # nobody listens
    first = chat.say("abc", max_new_tokens=9)
    begun = next(first)
    whole = "".join(chat.say("d", max_new_tokens=3))
    assert list(first) == []
    assert [each["role"] for each in chat.messages] == ["user", "assistant"] * 2
    assert chat.messages[1]["content"].startswith(begun)
    assert whole == continued(model, chat.messages[:-1], 3)


def test_after_reading_that_was_broken_off_all_is_read_anew(model, monkeypatch):
    chat, read = pf.Chat(model, tokenizer()), chatting._read
    "".join(chat.say("abc", max_new_tokens=3))

    def broken_off(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(chatting, "_read", broken_off)
    with pytest.raises(KeyboardInterrupt):
        "".join(chat.say("d"))
    assert len(chat.messages) == 2
    monkeypatch.setattr(chatting, "_read", read)
    assert "".join(chat.say("e", max_new_tokens=3)) == continued(model, chat.messages[:-1], 3)


def test_a_conversation_that_is_full_says_so(model):
    chat = pf.Chat(model, tokenizer(), room=20)
    with pytest.warns(UserWarning, match="The conversation is full: the answer ends here, after 20 tokens"):
        "".join(chat.say("a" * 14))
    kept = list(chat.messages)
    with pytest.raises(ValueError, match=r"has 2\d tokens with this question; expected fewer than room=20"):
        chat.say("b")
    assert chat.messages == kept


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokenizer": tokenizer(template=None)}, "has no chat_template"),
        ({"tokenizer": tokenizer(end=None)}, "no end of an answer"),
        ({"tokenizer": pf.Vocabulary(tuple("abcdefghijkl"))}, "has no chat_template"),
        ({"room": 300}, "room is 300; expected at most 256"),
        ({"tokenizer": tokenizer(end="a")}, "ends an answer with 'a'; expected one of its special tokens"),
    ],
)
def test_what_cannot_talk_is_refused(unchecked, model, change, message):
    with pytest.raises(ValueError, match=message):
        pf.Chat(**{"model": model, "tokenizer": tokenizer()} | change)


def test_a_question_with_half_a_character_is_refused(model):
    with pytest.raises(ValueError, match=r"has '\\ud800' at 4, which is no whole character"):
        pf.Chat(model, tokenizer()).say("a\ud800")
    with pytest.raises(ValueError, match="makes no tokens of these messages"):
        pf.Chat(model, tokenizer(template="{# nothing #}")).say("a")


def test_a_model_may_have_rows_of_which_its_tokenizer_knows_nothing(model):
    stack = pf.StackConfig(d_model=16, num_layers=1, num_heads=2)
    wider = pf.Decoder(pf.DecoderConfig(len(LETTERS) + 4, 256, stack=stack), key=jax.random.key(0))
    wider = eqx.tree_at(lambda model: model.embedding.weight, wider, replace_fn=lambda table: table.at[-4:].set(0))
    chat = pf.Chat(wider, tokenizer())
    list(chat.say("abc", max_new_tokens=3))
    assert [each["role"] for each in chat.messages] == ["user", "assistant"]


def test_a_terminal_asks_and_answers(model, monkeypatch, capsys):
    asked = iter(["abc", ""])
    monkeypatch.setattr("builtins.input", lambda prompt: next(asked))
    monkeypatch.setattr(terminal, "open_model", lambda path: (model, tokenizer()))
    terminal.main(["somewhere", "--room", "64"])
    assert continued(model, [{"role": "user", "content": "abc"}], 50)[:5] in capsys.readouterr().out
    monkeypatch.undo()
    with pytest.raises(SystemExit):
        terminal.main(["/nowhere/at/all"])
    assert "There is no folder" in capsys.readouterr().err


@pytest.mark.parametrize("end", [EOFError, KeyboardInterrupt])
def test_a_conversation_goes_on_after_what_goes_wrong_until_it_is_ended(monkeypatch, capsys, end):
    wrong = {"stop": KeyboardInterrupt(), "long": ValueError("!"), "odd": TypeError("?"), "bare": ImportError(":")}
    asked = iter(wrong)

    class Chat:
        def say(self, question):
            yield question
            raise wrong[question]

    def ask(prompt):
        for question in asked:
            return question
        raise end

    monkeypatch.setattr("builtins.input", ask)
    monkeypatch.setattr(terminal, "open_model", lambda path: (None, None))
    monkeypatch.setattr(terminal, "Chat", lambda *arguments, **options: Chat())
    terminal.main(["somewhere"])
    assert capsys.readouterr().out.splitlines()[1:] == ["stop …", "long!", "odd?", "bare:"]


@pytest.mark.parametrize("error", [OSError, ValueError, TypeError, ImportError, KeyboardInterrupt])
def test_what_cannot_be_opened_ends_the_program(monkeypatch, error):
    def open_model(path):
        raise error("it")

    monkeypatch.setattr(terminal, "open_model", open_model)
    with pytest.raises(SystemExit) as ended:
        terminal.main(["somewhere"])
    assert ended.value.code == 1


def test_logits_of_a_rewound_cache_are_those_of_a_new_one(model):
    chat = pf.Chat(model, tokenizer())
    chat._logits_after([*range(9)] * 9)
    again = chat._logits_after([0, 1, 2, 7])
    jnp.allclose(again, model(jnp.asarray([0, 1, 2, 7]))[-1:], atol=1e-5).item() or pytest.fail("rows left over")
