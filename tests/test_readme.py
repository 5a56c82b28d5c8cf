"""The examples of the README run as they stand, on small files and with smaller sizes."""

from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
SMALL = "pf.StackConfig(d_model=8, num_layers=1)"
SMALLER = {
    "num_steps=500": "num_steps=2",
    "pf.StackConfig(d_model=128, num_layers=4)": SMALL,
    "pf.StackConfig(d_model=128, num_layers=2)": SMALL,
    "source_len=128,": f"source_len=8, encoder={SMALL}, decoder={SMALL},",
    "length=128": "length=8",
    "context_len=128": "context_len=8",
}
FILES = {
    "my.txt": "to be or not to be, " * 60,
    "texts/one.txt": "the cat sat on the mat " * 20,
    "texts/two.txt": "the dog sat on the log " * 20,
    "reviews.csv": "id;review;stars\n" + "1;a good one;5\n2;no good;1\n" * 20,
    "source.txt": "one\ntwo\nsix\n",
    "target.txt": "uno\ndue\nsei\n",
}
ELSEWHERE = ("their_gpt2", "pf.live")  # tested where these libraries are


def test_the_examples_of_the_readme_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
    examples = [block.partition("```")[0] for block in README.read_text(encoding="utf-8").split("```python\n")[1:]]
    names: dict = {}
    for example in examples:
        if not any(part in example for part in ELSEWHERE):
            for size, small in SMALLER.items():
                example = example.replace(size, small)
            exec(example, names)
    assert names["pf"].training.load_metadata("stars.safetensors") == {"classes": ["1", "5"]}
    assert Path("my.safetensors").exists()
    assert len(capsys.readouterr().out.splitlines()) > 3
