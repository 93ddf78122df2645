"""What a page holds: its elements, its downloads, and its tables as a person sees them."""

import base64
from html.parser import HTMLParser

VOID = {"meta", "img", "input", "br", "link", "hr", "circle", "line", "path", "rect"}


class Outline(HTMLParser):
    """Every element with its attributes; complains about tags that do not match."""

    def __init__(self):
        super().__init__()
        self.elements, self.open, self.faults = [], [], []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)


def outline(text):
    parser = Outline()
    parser.feed(text)
    return parser


def saved_tables(text):
    links = [facts for tag, facts in outline(text).elements if tag == "a" and "download" in facts]
    return {facts["download"]: base64.b64decode(facts["href"].split(",", 1)[1]).decode() for facts in links}


class Tables(HTMLParser):
    """Every table of a page: caption, and rows of cells as text; small print follows a bar."""

    def __init__(self):
        super().__init__()
        self.tables, self.cell, self.caption, self.section, self.sections = [], None, None, "", []

    def handle_starttag(self, tag, attrs):
        facts = dict(attrs)
        if tag == "section":
            self.section = facts["id"]
            self.sections.append(self.section)
        elif tag == "table":
            self.tables.append({"section": self.section, "caption": "", "rows": [], "kinds": []})
        elif tag == "caption":
            self.caption = []
        elif tag == "tr":
            self.tables[-1]["rows"].append([])
            self.tables[-1]["kinds"].append(facts.get("class", ""))
        elif tag in {"td", "th"}:
            self.cell = []
        elif tag in {"small", "sup"} and self.cell is not None:
            self.cell.append("|" if tag == "small" else "^")

    def handle_endtag(self, tag):
        if tag == "caption":
            self.tables[-1]["caption"], self.caption = " ".join("".join(self.caption).split()), None
        elif tag in {"td", "th"}:
            self.tables[-1]["rows"][-1].append(" ".join("".join(self.cell).split()))
            self.cell = None

    def handle_data(self, text):
        if self.cell is not None:
            self.cell.append(text)
        elif self.caption is not None:
            self.caption.append(text)


def read(text):
    parser = Tables()
    parser.feed(text)
    return parser


def table(page, section, caption):
    """The one table of the section with this caption."""
    (found,) = [t for t in page.tables if t["section"] == section and t["caption"] == caption]
    return found


def cell(page, where, row, column, *, published=False, nth=0):
    """The cell's text, without the small print of its head; `where` is a section and a caption."""
    found = table(page, *where)
    heads = [head.split("|")[0].strip() for head in found["rows"][0]]
    rows = [cells for cells, kind in zip(found["rows"], found["kinds"], strict=True)
            if cells[0].split("|")[0].strip() == row and (kind == "published") == published]  # fmt: skip
    return rows[nth][heads.index(column)]


def section_text(text, anchor):
    """The markup of one section."""
    return text[text.index(f'<section id="{anchor}"') :].split("</section>")[0]
