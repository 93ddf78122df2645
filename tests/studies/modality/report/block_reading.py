"""What a section holds: its blocks of one kind, and its words."""

from heatcheck.report.blocks.block import Bullets, Fold, ListCell, Listing, Prose


def blocks_of(blocks, kind):
    """Every block of this class, in their order, those in folds too."""
    found = []
    for block in blocks:
        found += [block] if isinstance(block, kind) else []
        found += blocks_of(block.blocks, kind) if isinstance(block, Fold) else []
    return found


def words_of(section):
    """Every paragraph and list of a section as one text."""
    parts = [block.text for block in blocks_of(section.blocks, Prose)]
    return " ".join([*parts, *(item for block in blocks_of(section.blocks, Bullets) for item in block.items)])


def listed_rows(section):
    """The rows of a section's first listing by their heading, the cells as text."""
    listing = blocks_of(section.blocks, Listing)[0]
    return {_text(row[0]): [_text(cell) for cell in row[1:]] for row in listing.rows}


def _text(cell):
    return f"{cell.sign} {cell.text}".strip() if isinstance(cell, ListCell) else cell
