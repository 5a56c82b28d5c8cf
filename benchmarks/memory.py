"""The most memory that training and writing take, each in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

from report import Section, Settings, say, table

MIB = 2**20
CASES = {
    "training step, 6 × 384": ("Plainformer", "PyTorch", "transformers"),
    "generation, 12 × 768": ("Plainformer", "transformers"),
}


def resident() -> tuple[int, int]:
    """Bytes of memory that this process holds now, and the most that it ever held."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would also count what the parent held when it started this process
        sizes = dict(line.split(":\t") for line in status.read_text().splitlines() if line.startswith("Vm"))
        return tuple(1024 * int(sizes[name].split()[0]) for name in ("VmRSS", "VmHWM"))
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return most, most


def planned_by_xla(step_once, state, batch) -> int:
    """Bytes that the compiled step holds at once, as XLA planned it: arguments, results and what is in between."""
    import jax

    # The shapes are enough, and all that is left of a state once it has been trained on.
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), (state, batch))
    plan = step_once.lower(*shapes, 0).compile().memory_analysis()
    sizes = plan.argument_size_in_bytes + plan.output_size_in_bytes + plan.temp_size_in_bytes
    return sizes - plan.alias_size_in_bytes


def run_case(case: str, who: str) -> dict[str, float]:
    """Do it in this process: what it held after its imports, and the most it ever held; both in bytes."""
    compiled = None
    if case.startswith("training"):
        import training_step as part

        config, batch_size = part.LARGE
        batch = part.new_batch(config, batch_size)
        part.use_all_cores()
        before, _ = resident()
        if who == "Plainformer":
            run, compiled = part.our_step(config, batch)
        else:
            model = part.GPT(config) if who == "PyTorch" else part.new_gpt2(config)
            run = part.torch_step(model, batch, compiled=False)
        for _ in range(3):
            run()
    else:
        import generation as part

        part.use_all_cores()
        before, _ = resident()
        config = part.CONFIGS["12 × 768"]
        if who == "Plainformer":
            model = part.pf.Decoder(config, key=part.jax.random.key(0))
            part.pf.generate(model, [part.new_prompt(config, 512)], 16, temperature=0)
        else:
            from gpt2 import new_gpt2

            gpt2 = new_gpt2(config).eval()
            ids = part.torch.tensor([part.new_prompt(config, 512)])
            gpt2.generate(ids, attention_mask=part.torch.ones_like(ids), max_new_tokens=16, do_sample=False)
    _, most = resident()  # before planning, which compiles once more
    return {"before": before, "most": most, "planned": compiled and planned_by_xla(*compiled)}


def memory(settings: Settings) -> Section:
    rows = []
    for case, names in CASES.items():
        for who in names:
            say(f"memory: {case}, {who}")
            command = [sys.executable, __file__, case, who]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
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
    print(json.dumps(run_case(*sys.argv[1:])))
