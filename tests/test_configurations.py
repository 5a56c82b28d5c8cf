"""What a configuration says of a keyword that is none of its fields: where such a field is, or which there are."""

import dataclasses
import importlib
import inspect
import pickle
import pkgutil

import pytest

import plainformer as pf
from plainformer.checks import says_where


def configurations():
    """Every configuration of the package."""
    modules = [importlib.import_module(each.name) for each in pkgutil.walk_packages(pf.__path__, "plainformer.")]
    kinds = [each for module in modules for each in vars(module).values() if isinstance(each, type)]
    return sorted({each for each in kinds if each.__name__.endswith("Config")}, key=lambda each: each.__name__)


CONFIGURATIONS = configurations()


def test_every_configuration_names_its_fields_to_whoever_names_none(subtests):
    for kind in CONFIGURATIONS:
        with subtests.test(kind.__name__):
            names = ", ".join(field.name for field in dataclasses.fields(kind))
            message = rf"^{kind.__name__} has no field 'qqqqqq'; expected one of {names}\.$"
            with pytest.raises(TypeError, match=message):
                kind(qqqqqq=1)
            assert list(inspect.signature(kind).parameters) == names.split(", ")


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: pf.DecoderConfig(65, 16, d_model=8), "stack=StackConfig(d_model=…)"),
        (
            lambda: pf.Seq2SeqConfig(65, 16, 16, 0, 1, d_ff=8),
            "encoder=StackConfig(d_ff=…) or decoder=StackConfig(d_ff=…)",
        ),
        (lambda: pf.ClassifierConfig(num_heads=2), "encoder=EncoderConfig(stack=StackConfig(num_heads=…))"),
        (lambda: pf.TrainingConfig(3, lr=0.1), "learning_rate=… or min_lr_ratio=…"),
        (lambda: dataclasses.replace(pf.StackConfig(), heads=2), "num_heads=… or num_kv_heads=…"),
    ],
)
def test_a_configuration_says_where_a_field_is(call, expected):
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value).endswith(f"; expected {expected}.")


def test_says_where_of_a_class_of_ones_own():
    @says_where
    @dataclasses.dataclass(frozen=True)
    class Mine:
        """A configuration with another within."""

        size: int
        inner: pf.StackConfig | None = None

    assert Mine(3).size == Mine(size=3).size == 3
    assert dataclasses.replace(Mine(3), size=4) == Mine(4)
    with pytest.raises(TypeError, match=r"^Mine has no field 'window'"):
        Mine(3, window=2)
    with pytest.raises(TypeError, match=r"missing 1 required positional argument"):
        Mine()


def test_configurations_are_pickled_and_compared_as_ever():
    config = pf.DecoderConfig(65, 16, stack=pf.StackConfig(d_model=8, num_heads=2))
    assert pickle.loads(pickle.dumps(config)) == config
    assert hash(config) == hash(dataclasses.replace(config))
