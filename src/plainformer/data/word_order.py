"""Stories of the little world in another order of words: the verb at the end, as in Turkish or Japanese."""

from plainformer.checks import checked

VERBS = ("is", "has", "goes", "takes", "drops", "puts", "wears")


@checked
def verbs_last(story: str) -> str:
    """Move the verb of every sentence to its end, before the full stop or the question mark.

    Nothing else changes, so that a story tells what it told, in as many words, and is as likely as it was.

    Example:
        >>> pf.data.verbs_last(". the lamp is in the hall . Anna takes the lamp . where is the lamp ? hall .")
        '. the lamp in the hall is . Anna the lamp takes . where the lamp is ? hall .'
    """
    words: list[str] = []
    waiting: list[str] = []
    for word in story.split(" "):
        if word in VERBS:
            waiting.append(word)
            continue
        if word in (".", "?"):
            words, waiting = words + waiting, []
        words.append(word)
    return " ".join(words + waiting)
