"""How much each player of a game contributes to its worth: Shapley values, exact for few players, sampled for many.

The players here are the modalities of an image, and the worth of a subset is how often a network is right when it is
shown only these modalities. Shapley 1953 (Contributions to the Theory of Games 2:307); sampling: Castro et al. 2009
(Computers & Operations Research 36:1726).
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
    """The subsets of players whose worth is needed, and the sampled orders that visit them if not all subsets are.

    The first subset is empty, the last holds all players.
    """

    members: Bool[np.ndarray, "subsets players"]
    visited: Int[np.ndarray, "orders steps"] | None = None  # the subset after each step of an order; None if exact
    orders: Int[np.ndarray, "orders players"] | None = None  # the player who joins at each step; None if exact

    @property
    def exact(self) -> bool:
        """Whether these are all subsets."""
        return self.orders is None


@dataclass(frozen=True, slots=True)
class Shapley:
    """The value of each player, and its standard error from sampling orders: 0 if all subsets are known."""

    values: Float[np.ndarray, "*games players"]
    errors: Float[np.ndarray, "*games players"]


def coalitions(players: int, permutations: int = PERMUTATIONS, seed: int = 0) -> Coalitions:
    """All subsets of up to ten players; for more players, those visited by `permutations` random orders.

    Subset number k of all subsets holds player m if bit m of k is set. Orders are drawn in pairs, each with its
    reverse (antithetic sampling), which reduces the error: who joins late in one joins early in the other. An odd
    number of orders is rounded up.
    """
    if players < 1:
        raise ValueError(f"a game needs at least one player, got {players}")
    if players <= MOST_EXACT:
        return Coalitions((np.arange(2**players)[:, None] >> np.arange(players) & 1).astype(bool))
    if permutations < 4:
        raise ValueError(f"a standard error needs at least 4 random orders, got {permutations}; use {PERMUTATIONS}")
    generator = generator_for(seed, "permutations", players)
    drawn = np.array([generator.permutation(players) for _ in range(math.ceil(permutations / 2))])
    orders = np.stack([drawn, drawn[:, ::-1]], 1).reshape(-1, players)
    joined = np.argsort(orders, 1)  # the step at which each player joins
    after_step = joined[:, None, :] < np.arange(players + 1)[:, None]
    members, visited = np.unique(after_step.reshape(-1, players), axis=0, return_inverse=True)
    return Coalitions(members, visited.reshape(len(orders), players + 1), orders)


def shapley(worth: Float[np.ndarray, "*games subsets"], among: Coalitions) -> Shapley:
    """The Shapley values of games, given the worth of each subset in the order of `among`.

    A player's value is the mean of what it adds to the players before it, over all or the sampled orders. The values
    add up to the worth of all players less that of the empty subset. They are rounded to twelve decimals, so that
    players who add the same have equal values, and those who add nothing have 0, despite rounding errors in the sums.
    """
    if worth.shape[-1:] != among.members.shape[:1]:
        raise ValueError(
            f"every one of the {len(among.members)} subsets needs a worth, got worths of shape {worth.shape}"
        )
    values = np.round(worth @ contributions(among), 12) + 0.0  # adding 0 turns -0 into 0
    if among.orders is None or among.visited is None:
        return Shapley(values, np.zeros(values.shape))
    gains = np.diff(worth[..., among.visited], axis=-1)  # of each step of each order
    by_player = np.take_along_axis(gains, np.broadcast_to(np.argsort(among.orders, 1), gains.shape), -1)
    # an order and its reverse are not independent: the standard error is that of the pairs' means
    pairs = by_player.reshape(*by_player.shape[:-2], -1, 2, by_player.shape[-1]).mean(-2)
    return Shapley(values, np.asarray(pairs.std(-2, ddof=1) / math.sqrt(pairs.shape[-2])))


def contributions(among: Coalitions) -> Float[np.ndarray, "subsets players"]:
    """The matrix of the linear map from worths to values: values = worths @ contributions.

    Because it is linear, the mean of the cases' values is the value of their mean worth, and resampling patients needs
    no new Shapley values.
    """
    members, (subsets, players) = among.members, among.members.shape
    if among.orders is not None and among.visited is not None:
        # each step adds worth(after) − worth(before) to the value of the player who joins
        signs = np.zeros((subsets, players))
        np.add.at(signs, (among.visited[:, 1:], among.orders), 1)
        np.subtract.at(signs, (among.visited[:, :-1], among.orders), 1)
        return signs / len(among.orders)
    size = members.sum(1)[:, None]
    others = np.where(members, size - 1, size)  # number of other players in the subset
    # share of the orders in which exactly these n others come before the player: n! (players − 1 − n)! / players!
    weights = np.array([1 / (players * math.comb(players - 1, n)) for n in range(players)])
    # the set of all players would index beyond the last weight for a player outside it, of whom there is none
    return np.asarray(np.where(members, 1, -1) * weights[np.minimum(others, players - 1)])
