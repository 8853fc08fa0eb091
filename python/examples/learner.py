"""Trains a small neural network as a congestion control, and compares it with CUBIC, BBR and STAR.

The training is an evolution strategy in plain NumPy (Salimans et al., 2017, arXiv:1703.03864). In each generation, the weights are perturbed in many random directions and
their opposites. Each perturbation is tried in simulated networks, and the weights move towards the successful ones. ``python learner.py`` needs some minutes on one core;
``--generations 3`` is a quick test.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import bentpipe as bp
from bentpipe import gym

HIDDEN = 8
INPUTS = gym.Normalise.size
SIZE = INPUTS * HIDDEN + HIDDEN + HIDDEN * 2 + 2
NORMALISE = gym.Normalise()
WINDOW, MIN_RTT = 10, 7  # fields of an observation

# Settings drawn at random in training: loss rates over five orders of magnitude, several rates and buffer sizes.
WORLDS = {
    "link.satellite.loss.rate": gym.LogUniform(1e-6, 3e-2),
    "link.satellite.rate": gym.LogUniform(3, 15, "Mbit/s"),
    "link.satellite.queue": gym.Choice(["30 packets", "60 packets", "120 packets", "400 packets"]),
}
SETTINGS = {
    "duration": "40 s",
    "link.satellite.loss.kind": "packet",
    "flow.bulk.tcp.receive-window": "4000 segments",
}


def act(weights: np.ndarray, observations: np.ndarray) -> np.ndarray:
    """Compute windows and pacing rates for observations. The first axis pairs each observation with its own weights."""
    hidden_end = INPUTS * HIDDEN
    first = weights[:, :hidden_end].reshape(-1, INPUTS, HIDDEN)
    second = weights[:, hidden_end + HIDDEN : hidden_end + HIDDEN + HIDDEN * 2].reshape(-1, HIDDEN, 2)
    hidden = np.tanh(
        np.einsum("ni,nih->nh", NORMALISE(observations), first) + weights[:, hidden_end : hidden_end + HIDDEN]
    )
    out = np.tanh(np.einsum("nh,nho->no", hidden, second) + weights[:, -2:])
    return gym.to_action(out[:, 0], observations[:, WINDOW], np.ones(len(out)), observations[:, MIN_RTT])


def returns(env: gym.SatelliteVectorEnv, weights: np.ndarray, seeds: list[int | None]) -> np.ndarray:
    """Return the mean reward of one episode in each simulated network."""
    observations, _ = env.reset(seed=seeds)
    total, steps, running = np.zeros(env.num_envs), np.zeros(env.num_envs), np.ones(env.num_envs, dtype=bool)
    while running.any():
        observations, rewards, terminated, truncated, _ = env.step(act(weights, observations))
        total += np.where(running, rewards, 0.0)
        steps += running
        running &= ~(terminated | truncated)
    return total / np.maximum(steps, 1)


def train(
    generations: int, pairs: int, worlds: int, seed: int, say: Callable[[str], Any] = print
) -> np.ndarray:
    """Return the trained weights. Each generation tries ``pairs`` perturbations and their opposites in ``worlds`` networks each."""
    rng = np.random.default_rng(seed)
    env = gym.SatelliteVectorEnv(
        2 * pairs * worlds, "geo-single", set=SETTINGS, vary=WORLDS, every="rtt", reward=gym.power
    )
    mean, momentum, step, sigma = 0.1 * rng.standard_normal(SIZE), np.zeros(SIZE), 0.15, 0.2
    began = time.perf_counter()
    for generation in range(generations):
        noise = rng.standard_normal((pairs, SIZE))
        population = np.concatenate([mean + sigma * noise, mean - sigma * noise])
        # All perturbations use the same seeds, so that random differences between the networks do not decide.
        seeds: list[int | None] = [int(one) for one in rng.integers(2**31, size=worlds)] * (2 * pairs)
        scores = (
            returns(env, np.repeat(population, worlds, axis=0), seeds).reshape(2 * pairs, worlds).mean(axis=1)
        )
        ranks = scores.argsort().argsort() / (2 * pairs - 1) - 0.5
        gradient = (ranks[:pairs] - ranks[pairs:]) @ noise / pairs
        momentum = 0.9 * momentum + 0.1 * gradient / max(float(np.linalg.norm(gradient)), 1e-9) * np.sqrt(
            SIZE
        )
        mean = mean + step * momentum * 0.5
        if generation % 10 == 0 or generation == generations - 1:
            say(
                f"generation {generation:3}: mean reward {scores.mean():7.3f}, best {scores.max():7.3f}, {time.perf_counter() - began:.0f} s"
            )
    return mean


def policy(weights: np.ndarray) -> Callable[[], Callable[[bp.Observation], tuple[float, float | None]]]:
    """Return the trained network as a policy for `bentpipe.algorithm`."""

    def decide(observation: bp.Observation) -> tuple[float, float | None]:
        window, pacing_bps = act(weights[None, :], np.array(observation)[None, :])[0]
        return float(window), float(pacing_bps)

    return lambda: decide


def compare(
    weights: np.ndarray, seeds: int = 3, duration: str = "60 s"
) -> tuple[bp.Comparison, bp.Algorithm]:
    """Compare the trained network with other algorithms, on settings and seeds not used in training."""
    learned = bp.algorithm("learned", policy(weights))
    result = bp.compare(
        "geo-single",
        cc=["learned", "cubic", "bbr", "star"],
        vary={"link.satellite.loss.rate": [1e-6, 1e-4, 1e-3, 1e-2]},
        set={**SETTINGS, "duration": duration, "link.satellite.rate": "8 Mbit/s"},
        seeds=seeds,
        seed=1000,
    )
    return result, learned


def main() -> None:
    """Train, save, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--generations", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=16)
    parser.add_argument("--worlds", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save", type=Path, help="write the weights there (.npy)")
    args = parser.parse_args()
    weights = train(args.generations, args.pairs, args.worlds, args.seed)
    if args.save:
        np.save(args.save, weights)
    result, learned = compare(weights)
    print(result)
    print(learned)


if __name__ == "__main__":
    main()
