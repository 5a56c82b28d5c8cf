"""Run in a chapter's kernel before its first cell: note the modules and files of the book that are asked for."""


def _watch() -> None:
    """Write a line for each module of the package, each file of the book and each further Python that is started.

    The variable `BOOK_WATCH` names the file to write into, the folder of the book and the package. Nothing is left in
    the namespace of the chapter.
    """
    import os
    import sys

    notes, root, package = os.environ.pop("BOOK_WATCH").split("\n")
    out = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    seen = set()
    writing = os.O_WRONLY | os.O_RDWR

    def note(event: str, given: tuple) -> None:
        if event == "import" and (given[0] == package or given[0].startswith(package + ".")):
            line = f"module {given[0]}"
        elif event in ("open", f"{package}.stored") and os.path.abspath(str(given[0])).startswith(root):
            written = event == "open" and given[2] & writing
            line = f"{'written' if written else 'file'} {os.path.abspath(str(given[0]))}"
        elif event == "subprocess.Popen" and "python" in str(given[0]):
            line = "process of Python"
        else:
            return
        if line not in seen:
            seen.add(line)
            os.write(out, (line + "\n").encode())

    sys.addaudithook(note)


_watch()
del _watch
