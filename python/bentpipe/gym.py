"""A Gymnasium environment for learned congestion control: the agent controls one sender in a simulated network.

The environment simulates any scenario, with all its links, loss models, queues and other flows. The agent replaces the congestion control of the single flow
under comparison. Once in each interval it chooses the window and the pacing rate.

>>> env = SatelliteEnv("geo-single", every=0.1, vary={"link.satellite.rate": LogUniform(1, 20, "Mbit/s")})
>>> observation, info = env.reset(seed=1)
>>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol

from bentpipe import _bentpipe as native
from bentpipe._errors import RequestError, needs
from bentpipe._work import Observation, scenario_of

with needs("gym"):
    import gymnasium as gym
    import numpy as np
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space

if TYPE_CHECKING:
    from bentpipe._bentpipe import Scenario

__all__ = [
    "Choice",
    "LogUniform",
    "Normalise",
    "SatelliteEnv",
    "SatelliteVectorEnv",
    "Uniform",
    "power",
    "throughput",
    "to_action",
]

_FIELDS = {name: index for index, name in enumerate(native.OBSERVATIONS)}
_COUNT = len(_FIELDS)
Array = Any
Reward = Callable[[Array], Array]


class Distribution(Protocol):
    """Random distribution of a scenario's setting, from which each episode draws a value."""

    def draw(self, rng: np.random.Generator) -> object:
        """Return a random value for the setting, as in a scenario file."""


def _refuse_bounds(what: str, low: float, high: float, least: float) -> None:
    if not (math.isfinite(low) and math.isfinite(high) and least <= low <= high):
        raise RequestError(
            f"{what}: found {low} and {high}, accepted: finite bounds in order, from {least} on"
        )


@dataclass(frozen=True)
class Uniform:
    """Uniform distribution between two bounds. ``unit`` is appended to the value."""

    low: float
    high: float
    unit: str = ""

    def __post_init__(self) -> None:
        _refuse_bounds("Uniform", self.low, self.high, -math.inf)

    def draw(self, rng: np.random.Generator) -> object:
        """Return a value."""
        return _with_unit(float(rng.uniform(self.low, self.high)), self.unit)


@dataclass(frozen=True)
class LogUniform:
    """Distribution between two positive bounds, uniform in the logarithm. ``unit`` is appended to the value."""

    low: float
    high: float
    unit: str = ""

    def __post_init__(self) -> None:
        _refuse_bounds("LogUniform", self.low, self.high, 5e-324)

    def draw(self, rng: np.random.Generator) -> object:
        """Return a value."""
        return _with_unit(float(np.exp(rng.uniform(np.log(self.low), np.log(self.high)))), self.unit)


@dataclass(frozen=True)
class Choice:
    """Random choice among given values, all with the same probability."""

    values: Sequence[object]

    def __post_init__(self) -> None:
        if not self.values or isinstance(self.values, str):
            raise RequestError(f"Choice: found {self.values!r}, accepted: a list of values")

    def draw(self, rng: np.random.Generator) -> object:
        """Return one of the values."""
        return self.values[int(rng.integers(len(self.values)))]


def _with_unit(value: float, unit: str) -> object:
    return f"{value!r} {unit}" if unit else value


def throughput(observations: Array) -> Array:
    """Return the reward: delivery rate of the interval in Mbit/s."""
    return observations[..., _FIELDS["delivery_rate_bps"]] / 1e6


def power(observations: Array) -> Array:
    """Return the reward: log(delivery rate in Mbit/s) - log(smoothed RTT / minRTT) - 10 * (fraction of segments lost).

    It suits a link shared with other users: it rewards a high rate and penalises queueing delay and losses.
    """
    rate = observations[..., _FIELDS["delivery_rate_bps"]] / 1e6
    acked, lost = observations[..., _FIELDS["acked_segments"]], observations[..., _FIELDS["lost_segments"]]
    rtt, least = observations[..., _FIELDS["srtt_s"]], observations[..., _FIELDS["min_rtt_s"]]
    queueing = np.where(least > 0, rtt / np.where(least > 0, least, 1.0), 1.0)
    return (
        np.log(rate + 0.01) - np.log(np.maximum(queueing, 1.0)) - 10.0 * lost / np.maximum(acked + lost, 1.0)
    )


@dataclass(frozen=True)
class Normalise:
    """Scales an observation to numbers of order one, as inputs of a neural network.

    The numbers are, in this order: acknowledged segments / window; lost segments / window; timeouts (at most 5); in-flight segments / window;
    RTT / minRTT - 1; delivery rate / (window per minRTT); log(window) / 5; log(minRTT / 0.1 s) / 5.
    """

    size: int = 8

    def __call__(self, observations: Array) -> Array:
        """Return an array with ``size`` numbers for each observation."""

        def of(name: str) -> Array:
            return observations[..., _FIELDS[name]]

        window = np.maximum(of("window_segments"), 1.0)
        least = np.maximum(of("min_rtt_s"), 1e-3)
        rtt = np.where(of("rtt_s") > 0, of("rtt_s"), least)
        parts = [
            of("acked_segments") / window,
            of("lost_segments") / window,
            np.minimum(of("timeouts"), 5.0),
            of("in_flight_segments") / window,
            rtt / least - 1.0,
            of("delivery_rate_bps") * least / (window * 8.0 * 1500.0),
            np.log(window) / 5.0,
            np.log(least / 0.1) / 5.0,
        ]
        return np.clip(np.nan_to_num(np.stack(parts, axis=-1)), -10.0, 10.0)


def to_action(change: Array, windows: Array, pace: Array, rtts: Array) -> Array:
    """Convert the output of a policy to window (segments) and pacing rate (bit/s).

    The window is multiplied by 2**change, with ``change`` from -1 to 1. A ``pace`` above 0 turns pacing on: 1.2 windows of 1500-byte segments per
    round-trip time of ``rtts`` seconds.
    """
    window = np.clip(windows * np.exp2(np.clip(change, -1.0, 1.0)), 1.0, 1e6)
    rate = np.where(pace > 0, 1.2 * window * 8.0 * 1500.0 / np.maximum(rtts, 1e-3), 0.0)
    return np.stack([window, np.minimum(rate, 1e12)], axis=-1)


class _Worlds:
    """Common parts of the single and the vector environment."""

    def __init__(
        self,
        count: int,
        scenario: str | PathLike[str] | Scenario,
        set: Mapping[str, object] | None,
        vary: Mapping[str, Distribution] | None,
        every: str | float,
    ) -> None:
        if isinstance(every, str) and every != "rtt":
            raise RequestError(f'every: found {every!r}, accepted: "rtt", or 0.0001 to 3600 seconds')
        self.base = scenario_of(scenario, set)
        self.base.to_toml()  # raises now if the scenario is invalid
        self.vary = dict(vary or {})
        for key, distribution in self.vary.items():
            if not callable(getattr(distribution, "draw", None)):
                raise RequestError(
                    f"{key}: found {distribution!r}, accepted: Uniform, LogUniform, Choice, or what has a method draw(rng)"
                )
        self.worlds = native.Worlds(count, None if isinstance(every, str) else float(every))
        self.drawn: list[dict[str, object]] = [{} for _ in range(count)]

    def reset(self, index: int, rng: np.random.Generator) -> tuple[Array, int]:
        world = self.base.copy() if self.vary else self.base
        self.drawn[index] = {key: distribution.draw(rng) for key, distribution in self.vary.items()}
        for key, value in self.drawn[index].items():
            world.set(key, value)
        observation, state = self.worlds.reset(index, world, int(rng.integers(2**63)))
        return np.frombuffer(observation, dtype=np.float64), state

    def info(self, index: int) -> dict[str, Any]:
        """Results of a finished world, as in the document of ``bentpipe run --json``."""
        result = self.worlds.result(index)
        return {} if result is None else {"result": json.loads(result)}


def _spaces() -> tuple[gym.spaces.Box, gym.spaces.Box]:
    observations = gym.spaces.Box(0.0, np.inf, shape=(_COUNT,), dtype=np.float64)
    actions = gym.spaces.Box(np.array([1.0, 0.0]), np.array([1e6, 1e12]), dtype=np.float64)
    return observations, actions


class SatelliteEnv(gym.Env[Any, Any]):
    """Environment with one simulated network and one controlled sender.

    Observations are the fields of :class:`bentpipe.Observation`, float64. An action is a window in segments (1 to 1,000,000) and a pacing rate in bit/s (0 for
    none, up to 1e12). An episode is truncated at the end of the scenario's duration. It is terminated when its flow completes or is aborted.
    The same seed produces the same episodes.

    Args:
        scenario: name, path or :class:`bentpipe.Scenario`; exactly one of its flows must be under comparison (not ``fixed``).
        set: changed settings, by key.
        vary: settings drawn at random for each episode, by key: :class:`Uniform`, :class:`LogUniform`, :class:`Choice`.
        every: interval between actions: ``"rtt"`` for the smoothed round-trip time (0.1 s until it is known), or seconds from 0.0001 to 3600.
        reward: function from an array of observations (last axis: the fields) to an array of rewards: :func:`throughput`, :func:`power`, or your own.

    Raises:
        RequestError: the scenario or a parameter is invalid. ``reset`` raises it for an invalid random value.

    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (Gymnasium requires it)

    def __init__(
        self,
        scenario: str | PathLike[str] | Scenario = "geo-single",
        *,
        set: Mapping[str, object] | None = None,
        vary: Mapping[str, Distribution] | None = None,
        every: str | float = "rtt",
        reward: Reward = power,
        render_mode: None = None,
    ) -> None:
        if render_mode is not None:
            raise RequestError(f"render_mode: found {render_mode!r}, accepted: None")
        self._worlds = _Worlds(1, scenario, set, vary, every)
        self._reward = reward
        self.observation_space, self.action_space = _spaces()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        observation, _ = self._worlds.reset(0, self.np_random)
        return observation, {"drawn": self._worlds.drawn[0]}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Apply an action for one interval. Raises :class:`RequestError` unless the action is a pair of finite numbers."""
        actions = _actions(action, (2,))
        observations, states = self._worlds.worlds.step(actions, b"\0")
        observation = np.frombuffer(observations, dtype=np.float64)
        state = states[0]
        info = self._worlds.info(0) if state else {}
        return observation, float(self._reward(observation)), state == 2, state == 1, info


def _actions(action: Array, shape: tuple[int, ...]) -> bytes:
    try:
        actions = np.ascontiguousarray(action, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise RequestError(f"action: found {action!r}, accepted: numbers of shape {shape}") from error
    if actions.shape != shape:
        raise RequestError(f"action: found shape {actions.shape}, accepted: {shape}")
    packed: bytes = actions.tobytes()
    return packed


class SatelliteVectorEnv(VectorEnv[Any, Any, Any]):
    """Environment with many simulated networks, all advanced by one call in Rust without Python's interpreter lock.

    The parameters are those of :class:`SatelliteEnv`. After the end of an episode, the next step begins a new one (Gymnasium's ``AutoresetMode.NEXT_STEP``).
    That step ignores its action and has reward 0. The networks are simulated one after another on the calling thread. To use more cores, start more processes.
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012 (Gymnasium requires it)

    def __init__(
        self,
        num_envs: int,
        scenario: str | PathLike[str] | Scenario = "geo-single",
        *,
        set: Mapping[str, object] | None = None,
        vary: Mapping[str, Distribution] | None = None,
        every: str | float = "rtt",
        reward: Reward = power,
    ) -> None:
        self.num_envs = num_envs
        self._worlds = _Worlds(num_envs, scenario, set, vary, every)
        self._reward = reward
        self.single_observation_space, self.single_action_space = _spaces()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._over = np.ones(num_envs, dtype=np.uint8)
        self._rngs: list[np.random.Generator] = []

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begin an episode in every network. Network ``i`` uses the seed ``seed + i``."""
        if seed is not None or not self._rngs:
            seeds = (
                seed
                if isinstance(seed, list)
                else [None if seed is None else seed + index for index in range(self.num_envs)]
            )
            if len(seeds) != self.num_envs:
                raise RequestError(f"seed: found {len(seeds)} seeds, accepted: {self.num_envs}")
            self._rngs = [np.random.default_rng(one) for one in seeds]
        observations = np.stack([self._worlds.reset(index, rng)[0] for index, rng in enumerate(self._rngs)])
        self._over = np.zeros(self.num_envs, dtype=np.uint8)
        return observations, {"drawn": np.array(self._worlds.drawn, dtype=object)}

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Apply one action to each network for one interval. Raises :class:`RequestError` unless actions are finite numbers of shape (num_envs, 2)."""
        packed = _actions(actions, (self.num_envs, 2))
        over = self._over
        raw, states = self._worlds.worlds.step(packed, over.tobytes())
        observations = np.frombuffer(raw, dtype=np.float64).reshape(self.num_envs, _COUNT)
        state = np.frombuffer(states, dtype=np.uint8)
        rewards = np.asarray(self._reward(observations), dtype=np.float64)
        if over.any():
            observations, rewards = observations.copy(), np.where(over, 0.0, rewards)
            for index in np.flatnonzero(over):
                observations[index] = self._worlds.reset(int(index), self._rngs[index])[0]
        self._over = (state > 0).astype(np.uint8)
        info: dict[str, Any] = {}
        if self._over.any():
            results = np.array(
                [self._worlds.info(i).get("result") if state[i] else None for i in range(self.num_envs)],
                dtype=object,
            )
            info = {"result": results, "_result": state > 0}
        return observations, rewards, state == 2, state == 1, info


def observation_of(values: Array) -> Observation:
    """Convert an array to an :class:`bentpipe.Observation` with named fields."""
    return Observation(*(float(value) for value in values))


gym.register(
    "bentpipe/Satellite-v0",
    entry_point="bentpipe.gym:SatelliteEnv",
    vector_entry_point="bentpipe.gym:SatelliteVectorEnv",
)
