import pytest
import torch

from heatcheck.maps.channels import CHANNEL_RULES, absolute_mean, positive_mean

SIGNED = torch.tensor([3.0, -1.0, -4.0]).reshape(1, 1, 3, 1, 1)


def test_positive_mean_counts_evidence_against_the_finding_as_zero():
    assert positive_mean(SIGNED).item() == 1.0


def test_absolute_mean_counts_evidence_against_the_finding_in_full():
    assert absolute_mean(SIGNED).item() == pytest.approx(8 / 3)


@pytest.mark.parametrize("name", sorted(CHANNEL_RULES))
@pytest.mark.parametrize("space", [(5, 4), (3, 5, 4)])
def test_channel_rule_keeps_every_axis_but_the_channels(name, space):
    values = torch.randn(2, 3, 6, *space, generator=torch.Generator().manual_seed(0))
    before = values.clone()
    merged = CHANNEL_RULES[name](values)
    assert merged.shape == (2, 3, *space)
    assert (merged >= 0).all()
    assert torch.equal(values, before)
