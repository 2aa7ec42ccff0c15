"""BIRD's efficiency scores: how a correct query's time compares with that of the reference query."""

import math
from collections.abc import Sequence
from statistics import fmean, pstdev

REPETITIONS = 100
"""How often each of the two queries is timed."""

_REWARDS = ((2.0, 1.25), (1.0, 1.0), (0.5, 0.75), (0.25, 0.5))
_LEAST_REWARD = 0.25


def time_ratio(gold: Sequence[float], predicted: Sequence[float]) -> float:
    """Mean of reference time over predicted time, without values three or more deviations off the mean.

    `gold` and `predicted` are seconds of as many repetitions. The deviation is that of the population;
    where it is zero nothing is dropped. A time too short for the clock counts as one nanosecond.
    """
    ratios = [max(one, 1e-9) / max(other, 1e-9) for one, other in zip(gold, predicted, strict=True)]
    centre, spread = fmean(ratios), pstdev(ratios)
    kept = [ratio for ratio in ratios if abs(ratio - centre) < 3 * spread]
    return fmean(kept or ratios)


def ves(ratio: float) -> float:
    """A correct query's part of the valid efficiency score: the root of its time ratio."""
    return math.sqrt(ratio)


def reward_ves(ratio: float) -> float:
    """A correct query's part of the reward-based score: the root of the step that its time ratio reaches."""
    return math.sqrt(next((reward for least, reward in _REWARDS if ratio >= least), _LEAST_REWARD))
