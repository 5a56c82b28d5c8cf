"""Arguments held to their annotations, and one wording for what is wrong with one: what it is, what was expected."""

import dataclasses
import difflib
import functools
import inspect
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import checkify
from jax.sharding import AxisType, Mesh

Function = TypeVar("Function", bound=Callable)
Config = TypeVar("Config")

MASK = "a Boolean array, True where a query may attend to a key."
ANOTHER = "Were these ids made by another vocabulary?"
# What to try, by the argument's name, where its shape or its type alone does not tell.
HINTS = {
    "mask": "For padding use padding_mask(is_token, q_seq); for causal order use causal_mask(seq_len).",
    "context_mask": "For padding use padding_mask(is_token, q_seq).",
    "image": "For a grey image, pass image[:, :, None].",
    **dict.fromkeys(["is_token", "is_source", "is_maskable", "segments"], "One for each token."),
    "targets": "One target per row of logits.",
    "scheme": "Pass one of the chapter on positions, such as RotaryPositions(), or NoPositions() for none.",
}


class Number(NamedTuple):
    """Which numbers an argument may be: those that are `allowed`; in words; whether it must be a whole one, and whether
    it may be traced, as one that is learned is."""

    allowed: Callable[[float], bool]
    expected: str
    whole: bool = False
    traced: bool = False

    def __repr__(self) -> str:
        return self.expected  # as the API page shows it: Annotated[int, at least 1]

    def read(self, name: str, number) -> Any:
        """Return the number as Python's own; raise `TypeError` if it is none, `ValueError` if it is not allowed."""
        if type(number) is (int if self.whole else float) and self.allowed(number):
            return number
        if self.traced and isinstance(number, jax.Array) and np.ndim(number) == 0:
            if self.whole and not jnp.issubdtype(number.dtype, jnp.integer):
                raise TypeError(f"{name} holds {number.dtype}; expected a whole number, {self.expected}.")
            if isinstance(number, jax.core.Tracer):
                return number
            number = number.item()
        if isinstance(number, jax.core.Tracer):
            raise TypeError(
                f"{name} is traced, so that it has no value yet; expected a number known before compiling. "
                "Write it into the function, or name it in static_argnames of jax.jit."
            )
        kind, fits = "a number", hasattr(number, "__float__") and np.ndim(number) == 0
        if self.whole:
            kind, fits = "a whole number", isinstance(number, int | np.integer)
        if isinstance(number, bool | np.bool_) or not fits:
            raise TypeError(f"{name} is {number!r}; expected {kind}, {self.expected}.")
        if not self.allowed(number):
            raise ValueError(f"{name} is {number}; expected {self.expected}.")
        return int(number) if self.whole else float(number)


# A matrix with sizes below 2^30 has fewer bytes than XLA can count to: beyond, it ends the process.
Positive = Annotated[int, Number(lambda n: 1 <= n < 2**30, "at least 1 and below 2^30", whole=True)]
Count = Annotated[int, Number(lambda n: n >= 1, "at least 1", whole=True)]
Natural = Annotated[int, Number(lambda n: 0 <= n < 2**31, "at least 0 and below 2^31", whole=True)]
Even = Annotated[int, Number(lambda n: n > 0 and n % 2 == 0, "even and above 0, as columns go in pairs", whole=True)]
PositiveFloat = Annotated[float, Number(lambda x: 0 < x < math.inf, "finite and above 0")]
NonNegative = Annotated[float, Number(lambda x: 0 <= x < math.inf, "finite and at least 0")]
Finite = Annotated[float, Number(math.isfinite, "finite", traced=True)]
Rate = Annotated[float, Number(lambda x: 0 <= x < 1, "at least 0 and below 1, such as 0.1 for 10 per cent")]


class Kind(NamedTuple):
    """Which arguments that are no numbers may come: those that are `allowed`; in words."""

    allowed: Callable[[Any], bool]
    expected: str

    def read(self, name: str, argument):
        """Return the argument; raise `TypeError` if it is of another kind."""
        if not self.allowed(argument):
            raise TypeError(f"{name} is {_what(argument)}; expected {self.expected}.")
        return argument


def _what(argument) -> str:
    """What an argument is, in words that are the same for an array that is being traced."""
    return "an array" if isinstance(argument, jax.Array) else f"of type {type(argument).__name__}"


def _is_key(key) -> bool:
    """Whether this is one random key, of the new kind or of the old one, which is an array of numbers."""
    dtype, shape = getattr(key, "dtype", None), getattr(key, "shape", None)
    new = dtype is not None and shape == () and jnp.issubdtype(dtype, jax.dtypes.prng_key)
    return new or (dtype == jnp.uint32 and shape in ((2,), (4,)))


KEY = Kind(_is_key, "a single random key, such as jax.random.key(0)")
PATH = Kind(lambda path: isinstance(path, str | os.PathLike), "the name of a file or folder, a string or a Path")
FUNCTION = Kind(callable, "a function")
MESH = Kind(lambda mesh: isinstance(mesh, Mesh), 'devices with names, such as jax.make_mesh((8,), ("data",)) makes')


def _is_table(table) -> bool:
    """Whether this is a dictionary of strings by strings."""
    return isinstance(table, dict) and all(isinstance(each, str) for each in [*table, *table.values()])


TABLE = Kind(_is_table, 'names of axes by names of axes, such as pf.training.DATA, {"batch": "data"}')
KINDS: dict[Any, Kind] = {  # what an annotation asks for
    Callable: FUNCTION,
    str: Kind(lambda text: isinstance(text, str), "a string"),
    dict: Kind(lambda given: isinstance(given, dict), "a dictionary"),
    dict[str, str]: TABLE,
    Mesh: MESH,
}


def checked(function: Function) -> Function:
    """Hold a function's arguments to their annotations: `Float[Array, "*batch seq d_model"]`, `Positive`, `bool`, …

    Axes of one name have one size; where `self` has an attribute of that name, or a field with such an axis, it is
    that size. NumPy's arrays become JAX's, its numbers Python's.

    Raises:
        ValueError: for another shape or value, with the likely cause.
        TypeError: for another kind of numbers or of object, with the likely cause.
    """

    read = functools.cache(lambda: _Signature.of(function))  # at the first call, not on import

    @functools.wraps(function)
    def call(*args, **kwargs):
        signature = read()
        given = dict(zip(signature.places, args, strict=False)) | kwargs
        if len(given) < len(args) + len(kwargs) or not signature.required <= given.keys() <= signature.names:
            signature.refuse(function, args, kwargs)
        sizes = _known_sizes(args[0], signature.axes) if signature.is_method and args else {}
        for name, kind, allowed in signature.kinds:
            if name in given:
                given[name] = _hold(name, given[name], kind, allowed, sizes)
        return function(**given)

    return cast(Function, call)


class _Signature(NamedTuple):
    """What a checked function takes: its places, its names, those that it must get; what its arguments are held to."""

    whole: inspect.Signature
    places: tuple[str, ...]
    names: frozenset[str]
    required: frozenset[str]
    kinds: tuple[tuple[str, Any, tuple[type, ...]], ...]
    axes: tuple[str, ...]
    is_method: bool

    @classmethod
    def of(cls, function: Callable) -> "_Signature":
        """Read the signature of a function, which takes each argument by a name of its own."""
        whole = inspect.signature(function)
        each = [one for one in whole.parameters.values() if one.kind is not one.VAR_KEYWORD]
        kinds = [(one.name, *_requirement_of(one.annotation)) for one in each]
        places = tuple(one.name for one in each if one.kind is one.POSITIONAL_OR_KEYWORD)
        axes = tuple({axis: None for _, kind, _ in kinds for axis in _axes_of(kind)})
        return cls(
            whole=whole,
            places=places,
            names=frozenset(one.name for one in each),
            required=frozenset(one.name for one in each if one.default is one.empty),
            kinds=tuple(kind for kind in kinds if kind[1] is not None),
            axes=axes,
            is_method=places[:1] == ("self",) and bool(axes),
        )

    def refuse(self, function: Callable, args: tuple, kwargs: dict) -> None:
        """Raise `TypeError` for names that a function does not take, with what may have been meant."""
        try:
            self.whole.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{function.__qualname__}(): {error}{_meant(self.whole, kwargs)}") from None


def _meant(signature: inspect.Signature, given: dict) -> str:
    """What may have been meant by the first keyword that a function does not know; "" if it knows all."""
    names = [name for name in signature.parameters if name != "self"]
    unknown = [name for name in given if name not in names]
    if not unknown:
        return ""
    alike = [f"{name}=…" for name in names if _is_alike(unknown[0], name)]
    return f"; expected {' or '.join(alike[:4]) or 'one of ' + ', '.join(names)}"


def check_each(annotation, **arguments) -> None:
    """Hold arguments to an annotation, such as `Positive`: for numbers that no signature has, such as a width."""
    kind, allowed = _requirement_of(annotation)
    for name, argument in arguments.items():
        _hold(name, argument, kind, allowed, {})


def check_batch(batch, *arrays: str) -> None:
    """Raise `TypeError` unless a batch is a tuple with these arrays, or more."""
    if not isinstance(batch, tuple | list) or len(batch) < len(arrays):
        what = f"{len(batch)} arrays" if isinstance(batch, tuple | list) else f"of type {type(batch).__name__}"
        raise TypeError(f"batch is {what}; expected a tuple of {', '.join(arrays)}.")


def check_fields(config) -> None:
    """Hold the fields of a configuration to their annotations; NumPy's numbers become Python's."""
    for name, annotation in _fields_of(cast(Any, type(config))):
        held = _hold(name, getattr(config, name), *_requirement_of(annotation), {})
        object.__setattr__(config, name, held)  # the dataclass is frozen


@functools.cache
def _fields_of(config_class: Any) -> list[tuple[str, Any]]:
    """The fields of a class and their annotations; none of what is no dataclass."""
    fields = dataclasses.fields(config_class) if dataclasses.is_dataclass(config_class) else ()
    return [(field.name, field.type) for field in fields]


@functools.cache
def _requirement_of(annotation) -> tuple[Any, tuple[type, ...]]:
    """What `X` or `X | None` asks for, if it is something that is held to; and what else will do, such as `None`."""
    options = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    kind, *others = [each for each in options if each is not NoneType]
    allowed: tuple[type, ...] = (NoneType,) if NoneType in options else ()
    if "prng_key" in getattr(kind, "dtypes", ()):
        return KEY, allowed
    if os.PathLike in others:
        return PATH, allowed
    if get_origin(kind) is Annotated:
        kind = kind.__metadata__[0]
    kind = FUNCTION if get_origin(kind) is Callable else KINDS.get(kind, kind)
    if hasattr(kind, "dim_str"):
        return kind, (*allowed, *others)  # as a mask may be a table or a rule
    scalar = isinstance(kind, Number | Kind) or get_origin(kind) is Literal or kind is bool
    part = isinstance(kind, type) and dataclasses.is_dataclass(kind)  # a configuration, or a module
    return kind if (scalar or part) and not others else None, allowed


def _hold(name: str, argument, kind, allowed: tuple[type, ...], sizes: dict):
    """The argument as the function gets it, after a look at it; the sizes of its axes are added to `sizes`."""
    if kind is None or isinstance(argument, allowed):
        return argument
    if hasattr(kind, "dim_str"):
        axes, theirs = _axes_of(kind), not isinstance(argument, jax.Array)
        if theirs:
            argument = native(argument)
            _check_is_array(name, argument, axes, sizes)
        sizes |= _measure(name, argument, axes, sizes, kind.dtypes)
        return _as_jax(name, argument) if theirs else argument
    if isinstance(kind, (Number, Kind)):
        return kind.read(name, argument)
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        if not isinstance(argument, str) or argument not in choices:
            raise ValueError(f"{name} is {argument!r}; expected one of {', '.join(map(repr, choices))}.")
    elif kind is not bool:
        _check_part(name, argument, kind)
    elif isinstance(argument, np.bool_):
        return bool(argument)
    elif not isinstance(argument, bool):
        raise TypeError(f"{name} is {argument!r}; expected True or False.")
    return argument


def native(array):
    """The same numbers in this machine's byte order, which those from the files of other programs may not have."""
    return array.astype(array.dtype.newbyteorder("=")) if isinstance(array, np.ndarray) else array


@functools.cache
def _axes_of(kind) -> tuple[str, ...]:
    """The axes of an annotated array, none of what is no array."""
    return tuple(getattr(kind, "dim_str", "").split())


@functools.cache
def _axes_of_fields(module_class: Any) -> dict[str, tuple[str, ...]]:
    """The axes of those fields of a class that are arrays."""
    axes = {name: _axes_of(_requirement_of(annotation)[0]) for name, annotation in _fields_of(module_class)}
    return {name: own for name, own in axes.items() if own}


@functools.cache
def _telling(axes: tuple[str, ...], module_class: Any) -> tuple[list[str], list[tuple[str, tuple[str, ...]]]]:
    """What of an object tells sizes of these axes: its attributes of such a name, and its arrays with such an axis."""
    own = [name for name, _ in _fields_of(module_class)]
    arrays = [(name, has) for name, has in _axes_of_fields(module_class).items() if set(has) & set(axes)]
    return [axis for axis in axes if axis in own or hasattr(module_class, axis)], arrays


def _known_sizes(module, axes: tuple[str, ...]) -> dict:
    """The sizes that an object knows of these axes."""
    attributes, arrays = _telling(axes, cast(Any, type(module)))
    sizes: dict = {}
    for axis in attributes:
        if isinstance(size := getattr(module, axis, None), int):
            sizes[axis] = size
    for name, own in arrays:
        if (shape := getattr(getattr(module, name, None), "shape", None)) is not None:
            sizes = _match_axes(shape, own, sizes) or sizes
    return sizes


def axes_of(module_class: type, field: str | None) -> tuple[str, ...]:
    """Return the names of the axes in the annotation of a class's field; none where it has no such field."""
    return _axes_of_fields(module_class).get(field or "", ())


def _match_axes(shape: tuple[int, ...], axes: Sequence[str], sizes: dict) -> dict | None:
    """The sizes with those of a shape that has these axes; `None` if it has others.

    `*batch` are any number of axes, in front of all others, and `*#batch` those that broadcast to the batch.
    """
    sizes, lead = dict(sizes), ""
    if axes and axes[0][0] == "*":
        lead, *axes = axes
    num_lead = len(shape) - len(axes)
    if num_lead < 0 or (num_lead and not lead):
        return None
    if "#" in lead:
        if not _broadcasts(shape[:num_lead], sizes.get(lead[2:], shape[:num_lead])):
            return None
    elif lead and sizes.setdefault(lead[1:], shape[:num_lead]) != shape[:num_lead]:
        return None
    for name, size in zip(axes, shape[num_lead:], strict=True):
        if sizes.setdefault(name, size) != size:
            return None
    return sizes


def _broadcasts(batch: tuple[int, ...], to: tuple[int, ...]) -> bool:
    pairs = zip(reversed(batch), reversed(to), strict=False)
    return len(batch) <= len(to) and all(size in (1, other) for size, other in pairs)


_name_of = functools.cache(str)  # of a dtype


def _check_is_array(name: str, array, axes: Sequence[str], sizes: dict) -> None:
    """Raise `TypeError` unless this is an array, of JAX or of NumPy."""
    if not isinstance(array, jax.Array | np.ndarray | np.generic):
        expected = MASK if _is_mask(name) else f"an array with axes {_spell(axes, sizes)}."
        hint = "Encode it first: vocabulary.encode(…)." if isinstance(array, str) else f"Try jnp.asarray({name})."
        if isinstance(array, list | tuple) and len({len(row) for row in array if isinstance(row, list | tuple)}) > 1:
            hint = "Its rows are of unequal length: pad them; of texts, pf.data.pad_texts(…) returns the mask, too."
        raise TypeError(f"{name} is a {type(array).__name__}; expected {expected} {hint}")


def _measure(name: str, array, axes: Sequence[str], sizes: dict, dtypes=(), hint: str = "") -> dict:
    """The sizes with those of an array's axes, after a look at its numbers and its shape."""
    if dtypes and _name_of(array.dtype) not in dtypes:
        raise TypeError(_wrong_numbers(name, array.dtype, dtypes))
    found = _match_axes(array.shape, axes, sizes)
    if found is None:
        hint = hint or _likely_cause(name, array.shape, axes, sizes)
        raise ValueError(f"{name} has shape {array.shape}; expected {_spell(axes, sizes)}. {hint}".rstrip())
    return found


def _as_jax(name: str, array) -> jax.Array:
    """NumPy's array as one of JAX's, which has as many bits as JAX is set to, and would wrap what they do not hold."""
    if isinstance(array, np.ndarray) and array.dtype.kind in "iu":
        dtype = jax.dtypes.canonicalize_dtype(array.dtype)
        refuse(array, array.astype(dtype) != array, name, f"whole numbers that {dtype} holds.")
    return jnp.asarray(array)


def _check_part(name: str, part, kind: type) -> None:
    """Raise `TypeError` unless a part has the fields and methods of its kind, whichever class it is of."""
    if isinstance(part, kind):
        return
    if isinstance(part, type):
        what = part.__name__
        raise TypeError(f"{name} is the class {what}; expected an object of it: make one first, by {what}(…).")
    names = [field.name for field in dataclasses.fields(kind)]
    names += [
        name
        for name, value in vars(kind).items()
        if name[0] != "_" and name not in kind.__annotations__ and not isinstance(value, classmethod)
    ]  # what its objects can do
    if not all(hasattr(part, name) for name in names):
        expected = f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"
        raise TypeError(f"{name} is {_what(part)}; expected {expected}. {HINTS.get(name, '')}".rstrip())


def _is_mask(name: str) -> bool:
    return "mask" in name or name == "allowed"


def _wrong_numbers(name: str, dtype, dtypes) -> str:
    """What to say of an array whose numbers are of another kind."""
    if "float32" in dtypes and dtype == jnp.bool_ and name == "bias":
        return "bias is an array of bool; expected numbers to add to the scores. To hide keys, pass it as mask."
    if "float32" in dtypes:
        return f"{name} holds {dtype}; expected floats. Try {name}.astype(float)."
    if "bool" not in dtypes:
        example = "jnp.arange(5)" if "position" in name or "offset" in name else "encode()"
        return f"{name} holds {dtype}; expected whole numbers, such as {example} returns."
    if _is_mask(name):
        return (
            f"{name} is an array of {dtype}; expected {MASK} "
            f"If yours holds 0 and -inf, pass {name} == 0; if it holds 0 and 1, pass {name} == 1."
        )
    if name == "adjacency":
        return f"{name} holds {dtype}; expected bool, True where an edge leads from node to node. Try {name} == 1."
    return f"{name} holds {dtype}; expected bool, True for a token, False for padding. Try {name} == 1."


def _spell(axes: Sequence[str], sizes: dict) -> str:
    """The axes in words, with the sizes that are known: `(..., seq, d_model=12)`."""
    words: list[str] = []
    for axis in axes:
        size = sizes.get(axis.strip("*#"))
        if axis.startswith("*"):
            words += ["..."] if size is None or (size and "#" in axis) else map(str, size)
        else:
            words.append(axis if size is None else f"{axis}={size}")
    return f"({', '.join(words)}{',' if len(words) == 1 else ''})"


def _likely_cause(name: str, shape: tuple[int, ...], axes: Sequence[str], sizes: dict) -> str:
    rows, hint = [axis for axis in axes if not axis.startswith("*")], HINTS.get(name, "")
    swapped = (*shape[:-2], *shape[:-3:-1])
    if len(rows) == 2 <= len(shape) and _match_axes(swapped, axes, sizes) is not None:
        return f"The axes look swapped: rows are tokens, so try {name}.mT. {hint}"
    if hint:
        return hint
    if len(rows) != len(axes) and _match_axes(shape[len(shape) - len(rows) :], rows, sizes) is not None:
        return "What stands in front is a batch: make it the same for all arguments, or map over one with jax.vmap."
    if len(rows) == len(axes) and len(shape) == len(rows) + 1:
        return "There is one axis too many: if the first one is a batch, map over it with jax.vmap."
    if len(shape) == len(rows) - 1:
        return f"There is one axis too few: for a single row, pass {name}[None]."
    return ""


_at_the_end: ContextVar[bool] = ContextVar("_at_the_end", default=False)


@contextmanager
def raising_at_the_end() -> Iterator[None]:
    """Let programs compiled here say by `checkify` what `refuse` found, and raise nothing while they run.

    One of several devices that raised would leave the others waiting for what it was to send, until the process ends.
    JAX keeps compiled programs by the mesh that is set, and knows nothing of this: set one, too.
    """
    mark = _at_the_end.set(True)
    try:
        yield
    finally:
        _at_the_end.reset(mark)


def refuse(array, bad, name: str, expected: str):
    """Return `array`, or raise if an entry of `bad` is true: at once, or when a compiled function runs.

    Raises:
        ValueError: if an entry of `bad` is true; it names the first bad place and its value.
        EquinoxRuntimeError: the same in a compiled function; it can only say what was expected. Within `jax.shard_map`,
            where no device can raise alone, only `jax.experimental.checkify.checkify` around the function tells.
    """
    if isinstance(bad, jax.core.Tracer) or isinstance(array, jax.core.Tracer):
        message = f"An entry of {name} is not allowed; expected {expected}"
        if not (_at_the_end.get() or jax.sharding.get_abstract_mesh().manual_axes):
            return eqx.error_if(array, bad, message)
        checkify.debug_check(~jnp.any(bad), message.replace("{", "{{").replace("}", "}}"))
        return array
    places = np.argwhere(bad)
    if len(places):
        place = tuple(places[0].tolist())
        value = f" is {np.asarray(array)[place]}" if np.ndim(bad) == np.ndim(array) else " is not allowed"
        raise ValueError(f"{name}{list(place) if place else ''}{value}; expected {expected}")
    return array


def ids_in_range(ids, size: int | None, name: str = "ids", *, of: str = "tokens", hint: str = ANOTHER, where=True):
    """Return `ids`, or raise as `refuse` does if one of them is none of `size`; `None` for as many as int32 counts.

    Only those are asked about `where` this is true. A negative id would be counted from the end, and a large one be
    wrapped by a cast or clipped by indexing, silently.
    """
    end, reason = (
        (2**31, "the whole numbers that int32 holds.") if size is None else (size, f"as there are {size} {of}.")
    )
    largest = end - 1
    if isinstance(ids, jax.Array):  # there may be more tokens than 8 bits can count
        largest = min(largest, jnp.iinfo(ids.dtype).max)
    expected = f"0 to {end - 1}, {reason} {hint if size else ''}".rstrip()
    # NumPy compares what is known also in a function that is being compiled, where JAX would not yet.
    known, asked = (each if isinstance(each, jax.core.Tracer) else np.asarray(each) for each in (ids, where))
    return refuse(ids, asked & ((known < 0) | (known > largest)), name, expected)


def check_auto_axes(name: str, ids) -> None:
    """Raise `ValueError` if ids are cut over a mesh whose axes are Explicit, where indexing would have to be told."""
    lying = jax.typeof(ids).sharding if isinstance(ids, jax.Array) else None
    if lying is not None and any(lying.spec) and AxisType.Explicit in lying.mesh.axis_types:
        raise ValueError(
            f"{name} are cut as {lying.spec} over a mesh whose axes are Explicit; expected Auto axes, where the "
            "compiler chooses how all else is cut, or mesh=… given to fit or generate, which make them so."
        )


def check_axes(name: str, array, hint: str = "", **axes: int | tuple[int, ...] | None) -> None:
    """Raise unless `array` has the named axes, in this order, each of the given size; `None` for any.

    For what an annotation cannot say.

    Raises:
        ValueError: if the axes are others; it gives the `hint`, or else the likely cause.
        TypeError: if it is not an array at all.
    """
    sizes = {axis.strip("*#"): size for axis, size in axes.items() if size is not None}
    _check_is_array(name, array, list(axes), sizes)
    _measure(name, array, list(axes), sizes, hint=hint)


def says_where(config_class: type[Config]) -> type[Config]:
    """Let a dataclass say of an unknown keyword where such a field is: `DecoderConfig(d_model=…)`, in its `stack`.

    Raises:
        TypeError: for an unknown keyword; it names the fields meant, of this class or of those within, or else those
            that there are.
    """
    make = config_class.__init__
    own = [field.name for field in dataclasses.fields(cast(Any, config_class))]

    @functools.wraps(make)
    def make_or_say_where(self, *args, **fields):
        for name in fields:
            if name not in own:
                there = _fields_within(config_class)
                meant = [call for field, call in there if field == name] or [
                    call for field, call in there if _is_alike(name, field)
                ]
                expected = " or ".join(meant[:4]) or f"one of {', '.join(own)}"
                raise TypeError(f"{config_class.__name__} has no field {name!r}; expected {expected}.")
        make(self, *args, **fields)

    type.__setattr__(config_class, "__init__", make_or_say_where)
    return config_class


def _fields_within(config_class) -> list[tuple[str, str]]:
    """The fields of a dataclass and of those within, each as one writes it: `stack=StackConfig(d_ff=…)`."""
    hints = get_type_hints(config_class)
    found = [(field.name, f"{field.name}=…") for field in dataclasses.fields(config_class)]
    for name in [name for name, _ in found]:
        for kind in (hints[name], *get_args(hints[name])):
            if dataclasses.is_dataclass(kind):
                within = cast(type, kind).__name__
                found += [(field, f"{name}={within}({call})") for field, call in _fields_within(kind)]
    return found


def _is_alike(name: str, field: str) -> bool:
    """Whether one may have meant this field: `lr` for `learning_rate`, `dropout` for `dropout_rate`, `n_heads`."""
    words = field.split("_")
    initials = "".join(word[0] for word in words)
    return name == initials or name in words or difflib.SequenceMatcher(None, name, field).ratio() > 0.7


def check_length(name: str, length: int, longest: int, limit: str) -> None:
    """Raise `ValueError` unless a text has at least one token and at most as many as a model reads."""
    if not 1 <= length <= longest:
        hint = "Cut it, or make a model that reads more." if length else "Start with at least one token."
        raise ValueError(f"{name} has {length} tokens; expected 1 to {limit}={longest}. {hint}")
