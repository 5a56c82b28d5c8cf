"""Each loss counts the tokens that it says it counts."""

import plainformer as pf
from lab.answering import run as answering_run


def test_templates_and_losses_differ_in_what_counts():
    told = pf.data.dialogues(5, answering_run.NUM_WORDS, seed=3)
    texts = [answering_run.dialogue_ids(each) for each in told]
    counts = {loss: answering_run.windows(texts, loss).is_token.sum() for loss in answering_run.LOSSES}
    assert counts["answers"] == 2 * 5
    assert counts["end as padding"] == 5
    assert counts["questions, too"] == sum(len(each.question.split()) + 3 for each in told)
    assert counts["all tokens"] == sum(len(text) - 1 for text in texts)
    assert counts["padding, too"] == 2 * 5 + sum(answering_run.LENGTH + 1 - len(text) for text in texts)
