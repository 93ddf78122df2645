"""What the blocks of a section hold, whatever fold they lie behind."""

from heatcheck.report.blocks.block import Fold, Prose, Table


def every_block(section):
    """The blocks, those within folds included."""

    def opened(blocks):
        for block in blocks:
            yield block
            if isinstance(block, Fold):
                yield from opened(block.blocks)

    return list(opened(section.blocks))


def sentences(section):
    """The texts of its paragraphs."""
    return [str(block.text) for block in every_block(section) if isinstance(block, Prose)]


def matrix(section, caption):
    """The one table whose caption begins so."""
    (found,) = [block for block in every_block(section)
                if isinstance(block, Table) and block.matrix.caption.startswith(caption)]  # fmt: skip
    return found
