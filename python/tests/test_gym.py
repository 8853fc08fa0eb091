import math

import pytest

import bentpipe as bp

np = pytest.importorskip("numpy")
gymnasium = pytest.importorskip("gymnasium")
gym = pytest.importorskip("bentpipe.gym")

WORLD = {"duration": "10 s", "link.satellite.loss": '{ kind = "packet", rate = 0.001 }'}
ACTION = np.array([40.0, 0.0])


def episode(env, seed, steps=200):
    observation, _ = env.reset(seed=seed)
    lines = [observation]
    for _ in range(steps):
        observation, reward, terminated, truncated, _ = env.step(ACTION)
        lines.append(np.append(observation, reward))
        if terminated or truncated:
            break
    return lines


def test_gymnasium_finds_nothing_wrong():
    from gymnasium.utils.env_checker import check_env

    check_env(gymnasium.make("bentpipe/Satellite-v0", set=WORLD, every=0.1).unwrapped, skip_render_check=True)


def test_the_same_seed_gives_the_same_episode():
    vary = {
        "link.satellite.loss.rate": gym.LogUniform(1e-4, 1e-1),
        "link.satellite.rate": gym.Choice(["5 Mbit/s", "10 Mbit/s"]),
    }
    one, two = (gym.SatelliteEnv(set=WORLD, vary=vary, every=0.1) for _ in range(2))
    first, second = episode(one, 3), episode(two, 3)
    assert len(first) == len(second) and all((a == b).all() for a, b in zip(first, second, strict=True))
    third = episode(two, 4)
    assert len(third) != len(first) or any((a != b).any() for a, b in zip(first, third, strict=True))


def test_an_episode_ends_with_the_scenario_and_says_what_was_measured():
    env = gym.SatelliteEnv(set=WORLD, every=0.1, reward=gym.throughput)
    observation, info = env.reset(seed=1)
    assert info == {"drawn": {}}
    steps, acked, truncated = 0, 0.0, False
    while not truncated:
        observation, _, terminated, truncated, info = env.step(ACTION)
        assert not terminated
        steps, acked = steps + 1, acked + (0 if truncated else observation[2])
    assert 90 <= steps <= 100
    (flow,) = info["result"]["flows"]
    assert flow["cc"] == "agent" and flow["sent_segments"] > 300
    # The observations add up to the delivered data, except for the data in flight at the end.
    assert acked == pytest.approx(flow["delivered_bytes"] / 1448, rel=0.1)
    with pytest.raises(bp.Error, match="reset"):
        env.step(ACTION)
    env.reset()
    env.step(ACTION)


def test_a_flow_that_ends_terminates_its_episode():
    traffic = {"flow.bulk.traffic": '{ kind = "file", size = "100 kB" }'}
    env = gym.SatelliteEnv(set={**WORLD, **traffic}, every="rtt")
    env.reset(seed=1)
    over = False
    for _ in range(100):
        *_, over, truncated, info = env.step(ACTION)
        assert not truncated
        if over:
            break
    assert over and info["result"]["flows"][0]["completion_s"] > 0.5


def test_a_window_is_what_the_agent_says():
    env = gym.SatelliteEnv(set={"duration": "20 s"}, every="rtt")
    env.reset(seed=1)
    for window in [10, 20, 40]:
        for _ in range(3):
            seen = gym.observation_of(env.step(np.array([float(window), 0.0]))[0])
        assert seen.window_segments == window and seen.in_flight_segments <= window
        assert seen.delivery_rate_bps == pytest.approx(window * 1448 * 8 / seen.srtt_s, rel=0.2)
    for _ in range(4):
        seen = gym.observation_of(env.step(np.array([1000.0, 1e6]))[0])
    assert seen.pacing_bps == 1e6 and seen.delivery_rate_bps < 1.1e6


def test_many_worlds_are_stepped_as_single_ones_are():
    vary = {"link.satellite.loss.rate": gym.LogUniform(1e-4, 1e-2)}
    many = gym.SatelliteVectorEnv(3, set=WORLD, vary=vary, every=0.1)
    observations, _ = many.reset(seed=5)
    singles = []
    for index in range(3):
        env = gym.SatelliteEnv(set=WORLD, vary=vary, every=0.1)
        env._np_random = np.random.default_rng(5 + index)
        singles.append((env, env._worlds.reset(0, env._np_random)[0]))
    assert all((observations[i] == one).all() for i, (_, one) in enumerate(singles))
    for _ in range(50):
        observations, rewards, *_ = many.step(np.tile(ACTION, (3, 1)))
        for index, (env, _) in enumerate(singles):
            observation, reward, *_ = env.step(ACTION)
            assert (observations[index] == observation).all() and rewards[index] == reward


def test_many_worlds_begin_anew():
    many = gym.SatelliteVectorEnv(2, set={"duration": "2 s"}, every=0.1)
    many.reset(seed=1)
    ends = 0
    for _ in range(100):
        observations, rewards, terminated, truncated, info = many.step(np.tile(ACTION, (2, 1)))
        ends += int(truncated.sum())
        assert not terminated.any() and ("result" in info) == bool(truncated.any())
        assert observations.shape == (2, 12) and rewards.shape == (2,)
    assert ends >= 6
    vector = gymnasium.vector.SyncVectorEnv(
        [lambda: gym.SatelliteEnv(set=WORLD, every=0.1) for _ in range(2)]
    )
    vector.reset(seed=1)
    assert vector.step(np.tile(ACTION, (2, 1)))[0].shape == (2, 12)
    made = gymnasium.make_vec(
        "bentpipe/Satellite-v0", num_envs=2, vectorization_mode="vector_entry_point", set=WORLD, every=0.1
    )
    made.reset(seed=1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: gym.SatelliteEnv("geo-dumbbell").reset(),
            "20 of flow.bulk under control, accepted: one flow",
        ),
        (lambda: gym.SatelliteEnv("nowhere"), "nowhere"),
        (lambda: gym.SatelliteEnv(set={"duration": "1 pint"}), "pint"),
        (lambda: gym.SatelliteEnv(every="second"), "every: found 'second'"),
        (lambda: gym.SatelliteEnv(every=0.0), "every: found 0"),
        (lambda: gym.SatelliteEnv(every=math.nan), "every: found NaN"),
        (lambda: gym.SatelliteEnv(vary={"duration": 3}), "duration: found 3"),
        (
            lambda: gym.SatelliteEnv(vary={"link.satellite.rate": gym.Choice(["x"])}).reset(seed=1),
            "link.satellite.rate",
        ),
        (lambda: gym.SatelliteEnv(render_mode="human"), "render_mode"),
        (lambda: gym.SatelliteVectorEnv(0), "num_envs: found 0"),
        (lambda: gym.SatelliteVectorEnv(2).reset(seed=[1]), "found 1 seeds, accepted: 2"),
        (lambda: gym.Uniform(3, 1), "Uniform: found 3 and 1"),
        (lambda: gym.LogUniform(0, 1), "LogUniform: found 0"),
        (lambda: gym.Choice([]), "Choice"),
    ],
)
def test_mistakes_name_what_is_accepted(call, words):
    with pytest.raises(bp.RequestError, match=words):
        call()


@pytest.mark.parametrize("action", [[math.nan, 0.0], [1.0], "x", [1.0, math.inf]])
def test_a_wrong_action_is_refused_and_harms_nothing(action):
    env = gym.SatelliteEnv(set=WORLD, every=0.1)
    env.reset(seed=1)
    with pytest.raises(bp.RequestError, match="action"):
        env.step(action)
    env.step(ACTION)


def test_the_agent_acts_in_environments_only():
    gym.SatelliteEnv(set=WORLD)
    with pytest.raises(bp.WorkError, match=r"bentpipe\.gym"):
        bp.run("geo-single", cc="agent", set=WORLD)


def test_rewards_and_inputs_of_networks_are_finite():
    env = gym.SatelliteVectorEnv(2, set=WORLD, every=0.1)
    seen, _ = env.reset(seed=1)
    normalise = gym.Normalise()
    for _ in range(50):
        inputs = normalise(seen)
        assert (
            inputs.shape == (2, normalise.size) and np.isfinite(inputs).all() and (np.abs(inputs) <= 10).all()
        )
        actions = gym.to_action(np.array([1.0, -1.0]), seen[:, 10], np.array([1.0, -1.0]), seen[:, 6])
        assert env.action_space.contains(actions)
        seen, rewards, *_ = env.step(actions)
        assert np.isfinite(rewards).all()
