"""Eight devices, which any processor can pretend to have: said before JAX starts, and so in a process of its own."""

import jax

jax.config.update("jax_num_cpu_devices", 8)
