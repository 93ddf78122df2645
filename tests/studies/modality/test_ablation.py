"""Subsets of the modalities as the network sees them."""

import numpy as np
import pytest
import torch
from tests.studies.modality.material import MODALITIES, small_case, weighed

from heatcheck.models.classifier import prepared, statistics_of
from heatcheck.studies.modality.cases import Ablation, MaskRule, modal_case, predicted_by_subset, views_of

CPU = torch.device("cpu")


def views(cases, contract, fills=("zero", "tissue")):
    seen = [modal_case(case, MODALITIES, MaskRule()) for case in cases]
    return views_of(seen, contract, fills, 3, CPU)


def test_the_intact_view_is_what_the_classifier_prepares():
    classifier = weighed([1.0, 0.0, 0.0, 0.0], scaling="nonzero")
    cases = [small_case(seed=1), small_case(seed=2)]
    expected = classifier.prepare([case.image for case in cases])
    assert torch.equal(views(cases, classifier.preprocessing).intact, expected)


def test_an_ablated_modality_is_zero_and_an_ablated_lesion_is_zero_inside_and_unchanged_outside():
    contract = weighed([1.0, 0.0, 0.0, 0.0], scaling="nonzero").preprocessing
    case = small_case()
    made = views([case], contract)
    assert not made.ablated[Ablation("modality", "zero")].any()
    lesion = made.ablated[Ablation("lesion", "zero")][0].numpy()
    for channel, before, name in zip(lesion, made.intact[0].numpy(), MODALITIES, strict=True):
        assert not channel[case.truth[name]].any()
        assert np.array_equal(channel[~case.truth[name]], before[~case.truth[name]])


def test_tissue_is_scaled_with_the_intact_images_statistics():
    contract = weighed([1.0, 0.0, 0.0, 0.0], scaling="nonzero").preprocessing
    case = small_case()
    made = views([case], contract)
    statistics = statistics_of(case.image, contract)
    allowed = prepared(case.image, contract, statistics).numpy()
    got = made.ablated[Ablation("modality", "tissue")][0].numpy()
    for channel, own, name in zip(got, allowed, MODALITIES, strict=True):
        outside = own[~case.truth[name] & (own != 0)]
        drawn = channel[channel != 0]
        assert len(drawn) == 36
        assert np.abs(drawn[:, None] - outside).min(1).max() < 1e-6


def test_tissue_is_the_same_each_time_and_differs_between_cases():
    contract = weighed([1.0, 0.0, 0.0, 0.0]).preprocessing
    which = Ablation("modality", "tissue")
    one, again = (views([small_case()], contract).ablated[which] for _ in range(2))
    other = views([small_case(name="b")], contract).ablated[which]
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


@pytest.mark.parametrize("fill", ["zero", "tissue"])
def test_only_the_subsets_with_the_modality_the_network_reads_tell_the_class(fill):
    classifier = weighed([0.0, 1.0, 0.0, 0.0], threshold=1.2)
    case = small_case(seed=4)
    case.image[1][case.truth["T1C"]] = 30.0  # only the lesion lifts the mean above the threshold
    shown = (np.arange(16)[:, None] >> np.arange(4) & 1).astype(bool)
    for kind in ("modality", "lesion"):
        said = predicted_by_subset(classifier, views([case], classifier.preprocessing), Ablation(kind, fill), shown)
        assert said.shape == (16, 1)
        assert np.array_equal(said[:, 0], shown[:, 1].astype(int))


def test_each_subset_is_one_pass_of_the_batch():
    classifier = weighed([1.0, 0.0, 0.0, 0.0])
    passes = []
    classifier.module.register_forward_pre_hook(lambda _, inputs: passes.append(len(inputs[0])))
    made = views([small_case(seed=n, name=str(n)) for n in range(3)], classifier.preprocessing)
    shown = (np.arange(16)[:, None] >> np.arange(4) & 1).astype(bool)
    predicted_by_subset(classifier, made, Ablation("modality", "zero"), shown)
    assert passes == [3] * 16
