"""Why a run cannot be continued, in the words of somebody who never opened run.json."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

PYTHON_PREFIX = "python:"  # of the name of a model in the user's own code
_DATES = "by name, size or date: a file that was only copied or touched counts"
_WORDS = {
    "spec_hash": "paths of the spec",  # which pseudonyms hide in the spec itself
    "contract": "how the model's input is prepared",
    "cases_hash": "the list of cases or their labels",
    "data_hash": f"the files of images, masks or labels ({_DATES})",
    "validation_cases_hash": "the list of validation cases or their labels",
    "validation_data_hash": f"the files of the validation data ({_DATES})",
    "seed": "the seed",
    "device": "--device",
    "limit": "--limit",
    "pseudonymised": "--pseudonymise",
    "versions": "the installed packages",
}
_IN_SPEC = {"spec_hash", "seed"}  # what a difference of the spec explains
_DATA = {"data_hash", "cases_hash"}


def another_run(
    path: Path, before: Mapping[str, Any], now: Mapping[str, Any], different: Collection[str], newer: str = ""
) -> str:
    """One sentence on what differs from the run in the folder, and what to do; `newer` is a file of the data."""
    words = {**_WORDS, "weights_hash": weights_in_words(before)}
    shown = [key for key in different if key not in _IN_SPEC or "spec" not in different]
    parts = [_words(key, before, now, words) for key in shown]
    what = ", ".join(dict.fromkeys(filter(None, parts)))
    what += f"; newer than the run is {newer}" if newer else ""
    repaired = "add --retry-failed if you repaired failed cases" if _DATA.issuperset(different) else ""
    remedy = f"{repaired}; otherwise choose" if repaired and before.get("n_failed") else "choose"
    return (
        f"{path} holds another run, which differs in {what}; {remedy} another --out, remove that folder, or repeat the "
        "command that began it"
    )


def weights_in_words(manifest: Mapping[str, Any]) -> str:
    """What the hash of the weights stands for: of a model in the user's own code, the code too."""
    own = f'"{PYTHON_PREFIX}' in json.dumps(manifest.get("spec"), default=str)
    return "the model's code or weights" if own else "the model's weights"


def _words(key: str, before: Mapping[str, Any], now: Mapping[str, Any], words: Mapping[str, str]) -> str:
    if key == "spec":
        return f"the spec ({_settings(before.get(key), now.get(key))})"
    if key == "versions":
        return f"{words[key]} ({_settings(before.get(key), now.get(key))})"
    return words.get(key, key.replace("_", " "))


def _settings(before: object, now: object) -> str:
    """The names that have another value, with where they stand if that is known."""
    if not isinstance(before, Mapping) or not isinstance(now, Mapping):
        return "not recorded"
    names = [key for key in dict.fromkeys((*before, *now)) if before.get(key) != now.get(key)]
    return ", ".join(f"`{name}`" for name in names)
