"""The features of a story for a linear model that is told which sentences belong together.

It is told, too, that one name may stand for another: all but the box become variables, as they occur.
"""

from plainformer.data.little_world import CLOTHES, PEOPLE, ROOMS, SMALL_THINGS, SWITCHES

VARIABLES = dict.fromkeys(PEOPLE, "P") | dict.fromkeys(ROOMS, "R") | dict.fromkeys(SMALL_THINGS, "T")
OF_WEATHER = {*CLOTHES, *CLOTHES.values()}


def about(sentence: list[str]) -> set[str]:
    """The people, things and switches that a sentence is about, or the weather."""
    found = {word for word in sentence if word in (*PEOPLE, *SMALL_THINGS, *SWITCHES, "box")}
    return found | ({"weather"} if OF_WEATHER & {*sentence} else set())


def with_variables(sentences: list[list[str]]) -> str:
    """Some sentences in a row, with variables in place of names."""
    names: dict[str, str] = {}
    for word in (word for sentence in sentences for word in sentence if word in VARIABLES):
        kind = VARIABLES[word]
        names.setdefault(word, kind + str(sum(each.startswith(kind) for each in names.values())))
    return " > ".join(" ".join(names.get(word, word) for word in sentence) for sentence in sentences)


def belonging(text: str) -> list[str]:
    """Each sentence by itself, beside the last one before it about the same, and one step further back."""
    said = [sentence.split() for sentence in text.strip(" .").split(" . ")]
    told = [set() if "?" in sentence else about(sentence) for sentence in said]  # a question tells nothing
    found = []
    for now, sentence in enumerate(said):
        found.append(with_variables([sentence]))
        places = {what: [n for n in range(now) if what in told[n]] for what in {*about(sentence), *SWITCHES}}
        for what in about(sentence):
            if not places[what]:
                found.append(f"first {with_variables([sentence])}")
                continue
            before = places[what][-1]
            found.append(with_variables([said[before], sentence]))
            for other in told[before] - {what}:
                further = [n for n in range(now) if other in told[n] and n != before]
                found += [with_variables([said[before], said[n], sentence]) for n in further[-1:]]
        if "light" in sentence and all(places[switch] for switch in SWITCHES):
            found.append(with_variables([*(said[places[switch][-1]] for switch in SWITCHES), sentence]))
    return found
