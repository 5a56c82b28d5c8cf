"""What a server does with few pages: a text waits until it can be written to its end, and none is lost."""

import pytest
from toy_models import drawn

import plainformer as pf
from plainformer.generation import Server

STACK = pf.StackConfig(d_model=16, num_layers=1, num_heads=2, position_scheme="rotary")
MODEL = drawn(pf.Decoder, pf.DecoderConfig(11, 16, STACK))
PROMPTS = [[1, 2, 3, 4, 5, 6], [7, 8, 9, 7, 8, 9, 1, 2], [3, 1, 4, 1]]


@pytest.mark.parametrize("num_pages", [3, 5])
def test_a_text_waits_until_there_are_pages_for_all_of_it(num_pages):
    server = Server(MODEL, places=2, page_size=4, num_pages=num_pages, temperature=0)
    for prompt in PROMPTS:
        server.submit(prompt, 4)
    found = server.run()
    assert [text.tokens for text in found.values()] == [
        text.tokens for text in pf.generate(MODEL, PROMPTS, 4, temperature=0)
    ]
    assert server.page_tables.num_held == 0
    assert server.most_held <= num_pages


def test_submit_refuses_a_text_for_which_there_will_never_be_pages():
    server = Server(MODEL, page_size=4, num_pages=2, temperature=0)
    with pytest.raises(ValueError, match=r"needs 3 pages of 4 tokens, and there are 2; .* num_pages=3"):
        server.submit(PROMPTS[1], 4)
    assert server.submit(PROMPTS[2], 4) == 0
