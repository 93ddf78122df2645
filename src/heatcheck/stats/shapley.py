"""How much each player of a game adds to its worth: Shapley's value, exact for few players, sampled for many.

The players here are the modalities of an image, and the worth of some of them is how often a network is right when it
is shown only these. Shapley 1953 (Contributions to the Theory of Games 2:307); sampling: Castro et al. 2009 (Computers
& Operations Research 36:1726).
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from heatcheck.core.seeds import generator_for

MOST_EXACT = 10  # players; each further one doubles the number of subsets
PERMUTATIONS = 100


@dataclass(frozen=True, slots=True)
class Coalitions:
    """The subsets of players whose worth must be known, and the orders that visit them where not all are.

    The first subset is empty, the last has everyone.
    """

    members: Bool[np.ndarray, "subsets players"]
    visited: Int[np.ndarray, "orders steps"] | None = None  # subsets as the players of an order come in; None is exact
    orders: Int[np.ndarray, "orders players"] | None = None  # who comes in at each step; None is exact

    @property
    def exact(self) -> bool:
        """Whether every subset is there."""
        return self.orders is None


@dataclass(frozen=True, slots=True)
class Shapley:
    """Each player's value, and the standard error that sampling orders leaves in it: 0 where all subsets are known."""

    values: Float[np.ndarray, "*games players"]
    errors: Float[np.ndarray, "*games players"]


def coalitions(players: int, permutations: int = PERMUTATIONS, seed: int = 0) -> Coalitions:
    """All subsets of up to ten players; of more, those that are met when players come in in so many random orders.

    Subset number k of all holds player m where bit m of k is set. Orders are drawn in pairs, each with its reverse:
    who comes late in one comes early in the other, which makes the values more certain. An odd number is rounded up.
    """
    if players < 1:
        raise ValueError(f"a game needs at least one player, got {players}")
    if players <= MOST_EXACT:
        return Coalitions((np.arange(2**players)[:, None] >> np.arange(players) & 1).astype(bool))
    if permutations < 4:
        raise ValueError(f"an error bar needs at least 4 random orders, got {permutations}; take {PERMUTATIONS}")
    generator = generator_for(seed, "permutations", players)
    drawn = np.array([generator.permutation(players) for _ in range(math.ceil(permutations / 2))])
    orders = np.stack([drawn, drawn[:, ::-1]], 1).reshape(-1, players)
    entered = np.argsort(orders, 1)  # the step at which each player comes in
    shown = entered[:, None, :] < np.arange(players + 1)[:, None]
    members, visited = np.unique(shown.reshape(-1, players), axis=0, return_inverse=True)
    return Coalitions(members, visited.reshape(len(orders), players + 1), orders)


def shapley(worth: Float[np.ndarray, "*games subsets"], among: Coalitions) -> Shapley:
    """The Shapley values of games whose worths are known for these subsets, in their order.

    Each player's value is what it adds to those before it, averaged over all orders or the sampled ones. The values
    add up to the worth of everyone less that of no one. They are rounded to twelve decimals: players who add the same
    have the same value, and whoever adds nothing has 0, whatever the order of sums leaves in the last bits.
    """
    if worth.shape[-1:] != among.members.shape[:1]:
        raise ValueError(f"there are {len(among.members)} subsets, but worths of shape {worth.shape}")
    values = np.round(worth @ contributions(among), 12) + 0.0  # no negative 0
    if among.orders is None or among.visited is None:
        return Shapley(values, np.zeros(values.shape))
    gains = np.diff(worth[..., among.visited], axis=-1)  # of each step of each order
    by_player = np.take_along_axis(gains, np.broadcast_to(np.argsort(among.orders, 1), gains.shape), -1)
    pairs = by_player.reshape(*by_player.shape[:-2], -1, 2, by_player.shape[-1]).mean(-2)
    return Shapley(values, np.asarray(pairs.std(-2, ddof=1) / math.sqrt(pairs.shape[-2])))


def contributions(among: Coalitions) -> Float[np.ndarray, "subsets players"]:
    """How much each subset's worth counts in each player's value: values are worths times this.

    So the mean of cases' values is the value of the mean worth, and resampling needs no games to be played again.
    """
    members, (subsets, players) = among.members, among.members.shape
    if among.orders is not None and among.visited is not None:
        counted = np.zeros((subsets, players))
        np.add.at(counted, (among.visited[:, 1:], among.orders), 1)
        np.subtract.at(counted, (among.visited[:, :-1], among.orders), 1)
        return counted / len(among.orders)
    size = members.sum(1)[:, None]
    others = np.where(members, size - 1, size)  # in the subset beside the player
    weights = np.array([1 / (players * math.comb(players - 1, n)) for n in range(players)])
    # everyone's subset has no player outside, so `others` is in range wherever it counts
    return np.asarray(np.where(members, 1, -1) * weights[np.minimum(others, players - 1)])
