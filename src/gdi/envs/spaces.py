"""Observations of any Gymnasium space as arrays: one image or one vector, and the vectors beside an image.

A space is a tree of simple spaces. Each of its leaves becomes an image or a few numbers: numbers stay, choices become
one-hot, and text is left out. Without an image, all numbers form one vector. With one, they stand beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Text, Tuple

from gdi.errors import UserError
from gdi.types import Array

MASK = "action_mask"
# A choice among more values would be a one-hot vector that is too long to store for every step.
MAX_CHOICES = 65_536
Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Leaf:
    """A simple space inside an observation, and its conversion from [N, ...] to an image or [N, width]."""

    path: Path
    convert: Callable[[Array], Array]
    shape: tuple[int, ...]  # of one converted value: [width], or [height, width, channel]
    dtype: np.dtype[np.generic]
    what: str  # for the note

    def of(self, observation: Any) -> Array:
        """Return this leaf's converted part of a batch of observations."""
        for name in self.path:
            observation = observation[name]
        return self.convert(np.asarray(observation))


class Observations:
    """The conversion of batches of observations of one space."""

    def __init__(self, env_id: str, space: Space[Any]) -> None:
        leaves = [leaf for leaf in _leaves(env_id, space, ()) if leaf is not None]
        self.mask_width = _mask_width(space)
        self._images = [leaf for leaf in leaves if len(leaf.shape) == 3]
        self._vectors = [leaf for leaf in leaves if len(leaf.shape) == 1]
        self.is_nested = isinstance(space, (Dict, Tuple))
        if not leaves:
            raise UserError(f"{env_id} has observations of text only: wrap it, so that it returns numbers.")
        width = sum(leaf.shape[0] for leaf in self._vectors)
        self.shape: tuple[int, ...] = (width,)
        self.dtype: np.dtype[np.generic] = np.dtype(np.float32)
        self.vector_width = 0
        if self._images:
            self.shape, self.dtype = _joint_image(env_id, self._images)
            self.vector_width = width
        self.notes = tuple(_notes(env_id, space, leaves, self.shape, self.vector_width))

    def convert(self, observation: Any) -> tuple[Array, Array]:
        """Return a batch of N observations as arrays: obs [N, *shape], and the vectors beside it, [N, V]."""
        vectors = [leaf.of(observation) for leaf in self._vectors]
        if not self._images:
            return _joined(vectors), np.zeros((len(vectors[0]), 0), np.float32)
        images = [leaf.of(observation) for leaf in self._images]
        image = images[0] if len(images) == 1 else np.concatenate(images, axis=-1)
        return image, _joined(vectors) if vectors else np.zeros((len(image), 0), np.float32)

    def mask(self, observation: Any) -> Array | None:
        """Return the action mask inside a batch of observations, or None if there is none."""
        return np.asarray(observation[MASK]) if self.mask_width else None


def batch_of_one(space: Space[Any], observation: Any) -> Any:
    """Return one observation as a batch of one."""
    if isinstance(space, Dict):
        return {name: batch_of_one(part, observation[name]) for name, part in space.spaces.items()}
    if isinstance(space, Tuple):
        return tuple(batch_of_one(part, value) for part, value in zip(space.spaces, observation, strict=True))
    return np.asarray(observation)[None]


def _joined(vectors: list[Array]) -> Array:
    return vectors[0] if len(vectors) == 1 else np.concatenate(vectors, axis=1)


def _mask_width(space: Space[Any]) -> int:
    """Return the length of the mask under the key ``action_mask``, or 0."""
    if not isinstance(space, Dict) or MASK not in space.spaces:
        return 0
    return int(math.prod(space.spaces[MASK].shape or (0,)))


def _leaves(env_id: str, space: Space[Any], path: Path) -> Iterator[Leaf | None]:
    """Yield the leaves of a space in its own order, and None for text."""
    if isinstance(space, Dict):
        for name, part in space.spaces.items():
            if not (path == () and name == MASK):
                yield from _leaves(env_id, part, (*path, name))
    elif isinstance(space, Tuple):
        for i, part in enumerate(space.spaces):
            yield from _leaves(env_id, part, (*path, i))
    elif _is_text(space):
        yield None
    else:
        yield _leaf(env_id, space, path)


def _leaf(env_id: str, space: Space[Any], path: Path) -> Leaf:
    if isinstance(space, Discrete):
        return _choice(env_id, path, np.array([space.n]), np.array([space.start]), f"one-hot {space.n}")
    if isinstance(space, MultiDiscrete):
        sizes, start = space.nvec.reshape(-1), np.asarray(space.start).reshape(-1)
        return _choice(env_id, path, sizes, start, f"one-hot {'+'.join(map(str, sizes))}")
    if isinstance(space, MultiBinary):
        return _numbers(env_id, path, tuple(space.shape))
    if isinstance(space, Box):
        shape = tuple(int(n) for n in space.shape)
        return _image(path, space, shape) or _numbers(env_id, path, shape)
    raise UserError(
        f"{env_id} has {type(space).__name__} observations{_place(path)}, which have no fixed size: wrap it, so that "
        "it returns arrays."
    )


def _numbers(env_id: str, path: Path, shape: tuple[int, ...]) -> Leaf:
    """Return the leaf of an array of numbers, which is flattened."""
    width = math.prod(shape)
    if width == 0:
        raise UserError(
            f"{env_id} has empty observations of shape {shape}{_place(path)}: wrap it, or fix its observation space."
        )

    what = "1 number" if width == 1 else f"{width} numbers"
    return Leaf(path, partial(_flat, width), (width,), np.dtype(np.float32), what)


def _flat(width: int, values: Array) -> Array:
    return values.reshape(len(values), width).astype(np.float32, copy=False)


def _choice(env_id: str, path: Path, sizes: Array, start: Array, what: str) -> Leaf:
    """Return the leaf of one or several choices, each of which becomes one-hot."""
    width = int(sizes.sum())
    if width > MAX_CHOICES:
        raise UserError(
            f"{env_id} has observations of {width:,} choices{_place(path)}, and at most {MAX_CHOICES:,} become "
            "one-hot: wrap it, so that it returns numbers."
        )
    offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]]) - start

    return Leaf(path, partial(_one_hot, width, offsets), (width,), np.dtype(np.float32), what)


def _one_hot(width: int, offsets: Array, values: Array) -> Array:
    out = np.zeros((len(values), width), np.float32)
    np.put_along_axis(out, values.reshape(len(values), len(offsets)).astype(np.int64) + offsets, 1.0, axis=1)
    return out


def _image(path: Path, space: Box, shape: tuple[int, ...]) -> Leaf | None:
    """Return the leaf of an image, or None if the shape is not that of one.

    An image has three axes, two axes of bytes, or four if bytes of several images are stacked.
    """
    is_bytes = space.dtype in (np.uint8, np.bool_)
    dtype = np.dtype(space.dtype if is_bytes else np.float32)
    if math.prod(shape) == 0:
        return None
    if len(shape) == 2 and space.dtype == np.uint8:
        return Leaf(path, partial(np.expand_dims, axis=-1), (*shape, 1), dtype, f"image {shape[0]}x{shape[1]}")
    if len(shape) == 4 and space.dtype == np.uint8:
        stack, height, width, channels = shape
        joined = (height, width, stack * channels)
        return Leaf(path, partial(_channels_of_all, joined), joined, dtype, f"{stack} images {height}x{width}")
    if len(shape) != 3:
        return None
    if 2 * shape[0] < min(shape[1:]):
        channels, height, width = shape
        what = f"image {height}x{width}, channels first"
        return Leaf(path, partial(_channels_last, dtype), (height, width, channels), dtype, what)
    return Leaf(path, partial(_as_type, dtype), shape, dtype, f"image {shape[0]}x{shape[1]}")


def _as_type(dtype: np.dtype[np.generic], values: Array) -> Array:
    return values.astype(dtype, copy=False)


def _channels_last(dtype: np.dtype[np.generic], values: Array) -> Array:
    return np.ascontiguousarray(np.moveaxis(values, 1, -1)).astype(dtype, copy=False)


def _channels_of_all(shape: tuple[int, ...], values: Array) -> Array:
    return np.moveaxis(values, 1, 3).reshape(len(values), *shape)


def _joint_image(env_id: str, images: list[Leaf]) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
    """Return shape and dtype of all images as one. Images of one size become each other's channels."""
    sides, dtypes = {leaf.shape[:2] for leaf in images}, {leaf.dtype for leaf in images}
    if len(sides) > 1 or len(dtypes) > 1:
        shown = " and ".join(f"{leaf.shape} {leaf.dtype}{_place(leaf.path)}" for leaf in images)
        raise UserError(
            f"{env_id} has images of several kinds, {shown}: keep one with gymnasium.wrappers.FilterObservation, or "
            "resize them."
        )
    return (*images[0].shape[:2], sum(leaf.shape[2] for leaf in images)), images[0].dtype


def _place(path: Path) -> str:
    return f" at {'.'.join(map(str, path))}" if path else ""


def _notes(
    env_id: str, space: Space[Any], leaves: list[Leaf], shape: tuple[int, ...], vector_width: int
) -> Iterator[str]:
    """Yield one line if observations were converted."""
    plain = isinstance(space, Box) and tuple(space.shape) in (shape, shape[:-1])
    if plain:
        return
    parts = [f"{'.'.join(map(str, leaf.path))} {leaf.what}".strip() for leaf in leaves]
    left_out = [".".join(map(str, path)) for path in _text_paths(space, ()) if path]
    seen = "x".join(map(str, shape)) + (f" and {vector_width} numbers beside it" if vector_width else "")
    text = f"; text left out: {', '.join(left_out)}" if left_out else ""
    yield f"Observations: {type(space).__name__} ({', '.join(parts)}) becomes {seen}{text}"


def _text_paths(space: Space[Any], path: Path) -> Iterator[Path]:
    if isinstance(space, Dict):
        for name, part in space.spaces.items():
            yield from _text_paths(part, (*path, name))
    elif isinstance(space, Tuple):
        for i, part in enumerate(space.spaces):
            yield from _text_paths(part, (*path, i))
    elif _is_text(space):
        yield path


def _is_text(space: Space[Any]) -> bool:
    """Return True also for spaces of text that are not Gymnasium's, such as MiniGrid's missions."""
    return isinstance(space, Text) or space.dtype == np.dtype(str)
