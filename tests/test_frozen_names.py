"""Names that are data: those of seeds, and the keys of a checkpoint.

Renaming a seed changes every run of every config, and renaming a key makes old runs unreadable. Neither breaks another
test. So the names stand here once more. Whoever changes a key also says how an old checkpoint is read.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gdi
from gdi.config import Config, config_from_json
from gdi.runtime.checkpoint import CheckpointStore
from gdi.seeds import child_seed
from helpers import stop_after

PACKAGE = Path(gdi.__file__).parent
FIXTURE = Path(__file__).parent / "data" / "format1" / "gdi-i3-minatar.json"

# Each name, with child_seed(0, name) and child_seed(3, name, 1, 2).
SEEDS = {
    "actions": (3095622152, 1114197986),
    "agent-actions": (3784988380, 89718897),
    "agent-index": (3920908890, 2090016787),
    "collector": (1994543434, 852169954),
    "controller": (258987611, 1965329286),
    "dqn": (2522926615, 636976824),
    "environments": (363087109, 1082731429),
    "evaluate": (1567394145, 1980543682),
    "evaluation": (1095647772, 1152149243),
    "network": (1097305820, 1830189009),
    "ppo": (4110748437, 2974505088),
    "qrdqn": (328915990, 3661511358),
    "recurrent-ppo": (2101625052, 3814597957),
    "states": (869963363, 1473879728),
    "video": (1793558416, 3612238681),
}

# The format-1 names of what makes the run of the checkpoint tiny.
TINY: dict[str, dict[str, Any]] = {
    "env": {"num_envs": 4},
    "network": {"hidden_units": 8, "lstm_units": 8},
    "learner": {
        "batch_size_sequences": 4,
        "burn_in_steps": 2,
        "sequence_steps": 5,
        "replay": 2,
        "replay_span_windows": 2,
        "warmup_updates": 5,
    },
    "evaluation": {"every_steps": 150, "episodes": 2},
    "run": {"log_every_steps": 200, "checkpoint_every_steps": 200, "threads": 1, "device": "cpu"},
}

# A number stands as N. <…> stands for every line of the block with this name.
BLOCKS = {
    "<parameter>": """
        encoders.0.core.lstm.bias_hh_l0
        encoders.0.core.lstm.bias_ih_l0
        encoders.0.core.lstm.weight_hh_l0
        encoders.0.core.lstm.weight_ih_l0
        encoders.0.torso.convolutions.1.bias
        encoders.0.torso.convolutions.1.weight
        encoders.0.torso.dense.bias
        encoders.0.torso.dense.weight
        heads.0.advantage.bias
        heads.0.advantage.weight
        heads.0.value.bias
        heads.0.value.weight
    """,
    "<moment>": """
        exp_avg
        exp_avg_sq
        step
    """,
    "<metric>": """
        actor/parameter_lag_updates
        episode/length_steps
        episode/return
        learner/skipped
        loss/policy
        loss/q
        loss/total
        loss/v
        optimizer/gradient_norm
        optimizer/learning_rate
        policy/advantage_scale
        policy/entropy
        policy/ratio_clip_fraction
        policy/ratio_mean
        value/change
        value/mean
        value/target_mean
    """,
    "<window>": """
        action
        behavior_prob
        episode_start
        index
        obs
        previous_action
        previous_reward
        reward
        state
        terminated
        truncated
        valid
        version
    """,
    "<axis>": """
        epsilon
        inverse_tau_1
        inverse_tau_2
    """,
    "<rng>": """
        bit_generator
        has_uint32
        state/inc
        state/state
        uinteger
    """,
}

CHECKPOINT = """
    /run/averages/counts/<metric>
    /run/averages/since_steps
    /run/averages/sums/<metric>
    /run/best_mean
    /run/evaluation/cut_episodes
    /run/evaluation/env
    /run/evaluation/episodes
    /run/evaluation/length_mean_steps
    /run/evaluation/max
    /run/evaluation/mean
    /run/evaluation/median
    /run/evaluation/min
    /run/evaluation/protocol
    /run/evaluation/returns
    /run/evaluation/std
    /run/finished
    /run/last/checkpoint
    /run/last/evaluation
    /run/last/log
    /run/log/episodes.csv
    /run/log/metrics.jsonl
    /run/seconds
    /system/actor/common/acted_steps
    /system/actor/common/env_seed
    /system/actor/common/generator
    /system/actor/common/network/<parameter>
    /system/actor/common/version
    /system/actor/env/episode_steps
    /system/actor/env/games/N/arrays/brick_map
    /system/actor/env/games/N/last_action
    /system/actor/env/games/N/random/cached
    /system/actor/env/games/N/random/has_gauss
    /system/actor/env/games/N/random/keys
    /system/actor/env/games/N/random/position
    /system/actor/env/games/N/values/ball_dir
    /system/actor/env/games/N/values/ball_x
    /system/actor/env/games/N/values/ball_y
    /system/actor/env/games/N/values/last_x
    /system/actor/env/games/N/values/last_y
    /system/actor/env/games/N/values/pos
    /system/actor/env/games/N/values/strike
    /system/actor/env/games/N/values/terminal
    /system/actor/env/reset_next
    /system/actor/stream/cut
    /system/actor/stream/episode_start
    /system/actor/stream/index
    /system/actor/stream/last_window/<window>
    /system/actor/stream/length_steps
    /system/actor/stream/needs_index
    /system/actor/stream/previous_action
    /system/actor/stream/previous_reward
    /system/actor/stream/resets
    /system/actor/stream/episode_return
    /system/actor/stream/state
    /system/actor/stream/state_history
    /system/collector/added
    /system/collector/due
    /system/collector/finished
    /system/collector/rng/<rng>
    /system/collector/windows/N/arrays/<window>
    /system/collector/windows/N/uses_scheduled
    /system/controllers/N/bandits/<axis>.N/counts
    /system/controllers/N/bandits/<axis>.N/learning_rate
    /system/controllers/N/bandits/<axis>.N/mode
    /system/controllers/N/bandits/<axis>.N/tile_of_block
    /system/controllers/N/bandits/<axis>.N/weights
    /system/controllers/N/rng/<rng>
    /system/episodes
    /system/learner/network/<parameter>
    /system/learner/optimizer/<parameter>/<moment>
    /system/learner/skipped_in_a_row
    /system/learner/skipped_updates
    /system/learner/trained_transitions
    /system/learner/updates
    /system/parameters/params/<parameter>
    /system/parameters/version
    /system/steps
"""


def seed_names(source: str) -> Iterator[str | None]:
    """The name in each call of ``child_seed``; None where it is not written out, and so cannot be frozen."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called == "child_seed":
            named = [keyword.value for keyword in node.keywords if keyword.arg == "name"]
            name = named[0] if named else node.args[1] if len(node.args) > 1 else None
            yield name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else None


def expanded(path: str) -> Iterator[str]:
    """The path once for each line of the first block that it names, and so on for the others."""
    for block, lines in BLOCKS.items():
        if block in path:
            for line in lines.split():
                yield from expanded(path.replace(block, line, 1))
            return
    yield path


def key_paths(tree: Any, path: str = "") -> Iterator[str]:
    """The path of every leaf. A list is a leaf, and so is an empty dict."""
    if not isinstance(tree, dict) or not tree:
        yield path
        return
    for key, value in tree.items():
        name = re.sub(r"(^|\.)\d+$", r"\1N", str(key))  # 3, and epsilon.3
        yield from key_paths(value, f"{path}/{name}")


def tiny_run_config() -> Config:
    data = json.loads(FIXTURE.read_text(encoding="utf-8"))
    data["steps"] = 600
    for section, settings in TINY.items():
        assert set(settings) <= set(data[section])
        data[section] |= settings
    return config_from_json(json.dumps(data))


def test_the_names_of_seeds_are_these() -> None:
    sources = {path: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
    found = [(path.name, name) for path, source in sources.items() for name in seed_names(source)]
    assert [path for path, name in found if name is None] == [], "a seed whose name is not written out"
    assert {name for _, name in found} == set(SEEDS)


def test_the_seeds_of_these_names_are_these_numbers() -> None:
    assert {name: (child_seed(0, name), child_seed(3, name, 1, 2)) for name in SEEDS} == SEEDS


def test_a_name_in_any_form_of_the_call_is_found() -> None:
    source = 'child_seed(1, "a", 2); seeds.child_seed(1, name="b"); child_seed(1, x); other(1, "c")'
    assert list(seed_names(source)) == ["a", "b", None]


def test_the_keys_of_a_checkpoint_are_these(tmp_path: Path) -> None:
    gdi.train(tiny_run_config(), tmp_path / "run", console=stop_after(350))
    state = CheckpointStore(tmp_path / "run" / "checkpoints", 1, lambda text: None).newest()
    found = set(key_paths(state))
    frozen = {path for line in CHECKPOINT.split() for path in expanded(line)}
    assert sorted(found - frozen) == [], "keys that are new"
    assert sorted(frozen - found) == [], "keys that are gone"
