"""`heatcheck compare` on runs of stored maps."""

import json

from tests.cli.map_material import small_scoring


def test_runs_without_a_shared_method_are_told_how_to_name_it(heatcheck, tmp_path):
    files = small_scoring(tmp_path)
    for name, maps in (("one", files.maps), ("other", f"grad_cam={files.maps}")):
        code, _, error = heatcheck("score", "--maps", maps, "--truth", files.truth, "--out", tmp_path / name)
        assert code == 0, error
    code, out, _ = heatcheck("compare", tmp_path / "one", tmp_path / "other")
    assert code == 0
    text = " ".join(out.split())
    assert "The runs share no method (maps; grad_cam); name them alike, e.g. --maps grad_cam=DIR." in text
    assert "No score can be compared" in text
    assert "better than" not in text
    out = heatcheck("compare", tmp_path / "one", tmp_path / "one")[1]
    assert "share no method" not in out
    assert "is one (2) better than one (1)? Alike. The scores are the same in every case." in out


def test_names_are_printed_as_they_are(heatcheck, tmp_path):
    files = small_scoring(tmp_path)
    heatcheck("score", "--maps", f"post [bold] [red]={files.maps}", "--truth", files.truth, "--out", tmp_path / "one")
    code, out, error = heatcheck("compare", tmp_path / "one", tmp_path / "one", "--json")
    assert code == 0, error
    assert {row["method"] for row in json.loads(out)["rows"]} == {"post [bold] [red]"}
    code, out, error = heatcheck("compare", tmp_path / "one", tmp_path / "one", "--out", tmp_path / "new" / "a.html")
    assert code == 0, error
    assert f"Page: {tmp_path / 'new' / 'a.html'}" in out
    assert "post [bold] [red]" in (tmp_path / "new" / "a.html").read_text()


def test_a_page_needs_a_file_and_a_comparison_two_runs(heatcheck, tmp_path):
    files = small_scoring(tmp_path)
    heatcheck("score", "--maps", files.maps, "--truth", files.truth, "--out", tmp_path / "one")
    code, _, error = heatcheck("compare", tmp_path / "one")
    assert code == 2
    assert "expected the folders of two runs or more, got 1" in error
    code, _, error = heatcheck("compare", tmp_path / "one", tmp_path / "one", "--out", tmp_path / "one")
    assert code == 2
    assert "name one that ends in .html" in error


def test_a_name_of_maps_that_cannot_be_part_of_a_file_is_refused(heatcheck, tmp_path):
    files = small_scoring(tmp_path)
    flags = ("--maps", f"a/b={files.maps}", "--truth", files.truth, "--out", tmp_path / "one")
    code, _, error = heatcheck("score", *flags)
    assert (code, (tmp_path / "one").exists()) == (2, False)
    assert "has a slash" in error
