"""The engine of the live figures: in the page, the stored models compute what they compute in Python."""

import base64
import json
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from plainformer.pretrained import SmilesTokenizer, packaged_folder

RANDOM = np.random.default_rng(0)
RUNS = 4
TOLERANCE = 1e-4
DECODERS = ["decoder", "date_decoder", "things_decoder", "stories", "shakespeare"]
ENCODERS = ["encoder", "things_encoder"]
TRANSLATORS = ["seq2seq", "numbers"]

# Runs a method of a model on each of a list of inputs; matrices come back as lists of rows.
ASK = """async ([name, method, inputs]) => {
    const static_ = new URL('_static/', document.baseURI);
    const { answer } = await import(new URL('widgets/engine/host.mjs', static_));
    const { rowsOf } = await import(new URL('widgets/engine/arrays.mjs', static_));
    await answer({ name, method: 'load', inputs: [new URL(`models/${name}.safetensors`, static_).href] });
    const plain = (value) => value?.data ? rowsOf(value) : Array.isArray(value) ? value.map(plain)
        : value && typeof value === 'object' ? Object.fromEntries(Object.entries(value).map(([k, v]) => [k, plain(v)]))
        : value;
    const results = [];
    for (const given of inputs) results.push(plain(await answer({ name, method, inputs: given })));
    return results;
}"""


@pytest.fixture(scope="module")
def page(browser, site):
    """A page of the site on which nothing is shown, where modules of the engine can be imported."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(site + "404.html")
    yield page
    context.close()


@pytest.fixture(scope="module")
def ask(page):
    """A function that has the engine run a method of a stored model on each of several inputs."""
    return lambda name, method, inputs: page.evaluate(ASK, [name, method, inputs])


@pytest.fixture
def context(browser):
    """A window of the test's own, in which the engine meets with no service worker."""
    context = browser.new_context(service_workers="block")
    yield context
    context.close()


def opened(context, site):
    page = context.new_page()
    page.goto(site + "404.html")
    return page


@pytest.fixture(scope="module")
def stored():
    """A function that loads a stored model, once."""
    found = {}

    def load(name):
        if name not in found:
            found[name] = pf.load_pretrained(name)[0]
        return found[name]

    return load


def random_texts(model, longest, runs=RUNS):
    """Texts of four lengths, of which JAX compiles each once."""
    lengths = [1, longest, longest // 2, longest // 3 + 1]
    return [RANDOM.integers(0, model.config.vocab_size, lengths[run % 4]).tolist() for run in range(runs)]


def random_pairs(model, runs=RUNS):
    sources = random_texts(model, model.config.source_len, runs)
    targets = random_texts(model, model.config.context_len - 1, runs)
    return [[source, [model.config.start_token, *target]] for source, target in zip(sources, targets, strict=True)]


def random_images(model, runs=RUNS):
    return RANDOM.random((runs, *model.config.image_size)).astype(np.float32).tolist()


def close(found, wanted, what=""):
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), atol=TOLERANCE, rtol=TOLERANCE, err_msg=what)


METHODS = {
    "call": "__call__",
    "residualStream": "residual_stream",
    "attentionWeights": "attention_weights",
    "crossAttentionWeights": "cross_attention_weights",
}


@pytest.mark.parametrize("name", DECODERS + ENCODERS)
def test_reader_of_one_text(ask, stored, name):
    model = stored(name)
    texts = random_texts(model, model.config.context_len)
    for method in ("call", "residualStream", "attentionWeights"):
        for text, found in zip(texts, ask(name, method, [[text] for text in texts]), strict=True):
            wanted = getattr(model, METHODS[method])(jnp.asarray(text))
            close(found, jnp.stack([*wanted]), f"{name} {method} of {len(text)} tokens")


def test_a_packages_model_with_one_block_for_all(ask):
    """Narrow tables that are widened, a norm of the embeddings, segments, and twelve times one block."""
    folder = packaged_folder("rxnmapper")
    model, _ = pf.open_model(folder, tokenizer=False)
    text = SmilesTokenizer.in_folder(folder).encode("CC(=O)O.OCC>>CC(=O)OCC")
    ids = jnp.asarray(text)
    for method in ("call", "attentionWeights"):
        (found,) = ask("chemist", method, [[text]])
        close(found, jnp.stack([*getattr(model, METHODS[method])(ids, None, jnp.zeros_like(ids))]), method)


@pytest.mark.parametrize("name", TRANSLATORS)
def test_translator(ask, stored, name):
    model = stored(name)
    pairs = random_pairs(model)
    for method in ("call", "attentionWeights", "crossAttentionWeights"):
        for (source, target), found in zip(pairs, ask(name, method, pairs), strict=True):
            wanted = getattr(model, METHODS[method])(jnp.asarray(source), jnp.asarray(target))
            close(found, wanted, f"{name} {method}")


@pytest.mark.parametrize("name", ["vision", "vision_crossing"])
def test_vision(ask, stored, name):
    model = stored(name)
    images = random_images(model)
    batch = jnp.asarray(images)[..., None]
    close(ask(name, "call", [[image] for image in images]), model(batch), name)
    close(ask(name, "attentionWeights", [[image] for image in images[:3]]), model.attention_weights(batch[:3]), name)


@pytest.mark.parametrize("name", ["decoder", "stories"])
def test_cache_gives_what_reading_anew_gives(ask, stored, name):
    """A text that grows, shrinks, changes in the middle, and stays as it is."""
    model = stored(name)
    text = RANDOM.integers(0, model.config.vocab_size, 20).tolist()
    changed = [*text[:9], (text[9] + 1) % model.config.vocab_size, *text[10:]]
    texts = [text[:7], text[:8], text, text, text[:5], text[:6], changed, text]
    wanted = [model(jnp.asarray(each)) for each in texts]
    for found, want in zip(ask(name, "extend", [[each] for each in texts]), wanted, strict=True):
        close(found, want, "extend")
    for found, want in zip(ask(name, "next", [[each] for each in texts]), wanted, strict=True):
        close(found, want[-1], "next")


def test_translator_writes_with_a_cache(ask, stored):
    name = "seq2seq"
    model = stored(name)
    (source, target), (other, _) = random_pairs(model, 2)
    asked = [[source, target[:1]], [source, target], [other, target], [source, target[:1]], [source, target]]
    for (given, written), found in zip(asked, ask(name, "next", asked), strict=True):
        close(found, model(jnp.asarray(given), jnp.asarray(written))[-1])


def test_every_step_of_a_block_can_be_seen(ask, stored):
    """What the engine shows has the names, and is, what `pf.look` shows in Python."""
    model = stored("decoder")
    text = random_texts(model, 40)[1]
    (found,) = ask("decoder", "intermediates", [["call", text]])
    _, seen = pf.look(model, jnp.asarray(text))
    assert found.keys() - {"returned"} == seen.keys()
    for place, value in seen.items():
        close(found[place], value)
    close(found["returned"], model(jnp.asarray(text)))


STACKS = {
    "the default": {},
    "post-norm, ReLU, grouped heads": {"norm_placement": "post", "activation": "relu", "num_kv_heads": 2},
    "rotary, GEGLU, one key head": {"position_scheme": "rotary", "activation": "geglu", "num_kv_heads": 1},
    "sinusoidal, tanh, wide keys": {"position_scheme": "sinusoidal", "activation": "gelu_tanh", "d_k": 6, "d_v": 5},
    "no positions, RMS, no bias": {"position_scheme": "none", "norm": "rms", "use_bias": False},
    "squared, another base": {"activation": "squared_relu", "position_scheme": "rotary", "rope_theta": 100.0},
    "quick, gate": {"activation": "quick_gelu", "norm_eps": 0.1},
    "silu, gate of tanh": {"activation": "geglu_tanh"},
    "silu": {"activation": "silu"},
}
OWN = """async ([bytes, method, inputs]) => {
    const { answer } = await import(new URL('_static/widgets/engine/host.mjs', document.baseURI));
    const name = `own-${Math.random()}`;
    await answer({ name, method: 'load', inputs: [Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0)).buffer] });
    const found = await answer({ name, method, inputs });
    return Array.from(found.data ?? found);
}"""


def with_random_vectors(model):
    """Biases, scales and rows of tables that start at zeros or ones, drawn instead, so that none can be left out."""
    leaves, structure = jax.tree.flatten(model)
    keys = jax.random.split(jax.random.key(1), len(leaves))
    leaves = [x + 0.3 * jax.random.normal(key, x.shape) for x, key in zip(leaves, keys, strict=True)]
    return jax.tree.unflatten(structure, leaves)


OWN_MODELS = [("decoder", stack) for stack in STACKS]
OWN_MODELS += [(kind, stack) for kind in ("encoder", "seq2seq", "vision") for stack in [*STACKS][1:3]]


@pytest.mark.parametrize(("kind", "stack"), OWN_MODELS)
def test_models_of_ones_own(page, tmp_path, kind, stack):
    """Whatever blocks a reader chooses, the page computes what Python computes."""
    sizes = pf.StackConfig(d_model=16, num_layers=2, **STACKS[stack])
    text, other, key = [3, 1, 4, 1, 5, 9, 2], [0, 2, 6, 5], jax.random.key(0)
    image = np.random.default_rng(1).random((4, 8)).astype(np.float32)
    model, inputs = {
        "decoder": (pf.Decoder(pf.DecoderConfig(11, 9, stack=sizes, tied_embedding=False), key=key), [text]),
        "encoder": (
            pf.MaskedLanguageModel(pf.EncoderConfig(vocab_size=11, context_len=9, stack=sizes), key=key),
            [text],
        ),
        "seq2seq": (pf.Seq2Seq(pf.Seq2SeqConfig(11, 9, 9, 0, 1, encoder=sizes, decoder=sizes), key=key), [text, other]),
        "vision": (
            pf.ViT(pf.ViTConfig(image_size=(4, 8), patch_size=2, num_classes=3, pooling="mean", stack=sizes), key=key),
            [image],
        ),
    }[kind]
    model = with_random_vectors(model)
    pf.save_model(tmp_path / "own.safetensors", model)
    data = base64.b64encode((tmp_path / "own.safetensors").read_bytes()).decode()
    found = page.evaluate(OWN, [data, "call", [each if kind != "vision" else each.tolist() for each in inputs]])
    arrays = [jnp.asarray(each)[..., None] if kind == "vision" else jnp.asarray(each) for each in inputs]
    close(found, np.ravel(model(*arrays)), f"{kind}: {stack}")


def test_vocabulary(page):
    """Ids and texts as in Python, also of what the vocabulary has not."""
    _, vocabulary = pf.load_pretrained("seq2seq")
    texts = ["17 July 1987", "", "22. März 2031", "日本 🙂 <start>", "a\u0301\u200f", "\ud7ff"]
    found = page.evaluate(
        """async ([parts, texts]) => {
            const { Vocabulary } = await import(new URL('_static/widgets/engine/tokenizer.mjs', document.baseURI));
            const vocabulary = new Vocabulary(parts);
            return texts.map((text) => { const ids = vocabulary.encode(text); return [ids, vocabulary.decode(ids)]; });
        }""",
        [json.loads(vocabulary.to_json()), texts],
    )
    assert found == [[vocabulary.encode(text), vocabulary.decode(vocabulary.encode(text))] for text in texts]


def test_byte_pairs(page):
    """Ids and texts as in Python, also of what no training text had."""
    _, encoder = pf.load_pretrained("shakespeare")
    texts = ["ROMEO:\nWhat light", "", "don't  stop,\n\n 42 times", "日本 🙂 a\u0301", "\u200f\t x"]
    found = page.evaluate(
        """async ([parts, texts]) => {
            const { tokenizerOf } = await import(new URL('_static/widgets/engine/tokenizer.mjs', document.baseURI));
            const encoder = tokenizerOf(parts);
            const refused = (change) => {
                try { return tokenizerOf({ ...parts, ...change }); } catch (error) { return error.message; }
            };
            return [texts.map((text) => { const ids = encoder.encode(text); return [ids, encoder.decode(ids)]; }),
                [refused({ pattern: 'x' }), refused({ special: ['<end>'] })]];
        }""",
        [json.loads(encoder.to_json()), texts],
    )
    assert found[0] == [[encoder.encode(text), encoder.decode(encoder.encode(text))] for text in texts]
    assert all("GPT-2's pieces and no special tokens" in message for message in found[1])


FAULTS = {
    "cut short": (lambda data: data[:100_000], "is cut short"),
    "empty": (lambda data: b"", "it has 0 bytes"),
    "a web page": (lambda data: b"<!doctype html><p>Not found</p>", "header is cut short"),
    "one number changed": (lambda data: data[:-3] + bytes([data[-3] ^ 1]) + data[-2:], "numbers are not those saved"),
    "a header altered": (lambda data: data.replace(b'"shape"', b'"shade"', 1), "does not say where"),
    "another type": (lambda data: data.replace(b'"F32"', b'"F16"'), "holds F16"),
}
LOAD = """async (name) => {
    const { loadModel } = await import(new URL('_static/widgets/engine/client.mjs', document.baseURI));
    const steps = [];
    const address = new URL(`_static/models/${name}.safetensors`, document.baseURI).href;
    try {
        const model = await loadModel(name, address, (loaded, total) => steps.push([loaded, total]));
        const logits = await model.ask('next', model.tokenizer.encode('Return'));
        return { steps, logits };
    } catch (error) {
        return { error: error.message };
    }
}"""

LOAD_HERE = """async (name) => {
    const { answer } = await import(new URL('_static/widgets/engine/host.mjs', document.baseURI));
    const address = new URL(`_static/models/${name}.safetensors`, document.baseURI).href;
    return answer({ name, method: 'load', inputs: [address] });
}"""
BREAK = """() => {
    const lose = (stream) => setTimeout(() => stream.error(new TypeError('lost')));
    const start = (stream) => { stream.enqueue(new Uint8Array(1000)); lose(stream); };
    window.fetch = async () => new Response(new ReadableStream({ start }));
}"""
FILL = "() => { Cache.prototype.put = async () => { throw new DOMException('full', 'QuotaExceededError'); }; }"
SPOIL = """async () => {
    const shelf = await caches.open('plainformer');
    for (const request of await shelf.keys()) await shelf.put(request, new Response('damaged'));
}"""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_damaged_file_is_named(context, site, fault):
    spoil, message = FAULTS[fault]
    context.route("**/*.safetensors", lambda route: route.fulfill(body=spoil(route.fetch().body())))
    assert message in opened(context, site).evaluate(LOAD, "decoder")["error"]


GONE = {
    "status 404": lambda route: route.fulfill(status=404),
    "no connection": lambda route: route.abort(),
}


def test_a_missing_file_is_named_and_can_be_asked_for_again(context, site):
    page = opened(context, site)
    for expected, answer in GONE.items():
        context.route("**/*.safetensors", answer)
        assert expected in page.evaluate(LOAD, "decoder")["error"]
        context.unroute("**/*.safetensors")
    assert len(page.evaluate(LOAD, "decoder")["logits"]) == 97


def test_an_engine_that_cannot_be_fetched_is_asked_for_again(context, site):
    page = opened(context, site)
    context.route(re.compile("engine/(worker|host)"), lambda route: route.abort())
    assert "there is no connection" in page.evaluate(LOAD, "decoder")["error"]
    context.unroute(re.compile("engine/(worker|host)"))
    # A module that could not be fetched stays lost to this page, as browsers will have it, but the worker does not.
    assert len(page.evaluate(LOAD, "decoder")["logits"]) == 97


def test_a_connection_that_breaks_off_is_named(context, site):
    page = opened(context, site)
    page.evaluate(BREAK)
    assert "broke off after 1000 bytes" in page.evaluate(f"name => ({LOAD_HERE})(name).catch(String)", "vision")


def test_two_figures_fetch_their_model_once(context, site):
    fetched = []
    context.on("request", lambda request: fetched.append(request.url) if ".safetensors" in request.url else None)
    both = f"name => Promise.all([({LOAD_HERE})(name), ({LOAD_HERE})(name)])"
    first, second = opened(context, site).evaluate(both, "vision")
    assert first == second
    assert len(fetched) == 1


@pytest.mark.parametrize("kept", ["whole", "damaged", "full"])
def test_a_model_is_kept_for_the_next_visit(context, site, kept):
    """The file comes over the network once; again if what was kept is damaged, or could not be kept."""
    fetched = []

    def count(route):
        fetched.append(route.request.url)
        route.continue_()

    context.route("**/*.safetensors", count)
    for _ in range(2):
        page = opened(context, site)
        if kept == "full":
            page.evaluate(FILL)
        assert len(page.evaluate(LOAD_HERE, "vision")["config"]) > 5
        if kept == "damaged":
            page.evaluate(SPOIL)
        page.close()
    assert len(fetched) == (1 if kept == "whole" else 2)


@pytest.mark.parametrize("without", ["", "delete window.Worker; delete window.WebAssembly"])
def test_a_model_loads_with_progress(context, site, stored, without):
    """In a worker; in the page, where the browser has none; and nothing needs WebAssembly."""
    context.add_init_script(without)
    found = opened(context, site).evaluate(LOAD, "decoder")
    _, vocabulary = pf.load_pretrained("decoder")
    close(found["logits"], stored("decoder")(jnp.asarray(vocabulary.encode("Return")))[-1])
    loaded = [step[0] for step in found["steps"]]
    assert loaded == sorted(loaded)
    assert found["steps"][-1] == [loaded[-1], loaded[-1]]
    assert loaded[-1] > 3_000_000
