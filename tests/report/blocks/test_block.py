"""Blocks: paragraphs of several sentences, some with markup."""

from markupsafe import Markup, escape

from heatcheck.report.blocks.block import prose


def test_markup_in_a_paragraph_stays_markup_and_text_beside_it_is_escaped():
    (block,) = prose(Markup("<b>Data.</b>"), "", "1 < 2")
    assert escape(block.text) == "<b>Data.</b> 1 &lt; 2"
    assert prose("a", "b")[0].text == "a b"
    assert prose("", "") == ()
