"""The section at the end of every page that says how to describe the run and what to cite."""

from heatcheck.report.blocks.block import Block, Code, Heading, bullets, prose
from heatcheck.report.citing.methods_text import methods_text
from heatcheck.report.citing.references import Reference, papers, software
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import count
from heatcheck.report.page import Section


def section(evidence: Evidence, looked_for: str = "") -> Section:
    """The methods paragraph with the settings in force, and references with BibTeX."""
    cited = references(evidence)
    blocks: tuple[Block, ...] = (
        *prose(
            "The text below says what was done in this run, from its record; shorten it as you need. Please cite "
            "heatcheck, the paper whose protocol was carried out, and the methods you report."
        ),
        Code(methods_text(evidence, looked_for), "methods.txt", is_prose=True),
        Heading("References"),
        *bullets([each.line for each in cited]),
        Code("\n".join(each.bibtex for each in cited), "references.bib"),
    )
    summary = f"A methods paragraph with all settings, and {count(len(cited), 'reference')} with BibTeX."
    return Section("cite", "How to cite and describe this", "Cite", blocks, summary)


def references(evidence: Evidence) -> tuple[Reference, ...]:
    """Heatcheck, the study's paper and those of the methods, each once."""
    manifest = evidence.manifest
    names = (manifest.paper, *(method.paper for method in (*evidence.methods, *evidence.floors)))
    return (software(manifest.versions.get("heatcheck", "")), *papers(names))
