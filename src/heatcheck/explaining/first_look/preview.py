"""What the network is given: a few images after resizing and normalisation, for a human to look at before the work."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from heatcheck.core.geometry import mask_to_grid
from heatcheck.core.orientation import radiological
from heatcheck.core.records import Case, Map, Mask
from heatcheck.explaining.first_look.contact_sheet import Block, Tile, contact_sheet
from heatcheck.explaining.first_look.look import MOST, Sample
from heatcheck.models import Preprocessing, prepared
from heatcheck.models.classifier import placed
from heatcheck.report.numbers import count, few
from heatcheck.runs.store import RunFolder

FEWER = 4  # images of each model, where models are given different ones
BLOCKS = 6  # models that are given different images, at most
Channels = Float[np.ndarray, "channel *space"]


@dataclass(frozen=True, slots=True)
class Given:
    """The images that models with this contract are given."""

    sample: Sample
    contract: Preprocessing
    label: str = ""  # of the models, where there are several


@dataclass(frozen=True, slots=True)
class _Shown:
    """One image as the network is given it, and where the experts marked what; one mask for each channel shown."""

    case: Case
    image: Channels  # of a volume one slice
    truth: Bool[np.ndarray, "channel *space"]
    spread: Float[np.ndarray, "channel moment"]  # least, most, mean and mean square of all values


def given_images(sample: Sample, contracts: Mapping[str, Preprocessing]) -> list[Given]:
    """The images of each model by its label; models that prepare images alike share them."""
    models: dict[tuple[object, ...], list[str]] = {}
    firsts: dict[tuple[object, ...], Preprocessing] = {}
    for label, contract in contracts.items():
        kind = (contract.size, contract.channels, contract.mean, contract.std, contract.scaling, contract.fit)
        models.setdefault(kind, []).append(label)
        firsts.setdefault(kind, contract)
    several = len(models) > 1
    return [Given(sample, firsts[kind], few(labels) if several else "") for kind, labels in models.items()]


def write_preview(folder: RunFolder, given: Sequence[Given]) -> None:
    """Write preview.png: the images of each model, with how their values are spread; nothing if none can be read."""
    most = {1: 12, 2: 8}.get(len(given), FEWER)
    blocks = [block for each in given[:BLOCKS] if (block := _block(each, most))]
    if blocks:
        if len(given) > BLOCKS:
            more = f"{count(len(given) - BLOCKS, 'more model')} prepare images in other ways, which are not shown."
            blocks[-1] = replace(blocks[-1], lines=(*blocks[-1].lines, more))
        folder.write_preview(contact_sheet(blocks))


def _block(given: Given, most: int) -> Block | None:
    """The tiles of one contract with a caption; None where no image can be read."""
    contract, names = given.contract, channel_names(given)
    shown = list(_shown(given, names, min(MOST[len(contract.size)], max(1, most // len(names)))))
    if not shown:
        return None
    views = [_undone(each.image, contract) for each in shown]
    scales = [_black_and_white([view[channel] for view in views]) for channel in range(len(shown[0].image))]
    tiles = [tile for each, view in zip(shown, views, strict=True) for tile in _tiles(each, view, scales, names, given)]
    lines = (_prepared_as(given, len(shown)), *_spread(shown, names), _seen_as(scales, names, contract))
    marked = any(each.truth.any() for each in shown)
    return Block(
        given.label,
        (*lines, *(["Yellow: the marks that come with the images."] if marked else [])),
        tuple(tiles),
        len(names),
    )


def channel_names(given: Given) -> tuple[str, ...]:
    """A name for each picture of an image: its modalities or channels; one for a grey or coloured image."""
    modalities: tuple[str, ...] = getattr(given.sample.source, "modalities", ())
    channels = given.contract.channels
    if len(modalities) == channels > 1:
        return modalities
    if channels in (1, 3):
        return ("",)
    return tuple(f"channel {number + 1}" for number in range(channels))


def _shown(given: Given, names: Sequence[str], most: int) -> Iterator[_Shown]:
    for case in given.sample.cases(given.contract, most):
        try:
            image = np.asarray(prepared(case.image, given.contract))
        except Exception:  # noqa: BLE001, S112 - the run records what is wrong with one image
            continue
        placement = placed(case.image, given.contract)
        masks = [mask_to_grid(mask, placement, given.contract.size) for mask in _masks(case, given, names)]
        yield _slice(_Shown(case, image, np.stack(masks), _moments(image)))


def _moments(image: Channels) -> Float[np.ndarray, "channel moment"]:
    flat = image.reshape(len(image), -1).astype(np.float64)
    return np.stack([flat.min(1), flat.max(1), flat.mean(1), np.square(flat).mean(1)], axis=1)


def _masks(case: Case, given: Given, names: Sequence[str]) -> Iterator[Mask]:
    """For each picture the experts' mask: its modality's, or else everything that they marked."""
    by_modality = any(name in case.truth for name in names)
    findings = given.sample.findings
    by_finding = any(name in given.sample.source.findings for name in case.truth)
    studied = [mask for name, mask in case.truth.items() if name in findings or not by_finding]
    empty = np.zeros(case.image.shape[1:], bool)
    for name in names:
        yield case.truth.get(name, empty) if by_modality else np.logical_or.reduce([empty, *studied])


def _slice(shown: _Shown) -> _Shown:
    """Of a volume the slice with most of the marks, or the middle one, as radiologists look at it."""
    if shown.image.ndim == 3:
        return shown
    display = radiological(shown.case.affine, shown.case.image.shape[1:])
    marks = np.stack([display.turned(mask) for mask in shown.truth])
    sums = marks.any(0).sum((1, 2))
    place = int(sums.argmax()) if sums.any() else len(sums) // 2
    image = np.stack([display.turned(channel)[place] for channel in shown.image])
    return replace(shown, image=image, truth=marks[:, place])


def _undone(image: Channels, contract: Preprocessing) -> Channels:
    """The image with its normalisation undone, where that is the same for all images."""
    if contract.scaling != "fixed":
        return image
    mean, std = (np.reshape(np.array(each, np.float32), (-1, 1, 1)) for each in (contract.mean, contract.std))
    return np.asarray(image * std + mean)


def _black_and_white(views: Sequence[Map]) -> tuple[float, float]:
    """The values shown as black and white, the same for all images: 0 and 1, or nearly all of another range."""
    low, high = min(float(view.min()) for view in views), max(float(view.max()) for view in views)
    if low >= -0.01 and high <= 1.01:
        return 0.0, 1.0
    low, high = np.percentile(np.concatenate([view.ravel() for view in views]), [0.5, 99.5]).tolist()
    return low, max(high, low + 1e-6)


def _tiles(
    shown: _Shown, view: Channels, scales: Sequence[tuple[float, float]], names: Sequence[str], given: Given
) -> Iterator[Tile]:
    """The pictures of one image: in grey, in colour, or each channel in grey."""
    grey = [np.clip((each - low) / (high - low), 0, 1) for each, (low, high) in zip(view, scales, strict=True)]
    if given.contract.scaling == "nonzero":
        grey = [np.where(each == 0, 0, shade) for each, shade in zip(shown.image, grey, strict=True)]
    if len(scales) > 1 and len(names) == 1:
        pictures = [np.stack(grey, -1)]
    else:
        pictures = [np.stack([each] * 3, -1) for each in grey]
    words = _labels_in_words(shown.case, given.sample.findings)
    for name, picture, mask in zip(names, pictures, shown.truth, strict=True):
        yield Tile(picture, mask, shown.case.key.case, ", ".join(filter(None, (name, words))))


def _labels_in_words(case: Case, findings: Sequence[str]) -> str:
    labels = {finding: case.key.labels.get(finding, math.nan) for finding in findings}
    present = [finding for finding, label in labels.items() if label == 1]
    if present or not labels:
        return few(present)
    return "not labelled" if all(map(math.isnan, labels.values())) else "no finding studied"


def _prepared_as(given: Given, number: int) -> str:
    contract = given.contract
    size = " × ".join(map(str, contract.size))
    fit = "padded" if contract.fit == "pad" else "stretched"
    part, unit = (" (one slice of each)", "voxels") if len(contract.size) == 3 else ("", "pixels")
    cases = f"{number} of {count(len(given.sample.keys), 'case')}{part}"
    return f"{cases}, {fit} to {size} {unit} and normalised as the contract says."


def _spread(shown: Sequence[_Shown], names: Sequence[str]) -> list[str]:
    """How the values given to the network are spread, channel by channel."""
    channels = len(shown[0].image)
    alike = channels > 1 and all(np.ptp(each.image, 0).max() == 0 for each in shown)
    titles = names if len(names) == channels else ("red", "green", "blue")
    lines = []
    for channel in range(1 if alike else channels):
        lows, highs, means, squares = np.stack([each.spread[channel] for each in shown], axis=1)
        deviation = math.sqrt(max(0.0, squares.mean() - means.mean() ** 2))
        title = f", {channels} equal channels" if alike else f", {titles[channel]}" if titles[channel] else ""
        numbers = f"{short(lows.min())} to {short(highs.max())}, mean {short(means.mean())}"
        lines.append(f"Given to the network{title}: {numbers}, standard deviation {short(deviation)}")
    lines[-1] += " (near 0 and 1 is usual)."
    return lines


def _seen_as(scales: Sequence[tuple[float, float]], names: Sequence[str], contract: Preprocessing) -> str:
    titles = names if len(names) == len(scales) > 1 else ("",) * len(scales)
    ends: dict[str, list[str]] = {}
    for title, (low, high) in zip(titles, scales, strict=True):
        ends.setdefault(f"black {short(low)}, white {short(high)}", []).extend(filter(None, [title]))
    each = [f"{words} ({', '.join(of)})" if of and len(ends) > 1 else words for words, of in ends.items()]
    undone = "with the normalisation undone" if contract.scaling == "fixed" else "normalised, background black"
    return f"Shown {undone}, all images on one scale: {'; '.join(each)}."


def short(value: float) -> str:
    """A number in about three digits; what is as good as 0 is 0."""
    size = abs(value)
    if size < 1e-4:
        return "0"
    text = f"{value:.1e}" if size < 0.005 else f"{value:.2f}" if size < 10 else f"{value:,.0f}"
    return text.removesuffix(".00").replace("-", "\N{MINUS SIGN}")
