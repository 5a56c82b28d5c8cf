"""Speed and memory of Plainformer beside PyTorch, `transformers` and Equinox: `python -m benchmarks.run --help`."""
