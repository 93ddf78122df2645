"""Whether the mean and std of a contract can be those of the pixels that images have."""

from collections.abc import Sequence

from heatcheck.core.errors import ModelError
from heatcheck.models.contract import Preprocessing

_BYTE = 255.0


def require_pixel_scale(contract: Preprocessing, low: float, high: float, name: str) -> None:
    """Raise ModelError if mean or std lie outside the pixels, which reach from `low` to `high` in some images.

    Integer files become pixels from 0 to 1, however little of it these images use; files in other units, such as
    Hounsfield, have pixels in those.
    """
    if contract.scaling != "fixed":
        return
    low, high = min(low, 0.0), max(high, 1.0)
    possible = all(low <= mean <= high for mean in contract.mean) and max(contract.std) <= high - low
    if not possible:
        raise ModelError(
            f"model {name}: its contract needs mean and std in the units of the pixels, which reach from {low:g} to "
            f"{high:g} here, and has mean {_text(contract.mean)} and std {_text(contract.std)}; "
            f"{_remedy(contract, low, high)}"
        )


def _remedy(contract: Preprocessing, low: float, high: float) -> str:
    values = (*contract.mean, *contract.std)
    bytes_meant = all(value == 0 or 1 < value <= _BYTE for value in values)
    if bytes_meant and (low, high) == (0.0, 1.0):
        mean, std = (_text([round(value / _BYTE, 3) for value in each]) for each in (contract.mean, contract.std))
        return f"if the model was trained on pixels from 0 to 255, set mean {mean} and std {std}"
    return (
        "state them for pixels of this range, or set `value_range` of the source (`--range` of explain) to the stored "
        "values that mean 0 and 1"
    )


def _text(values: Sequence[float]) -> str:
    return f"[{', '.join(f'{value:g}' for value in values)}]"
