from heatcheck.sources.phantom_chest import PhantomChest, PhantomChestSettings
from heatcheck.studies.pseudonyms import pseudonymous


class Modal(PhantomChest):
    """A source that says what its channels are."""

    modalities = ("film",)


def settings():
    return PhantomChestSettings(patients=2, size=32, second_view=0, readers=0)


def test_source_under_pseudonyms_still_says_what_its_channels_are(tmp_path):
    source = Modal(settings())
    hidden, keys = pseudonymous(source, source.index(), tmp_path / "run")
    assert hidden.modalities == ("film",)
    assert hidden.load(keys[0]).image.shape[0] == 1


def test_source_that_does_not_say_what_its_channels_are_has_no_modalities(tmp_path):
    source = PhantomChest(settings())
    assert pseudonymous(source, source.index(), tmp_path / "run")[0].modalities == ()
