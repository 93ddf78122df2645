"""Draws the pictures of the README and the docs: `make pictures`, or `python docs/pictures.py [RUN_FOLDER]`.

Two of them show a finished localization demonstration, and one of these needs Chromium. `tests/test_docs.py` holds the
pictures against today's code.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from PIL.PngImagePlugin import PngInfo

from heatcheck.core.records import Case
from heatcheck.core.seeds import seed_for
from heatcheck.models.load import ModelSettings, load_classifier
from heatcheck.report.one_image import overlays
from heatcheck.sources.phantoms.phantom_brain import PhantomBrain, PhantomBrainSettings
from heatcheck.sources.phantoms.phantom_chest import PhantomChest, PhantomChestSettings
from heatcheck.sources.phantoms.phantom_classes import PhantomClasses, PhantomClassesSettings
from heatcheck.triggers import PUBLISHED, TRIGGERS, build_trigger

IMAGES = Path(__file__).parent / "images"
SOURCE = Path(__file__).parent.parent / "src/heatcheck"
TILE, LINE = 400, 19
SMALL, ACROSS = 200, 6  # tiles of the methods' picture
FILM = 224  # the film of the triggers' picture, for which their sizes are given
COLOURS = {
    "Airspace Opacity": "#f2c14e",
    "Atelectasis": "#ff7f50",
    "Cardiomegaly": "#e05a9d",
    "Consolidation": "#7bd389",
    "Edema": "#4fc3f7",
    "Enlarged Cardiomediastinum": "#b388ff",
    "Lung Lesion": "#ff5252",
    "Pleural Effusion": "#40c4aa",
    "Pneumothorax": "#9ccc65",
    "Support Devices": "#64b5f6",
    "Bilateral Opacity": "#f2c14e",
    "Focal Opacity": "#7bd389",
    "Diffuse Fine Pattern": "#4fc3f7",
    "LGG": "#7bd389",
    "HGG": "#ff7f50",
}


def phantom(numbers: tuple[int, ...]) -> Image.Image:
    """Films of those patients in two rows, with the outline of each finding in its colour."""
    tiles = []
    for number in numbers:
        source = PhantomChest(PhantomChestSettings(patients=1, first=number, size=TILE, shape="square", second_view=0))
        case = source.load(source.index()[0])
        picture = cv2.cvtColor((case.image[0] * 255).astype(np.uint8), cv2.COLOR_GRAY2RGB)
        for finding, mask in case.truth.items():
            _outline(picture, finding, mask)
        tiles.append(_captioned(picture, list(case.truth)))
    half = len(tiles) // 2
    return Image.fromarray(np.vstack([np.hstack(tiles[:half]), np.hstack(tiles[half:])]))


def _outline(picture: np.ndarray, finding: str, mask: np.ndarray) -> None:
    outlines, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    colour = tuple(int(COLOURS[finding][i : i + 2], 16) for i in (1, 3, 5))
    cv2.drawContours(picture, outlines, -1, colour, 1, cv2.LINE_AA)


def classes(first: int, rows: int, side: int = 208) -> Image.Image:
    """A column of films for each class of the phantom, with the outline of what is not normal."""
    source = PhantomClasses(PhantomClassesSettings(cases_per_class=rows, first=first, size=side))
    columns: dict[str, list[np.ndarray]] = {name: [] for name in source.findings}
    for key in source.index():
        case = source.load(key)
        picture = cv2.cvtColor((case.image[0] * 255).astype(np.uint8), cv2.COLOR_GRAY2RGB)
        for finding, mask in case.truth.items():
            _outline(picture, finding, mask)
        columns[next(name for name, label in key.labels.items() if label == 1)].append(picture)
    sheet = Image.new("RGB", (side * len(columns), side * rows + LINE + 8), "black")
    draw = ImageDraw.Draw(sheet)
    for place, (name, films) in enumerate(columns.items()):
        sheet.paste(Image.fromarray(np.vstack(films)), (side * place, LINE + 8))
        middle = (side * (place + 0.5), 4)
        draw.text(middle, name, fill=COLOURS.get(name, "white"), font=ImageFont.load_default(15), anchor="ma")
    return sheet


def brain(numbers: tuple[int, ...], side: int = 240, slices: int = 8) -> Image.Image:
    """A row of modalities for each person with the outline of the tumour in each, then slices of a volume."""
    rows = []
    for number in numbers:
        source = PhantomBrain(PhantomBrainSettings(cases=1, first=number, size=side))
        (key,) = source.index()
        case, grade = source.load(key), next(name for name, label in key.labels.items() if label == 1)
        pictures = [_mri(channel) for channel in case.image]
        for picture, modality in zip(pictures, source.modalities, strict=True):
            _outline(picture, grade, case.truth[modality])
        words = zip(source.modalities, source.looks(key.case), strict=True)
        named = zip(pictures, words, strict=True)
        rows.append(np.hstack([_named(p, f"{modality}: {look.form}", grade) for p, (modality, look) in named]))
    small = 4 * side // slices
    volume = PhantomBrain(PhantomBrainSettings(cases=1, first=numbers[-1], size=small, slices=2 * slices + 4))
    case = volume.load(volume.index()[0])
    rows += [np.hstack([_mri(case.image[m])[at] for at in range(2, 2 * slices + 2, 2)]) for m in (1, 3)]
    return Image.fromarray(np.vstack(rows))


def _mri(channel: np.ndarray) -> np.ndarray:
    """The raw intensities as they are shown, in colour."""
    grey = np.clip(channel / np.quantile(channel[channel > 0], 0.995), 0, 1)
    return np.repeat((grey * 255).astype(np.uint8)[..., None], 3, -1)


def _named(picture: np.ndarray, words: str, grade: str) -> np.ndarray:
    drawn = Image.fromarray(picture)
    font = ImageFont.load_default(13)
    ImageDraw.Draw(drawn).text((4, 2), words, fill="white", font=font)
    if words.startswith("T1:"):
        ImageDraw.Draw(drawn).text((4, picture.shape[0] - 18), grade, fill=COLOURS[grade], font=font)
    return np.asarray(drawn)


def triggers(number: int) -> Image.Image:
    """One film with each trigger of the paper and each clinical one, its box outlined."""
    source = PhantomChest(PhantomChestSettings(patients=1, first=number, size=FILM, shape="square", second_view=0))
    case = source.load(source.index()[0])
    gradient = _loss_gradient(case)
    tiles = []
    beyond = (kind for kind, facts in TRIGGERS.items() if not (facts.published or facts.needs_file))
    for name in (*PUBLISHED, *beyond):
        trigger = build_trigger(name)
        stamp = trigger(case.image, seed_for(number, name), gradient)
        grey = (stamp.on(case.image)[0] * 255).astype(np.uint8)
        picture = Image.fromarray(cv2.cvtColor(grey, cv2.COLOR_GRAY2RGB))
        rows, columns = stamp.box
        around = (columns.start - 2, rows.start - 2, columns.stop + 1, rows.stop + 1)
        ImageDraw.Draw(picture).rectangle(around, outline="#ffd166")
        origin = name if trigger.facts.published else f"{name} (beyond the paper)"
        tiles.append(_tile(picture, [], picture.size, (trigger.label, origin), side=FILM))
    return Image.fromarray(np.vstack([np.hstack(tiles[at : at + 7]) for at in range(0, len(tiles), 7)]))


def _loss_gradient(case: Case) -> np.ndarray:
    """The gradient of the shipped classifier's loss with respect to the film."""
    classifier = load_classifier(ModelSettings(name="phantom_chest_densenet"))
    contract = classifier.preprocessing
    film = torch.from_numpy(case.image)[None].requires_grad_()
    logits = classifier.module((film - contract.mean[0]) / contract.std[0])
    labels = torch.tensor([[case.key.labels[finding] for finding in contract.outputs]])
    loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)
    return torch.autograd.grad(loss, film)[0][0].numpy()


def _captioned(picture: np.ndarray, findings: list[str]) -> np.ndarray:
    tile = Image.new("RGB", (TILE, TILE + 3 * LINE + 8), "black")
    tile.paste(Image.fromarray(picture))
    draw = ImageDraw.Draw(tile)
    font = ImageFont.load_default(15)
    for place, finding in enumerate(findings or ["no finding"]):
        at = (8 + (place // 3) * TILE // 2, TILE + 3 + (place % 3) * LINE)
        draw.text(at, finding, fill=COLOURS.get(finding, "white"), font=font)
    return np.asarray(tile)


def _greys_and_outlines() -> Image.Image:
    """A palette of its own: the usual one would have no place for the few pixels of the outlines."""
    palette = Image.new("P", (1, 1))
    colours = [int(colour[i : i + 2], 16) for colour in COLOURS.values() for i in (1, 3, 5)]
    palette.putpalette([*np.repeat(np.arange(0, 256, 5), 3).tolist(), *colours])
    return palette


def report(run: Path) -> Image.Image:
    """The top of a run's report, as a browser shows it."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("no Chromium found; install it to photograph the report")
    with tempfile.TemporaryDirectory() as profile:
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"]
        flags += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
        shot = Path(profile) / "report.png"
        flags += [f"--user-data-dir={profile}", "--window-size=1280,1300", f"--screenshot={shot}"]
        subprocess.run([browser, *flags, (run / "report.html").absolute().as_uri()], check=True, capture_output=True)
        return Image.open(shot).convert("P", palette=Image.Palette.ADAPTIVE, colors=128)


def methods(run: Path, finding: str) -> Image.Image:
    """One case of a run's gallery with that finding: the film with its outline, then every method's map over it."""
    folder = run / "gallery"
    entrants = json.loads((run / "run.json").read_text())["methods"]
    items = json.loads((folder / "index.json").read_text())["items"]
    item = next(item for item in items if item["finding"] == finding)
    film = np.asarray(Image.open(folder / item["image"]).convert("L"), np.float32) / 255
    outlines = [np.array(outline, np.int32) for outline in item["truth"]]
    files = {each["method"]: each["file"] for each in item["maps"]}
    families: dict[str, list[dict[str, str]]] = {}
    for entrant in entrants:
        if entrant["name"] in files:
            families.setdefault(entrant["family"], []).append(entrant)
    tiles = [
        _tile(
            overlays.draw(film, np.zeros_like(film)).picture,
            outlines,
            film.shape,
            (finding, "the outline is the truth"),
        )
    ]
    for family, members in families.items():
        for entrant in members:
            heat = Image.open(folder / files[entrant["name"]]).convert("L").resize(film.shape[::-1])
            drawn = overlays.draw(film, np.asarray(heat, np.float32)).picture
            tiles.append(_tile(drawn, outlines, film.shape, (entrant["label"].replace("×", "x"), family)))
    blank = np.zeros_like(tiles[0])
    rows = [[*tiles[i : i + ACROSS], *[blank] * ACROSS][:ACROSS] for i in range(0, len(tiles), ACROSS)]
    return Image.fromarray(np.vstack([np.hstack(row) for row in rows]))


def _tile(
    picture: Image.Image,
    outlines: list[np.ndarray],
    shape: tuple[int, ...],
    words: tuple[str, str],
    side: int = SMALL,
) -> np.ndarray:
    scale = side / max(shape)
    size = (round(shape[1] * scale), round(shape[0] * scale))
    drawn = np.asarray(picture.convert("RGB").resize(size, Image.Resampling.LANCZOS)).copy()
    for outline in outlines:
        cv2.polylines(drawn, [np.round(outline * scale).astype(np.int32)], True, (111, 214, 255), 1, cv2.LINE_AA)
    tile = Image.new("RGB", (side, size[1] + 44), "black")
    tile.paste(Image.fromarray(drawn), ((side - size[0]) // 2, 0))
    draw = ImageDraw.Draw(tile)
    for text, top, colour, points in ((words[0], 2, "white", 15), (words[1], 21, "#a5afb9", 13)):
        draw.text((side / 2, size[1] + top), text, fill=colour, font=ImageFont.load_default(points), anchor="ma")
    return np.asarray(tile)


DRAWN: dict[str, Callable[[], Image.Image]] = {  # pictures that need no run
    "phantom": lambda: phantom((20, 27, 50, 58, 61, 66)).quantize(96),
    "phantom-classes": lambda: classes(first=400, rows=3).quantize(
        palette=_greys_and_outlines(), dither=Image.Dither.NONE
    ),
    "phantom-brain": lambda: brain((40, 43, 41)).quantize(palette=_greys_and_outlines(), dither=Image.Dither.NONE),
    "triggers": lambda: triggers(17).quantize(255, method=Image.Quantize.MAXCOVERAGE),
}


def first_screen_source() -> str:
    """A digest of the files that make the first screen of the localization report, and so of pictures of it."""
    study, shared = SOURCE / "studies/localization", SOURCE / "report"
    files = [study / "report/answer.py", study / "specs/localization-demo.yaml", shared / "first_screen.py",
             *sorted((shared / "templates").glob("*.css")), shared / "templates/page.html"]  # fmt: skip
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


def save(name: str, picture: Image.Image) -> None:
    """Save a picture of a run with the digest of what it shows."""
    facts = PngInfo()
    facts.add_text("made from", first_screen_source())
    picture.save(IMAGES / f"{name}.png", optimize=True, pnginfo=facts)


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    for name, drawn in DRAWN.items():
        drawn().save(IMAGES / f"{name}.png", optimize=True)
    if len(sys.argv) > 1:
        save("report", report(Path(sys.argv[1])))
        save("methods", methods(Path(sys.argv[1]), "Pleural Effusion").quantize(192))
