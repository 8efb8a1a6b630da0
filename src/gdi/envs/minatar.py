"""MinAtar's five games, without Gymnasium's wrappers, which would cost more than the games.

``-v0`` has all six actions, and ``-v1`` has the minimal set. Sticky actions (0.1) and difficulty ramping are the
package's defaults, which this module sets explicitly. A skilled Breakout agent never loses the ball, so episodes are
truncated at 5,000 steps unless the config sets another limit.
"""

from __future__ import annotations

import re
from copy import deepcopy
from functools import cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np

from gdi.envs.base import EnvSpec, StepResult, nothing_beside
from gdi.errors import UserError, did_you_mean
from gdi.types import Array, State

GAMES = {
    "Asterix": "asterix",
    "Breakout": "breakout",
    "Freeway": "freeway",
    "Seaquest": "seaquest",
    "SpaceInvaders": "space_invaders",
}
IDS = [f"MinAtar/{name}-v{version}" for version in (0, 1) for name in GAMES]
NUM_ACTIONS = 6
STICKY_ACTION_PROB = 0.1
DIFFICULTY_RAMPING = True
MAX_EPISODE_STEPS = 5000
# The colors of the channels, RGB. Where several are on, the last one is drawn, as in MinAtar's own display.
BACKGROUND = np.array((28, 28, 36), np.uint8)
COLORS = np.array(
    [
        (86, 180, 233),  # the player, in all five games
        (230, 159, 0),
        (128, 128, 128),
        (213, 94, 0),
        (240, 228, 66),
        (204, 121, 167),
        (170, 51, 51),
        (0, 114, 178),
        (255, 255, 255),
        (0, 158, 115),
    ],
    np.uint8,
)


@cache
def _game_class(name: str) -> Any:
    """Return the class of a game, whose module needs only NumPy.

    The package around it imports seaborn to draw, which takes a second in every process.
    """
    package = find_spec("minatar")
    assert package is not None
    assert package.origin is not None
    spec = spec_from_file_location(f"minatar_{name}", Path(package.origin).parent / "environments" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Env


class Game:
    """A game with sticky actions, as in ``minatar.Environment``. Both draw from one generator."""

    def __init__(self, env: Any) -> None:
        self.env = env
        self.last_action = 0
        self.random = np.random.RandomState()

    def seed(self, seed: int) -> None:
        self.random = self.env.random = np.random.RandomState(seed)

    def act(self, action: int) -> tuple[float, bool]:
        if self.random.rand() < STICKY_ACTION_PROB:
            action = self.last_action
        self.last_action = action
        reward, terminated = self.env.act(action)
        return reward, terminated


class MinAtarEnv:
    """N copies of one game whose observations are [10, 10, channels] booleans."""

    frames_per_second = 15  # MinAtar names no speed; at this one a person can follow

    def __init__(self, env_id: str, num_envs: int, max_episode_steps: int = 0) -> None:
        match = re.fullmatch(r"MinAtar/(\w+)-v([01])", env_id)
        if match is None or match.group(1) not in GAMES:
            raise UserError(
                f"unknown environment {env_id!r}.{did_you_mean(env_id, IDS)} MinAtar has {', '.join(GAMES)}."
            )
        make_game = _game_class(GAMES[match.group(1)])
        self.num_envs = num_envs
        self.beside = nothing_beside(num_envs)
        self._games = [Game(make_game(ramping=DIFFICULTY_RAMPING)) for _ in range(num_envs)]
        game = self._games[0].env
        self._actions: list[int] = game.minimal_action_set() if match.group(2) == "1" else list(range(NUM_ACTIONS))
        self._max_episode_steps = max_episode_steps or MAX_EPISODE_STEPS
        self._episode_steps = np.zeros(num_envs, np.int64)
        self._reset_next = np.zeros(num_envs, bool)
        self.spec = EnvSpec(tuple(game.state_shape()), np.dtype(bool), len(self._actions))

    def reset(self, seed: int) -> Array:
        for game, child in zip(self._games, np.random.SeedSequence(seed).spawn(self.num_envs), strict=True):
            game.seed(int(child.generate_state(1)[0]))
            game.last_action = 0
            game.env.reset()
        self._episode_steps[:] = 0
        self._reset_next[:] = False
        return self._observe()

    def _observe(self) -> Array:
        obs = np.empty((self.num_envs, *self.spec.observation_shape), bool)
        for i, game in enumerate(self._games):
            obs[i] = game.env.state()
        return obs

    def draw(self, i: int) -> Array:
        """Return a picture with one pixel per cell."""
        state = self._games[i].env.state()
        last = state.shape[-1] - 1 - state[..., ::-1].argmax(-1)  # of the channels that are on
        return np.where(state.any(-1, keepdims=True), COLORS[last], BACKGROUND)

    def step(self, action: Array) -> StepResult:
        obs = np.empty((self.num_envs, *self.spec.observation_shape), bool)
        reward = np.zeros(self.num_envs, np.float32)
        terminated = np.zeros(self.num_envs, bool)
        self._episode_steps += 1
        for i, (game, a) in enumerate(zip(self._games, action.tolist(), strict=True)):
            if self._reset_next[i]:
                game.last_action = 0
                game.env.reset()
                self._episode_steps[i] = 0
            else:
                reward[i], terminated[i] = game.act(self._actions[a])
            obs[i] = game.env.state()
        truncated = (self._episode_steps >= self._max_episode_steps) & ~terminated
        self._reset_next = terminated | truncated
        return StepResult(obs, reward, terminated, truncated)

    def state_dict(self) -> State:
        return {
            "episode_steps": self._episode_steps.copy(),
            "reset_next": self._reset_next.copy(),
            "games": {str(i): _game_state(game) for i, game in enumerate(self._games)},
        }

    def load_state_dict(self, state: State) -> Array:
        self._episode_steps = np.array(state["episode_steps"])
        self._reset_next = np.array(state["reset_next"])
        for i, game in enumerate(self._games):
            _set_game_state(game, state["games"][str(i)])
        return self._observe()

    def close(self) -> None:
        self._games = []


def _game_state(game: Game) -> State:
    """Return the state of a game: numbers, lists, arrays, and a generator shared with its wrapper."""
    _, keys, position, has_gauss, cached = game.random.get_state()
    own = {name: value for name, value in vars(game.env).items() if name not in ("random", "channels", "action_map")}
    return {
        "last_action": game.last_action,
        "random": {"keys": keys, "position": position, "has_gauss": has_gauss, "cached": cached},
        "arrays": {name: value.copy() for name, value in own.items() if isinstance(value, np.ndarray)},
        "values": {name: _plain(value) for name, value in own.items() if not isinstance(value, np.ndarray)},
    }


def _set_game_state(game: Game, state: State) -> None:
    kept = state["random"]
    generator = np.random.RandomState()
    generator.set_state(("MT19937", np.array(kept["keys"]), kept["position"], kept["has_gauss"], kept["cached"]))
    game.random = game.env.random = generator
    game.last_action = state["last_action"]
    for name, value in state["arrays"].items():
        setattr(game.env, name, np.array(value))
    for name, value in state["values"].items():
        setattr(game.env, name, deepcopy(value))  # the game changes its lists in place


def _plain(value: Any) -> Any:
    """Convert NumPy scalars inside MinAtar's lists to Python numbers, which a checkpoint can hold."""
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value
