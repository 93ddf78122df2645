"""An ensemble of four small checkpoints, two of them with three classes a finding."""

import hashlib
import json

import torch

from heatcheck.models import MODELS, NetworkClassifier, Preprocessing, save_classifier

FINDINGS = ("Edema", "Cardiomegaly", "Pneumothorax")
CHOSEN = {"Edema": "ab", "Cardiomegaly": "cd", "Pneumothorax": "abcd"}


def checkpoint(path, seed, head="binary", **changes):
    contract = Preprocessing(**{"outputs": FINDINGS, "size": (32, 32), "head": head, **changes})
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        module = MODELS["densenet_compact"].build(1, contract.answers, contract.size).eval()
        torch.nn.init.normal_(module.class_layers.out.weight)  # so that members do not all say one half
    save_classifier(NetworkClassifier("densenet_compact", module, contract), path)


def write_ensemble(folder, chosen=CHOSEN, model="densenet_compact"):
    for number, name in enumerate("abcd"):
        checkpoint(folder / f"{name}.safetensors", number, "three_class" if name in "bd" else "binary")
    list_members(folder, chosen, model)
    return folder


def list_members(folder, chosen=CHOSEN, model="densenet_compact"):
    def entry(name):
        digest = hashlib.sha256((folder / f"{name}.safetensors").read_bytes()).hexdigest()
        return {"checkpoint": f"{name}.safetensors", "sha256": digest, "auroc": 0.8}

    findings = {finding: [entry(name) for name in names] for finding, names in chosen.items()}
    (folder / "ensemble.json").write_text(json.dumps({"version": 1, "model": model, "findings": findings}))
