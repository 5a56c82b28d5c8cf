"""What a compiled program sends, read from its text."""

import jax
import jax.numpy as jnp
import pytest

from plainformer.training import Collective, collectives, count_flops

TEXT = """HloModule step
ENTRY %main (p: f32[16,64]) -> f32[16,64] {
  %p = f32[16,64]{1,0} parameter(0)
  %r.1 = f32[16,64]{1,0} all-reduce(%p), channel_id=1, replica_groups={{0,1,2,3},{4,5,6,7}}, to_apply=%add
  %g = bf16[8,3]{1,0} all-gather(%q), channel_id=2, replica_groups=[4,2]<=[2,4]T(1,0), dimensions={0}
  %s = (f32[2]{0}, /*index=1*/s8[5]{0}, pred[]) reduce-scatter(%a, %b), replica_groups=[1,8]<=[8], to_apply=%add
  %t = f32[3,4]{1,0} all-to-all(%u), channel_id=4, replica_groups=mesh['axis_0'=4,'axis_1'=2] {'axis_0'}, dimensions={0}
  %v = f32[6]{0} all-gather(%w), replica_groups=mesh['x'=8] {'x':(2)4}, metadata={op_name="all-reduce(%p)"}
  %y = f32[3,4]{1,0} collective-permute(%t), channel_id=5, source_target_pairs={{0,1},{1,0}}
  %z = f32[3,4]{1,0} add(%y, %t)
}
"""


def test_count_flops_by_hand():
    left, right, square = jnp.ones((5, 3)), jnp.ones((3, 7)), jnp.ones((2, 4, 4))
    assert count_flops(jnp.matmul, left, right) == count_flops(jax.jit(jnp.matmul), left, right) == 2 * 5 * 3 * 7
    assert count_flops(lambda x: jax.lax.scan(lambda y, _: (y @ x, None), x, length=6), square) == 6 * 2 * 2 * 4**3
    assert count_flops(jnp.sin, left) == 0


class Compiled:
    def __init__(self, text=TEXT):
        self.text = text

    def as_text(self):
        return self.text


def test_collectives_read_kind_bytes_and_group():
    found = collectives(Compiled())
    assert found == [
        Collective("all-reduce", 4 * 16 * 64, 4),
        Collective("all-gather", 2 * 8 * 3, 2),
        Collective("reduce-scatter", 4 * 2 + 5 + 1, 8),
        Collective("all-to-all", 4 * 3 * 4, 4),
        Collective("all-gather", 4 * 6, 4),
        Collective("collective-permute", 4 * 3 * 4, 2),
    ]
    shares = [each.sent_bytes / each.num_bytes for each in found]
    assert shares == [2 * 3 / 4, 1 / 2, 7, 3 / 4, 3 / 4, 1]


BEGINNING = """
  %a = f32[16,64]{1,0} all-reduce-start(%p), replica_groups={{0,1,2,3}}, to_apply=%add
  %b = (f32[16]{0}, bf16[3]{0}) all-reduce-start(%p, %q), replica_groups=[1,8]<=[8], to_apply=%add
  %c = (f32[2]{0}, f32[8,1]{1,0:T(8,128)}) all-gather-start(%p), replica_groups={{0,1,2,3}}, dimensions={0}
  %d = ((f32[8]{0}, s8[16]{0}), (f32[2]{0}, s8[4]{0})) reduce-scatter-start(%p, %q), replica_groups={{0,1,2,3}}
  %e = (f32[6]{0}, f32[6]{0}, u32[], u32[]) collective-permute-start(%p), source_target_pairs={{0,1}}
  %f = f32[16,64]{1,0} all-reduce-done(%a)
"""


def test_collectives_read_those_that_begin_in_one_line_and_end_in_another():
    assert collectives(Compiled(BEGINNING)) == [
        Collective("all-reduce", 4 * 16 * 64, 4),
        Collective("all-reduce", 4 * 16 + 2 * 3, 8),
        Collective("all-gather", 4 * 8, 4),
        Collective("reduce-scatter", 4 * 2 + 4, 4),
        Collective("collective-permute", 4 * 6, 2),
    ]


def test_collectives_of_one_device_are_none():
    assert collectives(jax.jit(jnp.sum).lower(jnp.ones(3)).compile()) == []


def test_collectives_refuse_what_is_not_compiled():
    with pytest.raises(TypeError, match=r"compiled is of type .*; expected a compiled program, such as jax\.jit"):
        collectives(jnp.sum)
