"""Weights → Classifier: a network with its preprocessing contract."""

from heatcheck.models import densenet, inception, resnet, swin, vgg, vit  # noqa: F401 - register their models
from heatcheck.models.black_box import BlackBox
from heatcheck.models.classifier import NetworkClassifier, Statistics, explained, prepared, statistics_of
from heatcheck.models.contract import Preprocessing
from heatcheck.models.ensemble import Ensemble, Member, open_model, read_ensemble
from heatcheck.models.load import ModelSettings, load_classifier, save_classifier
from heatcheck.models.registry import MODELS, ModelFacts, NetworkShape

__all__ = [
    "MODELS",
    "BlackBox",
    "Ensemble",
    "Member",
    "ModelFacts",
    "ModelSettings",
    "NetworkClassifier",
    "NetworkShape",
    "Preprocessing",
    "Statistics",
    "explained",
    "load_classifier",
    "open_model",
    "prepared",
    "read_ensemble",
    "save_classifier",
    "statistics_of",
]
