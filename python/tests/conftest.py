import pytest

import bentpipe as bp

# A scenario that is simulated within milliseconds.
SMALL = {"duration": "5 s", "flow.bulk.count": 2}


@pytest.fixture
def small():
    world = bp.Scenario.load("geo-dumbbell")
    for key, value in SMALL.items():
        world.set(key, value)
    return world
