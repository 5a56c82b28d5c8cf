"""The most memory that training and writing take, each in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.report import ROOT, Section, Settings, say, table

MIB = 2**20


def resident() -> tuple[int, int]:
    """Bytes of memory that this process holds now, and the most that it ever held."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would also count what the parent held when it started this process
        sizes = dict(line.split(":\t") for line in status.read_text().splitlines() if line.startswith("Vm"))
        return tuple(1024 * int(sizes[name].split()[0]) for name in ("VmRSS", "VmHWM"))
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return most, most


def planned_by_xla(train_step, *arguments) -> int:
    """Bytes that the compiled step holds at once, as XLA planned it: arguments, results and what is in between."""
    import jax

    # The shapes are enough, and all that is left of arguments once they have been trained on.
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), arguments)
    plan = train_step.func.lower(*train_step.args, *shapes, 0).compile().memory_analysis()
    sizes = plan.argument_size_in_bytes + plan.output_size_in_bytes + plan.temp_size_in_bytes
    return sizes - plan.alias_size_in_bytes


def train(who: str) -> dict[str, float]:
    """Train for three steps in this process."""
    from benchmarks import training_step as part

    part.use_all_cores()
    before, _ = resident()
    config, batch_size = part.LARGE
    batch, compiled = part.new_batch(config, batch_size), None
    if who == "Plainformer":
        run, compiled = part.our_step(config, batch)
    else:
        model = part.GPT(config) if who == "PyTorch" else part.new_gpt2(config)
        run = part.torch_step(model, batch, compiled=False)
    for _ in range(3):
        run()
    _, most = resident()  # before planning, which compiles once more
    return {"before": before, "most": most, "planned": compiled and planned_by_xla(*compiled)}


def write(who: str) -> dict[str, float]:
    """Write 16 tokens after a long prompt in this process."""
    import torch

    from benchmarks import generation as part, gpt2

    part.use_all_cores()
    before, _ = resident()
    config = part.CONFIGS["12 × 768"]
    prompt = part.new_prompt(config, part.LONG_PROMPT)
    if who == "Plainformer":
        model = part.pf.Decoder(config, key=part.jax.random.key(0))
        part.pf.generate(model, [prompt], 16, temperature=0)
    else:
        ids = torch.tensor([prompt])
        model = gpt2.new_gpt2(config).eval()
        model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=16, do_sample=False)
    _, most = resident()
    return {"before": before, "most": most, "planned": None}


CASES = {
    "training step, 6 × 384": (train, ("Plainformer", "PyTorch", "transformers")),
    "generation, 12 × 768": (write, ("Plainformer", "transformers")),
}


def memory(settings: Settings) -> Section:
    rows = []
    for case, (_, names) in CASES.items():
        for who in names:
            say(f"memory: {case}, {who}")
            command = [sys.executable, "-m", "benchmarks.memory", case, who]
            done = subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True)
            sizes = json.loads(done.stdout.splitlines()[-1])
            planned = "" if sizes["planned"] is None else f"{sizes['planned'] / MIB:,.0f}"
            grown = (sizes["most"] - sizes["before"]) / MIB
            rows.append([case, who, f"{grown:,.0f}", f"{sizes['most'] / MIB:,.0f}", planned])
    head = ["what", "who", "peak beyond the imports, MiB", "peak in all, MiB", "planned by XLA, MiB"]
    note = (
        "Resident memory of a fresh process, PyTorch and `transformers` eager. Ours includes the compiler, which works "
        "in the same process; what the compiled step itself holds is in the last column. Generation: a prompt of 512 "
        "tokens, 16 written."
    )
    return Section("Peak memory", note + "\n\n" + table(head, rows), [])


if __name__ == "__main__":
    case, who = sys.argv[1:]
    print(json.dumps(CASES[case][0](who)))
