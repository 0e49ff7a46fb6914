"""Guidelines printed in many layouts, by Chromium and by reportlab, with their sentences in the
order in which people read them.

The sentences are ours and say nothing that a clinician should act on. Each has words that no other
has, so that a torn or a swapped one is seen.
"""

import io
import itertools
import random

_SUBJECTS = (
    "The first reading of pressure",
    "A daily weight on the same scale",
    "Each change of the dose",
    "An electrocardiogram at rest",
    "The count of platelets",
    "Any rash behind the ears",
    "A culture of the urine",
    "The distance walked in six minutes",
    "A film of the chest",
    "The level of potassium",
    "Swelling of both ankles",
    "A short course of the tablet",
    "The nurse who visits at home",
    "A history of fainting",
    "The sum of both answers",
    "Pain that wakes the patient",
    "A letter to the practice",
    "The second opinion",
    "Fever without a source",
    "A slow pulse at night",
)
_VERBS = (
    "is written down before breakfast",
    "is repeated after four weeks",
    "is compared with that of the last visit",
    "is told to the family",
    "is asked for once more",
    "is left out when nothing has changed",
    "is weighed against the harm of waiting",
    "is checked by a second person",
    "is kept in the record for ten years",
    "is explained in plain words",
)
_ENDS = (
    "unless the patient would rather wait for the result of the other test",
    "because a single value says little about the course of the following days",
    "even where the first examination showed nothing that would need any treatment",
    "so that whoever comes next can see at once what had been tried and why",
    "since most mistakes happen when two people each believe that the other one knows",
)


_ALL = [
    f"{subject} {verb} {end}." for subject, verb, end in itertools.product(_SUBJECTS, _VERBS, _ENDS)
]
random.Random(20261123).shuffle(_ALL)


def sentences(seed, n):
    """Return n sentences of 15 to 30 words; those of neighbouring seeds differ."""
    start = 41 * seed % len(_ALL)
    return (_ALL[start:] + _ALL[:start])[:n]


def paragraphs(seed, *sizes):
    """Return paragraphs of so many sentences each."""
    left = iter(sentences(seed, sum(sizes)))
    return [list(itertools.islice(left, size)) for size in sizes]


def _html(body, css="", margin="18mm 16mm"):
    return (
        f"<html lang=en><head><style>@page{{size:A4;margin:{margin}}} body{{font:10.5pt/1.35"
        " serif;margin:0} p{margin:0 0 9pt}h1{font-size:18pt;margin:0 0 10pt}"
        " h2{font-size:13pt;margin:0 0 6pt} .two{column-count:2;column-gap:22pt}"
        f" {css}</style></head><body>{body}</body></html>"
    )


def _p(paragraph):
    return f"<p>{' '.join(paragraph)}</p>"


def _all(parts):
    return "".join(map(_p, parts))


def _flat(*parts):
    return [sentence for part in parts for paragraph in part for sentence in paragraph]


def two_columns():
    text = paragraphs(1, 2, 2, 2, 2, 2, 2, 2, 2)
    return _html(f"<div class=two>{_all(text)}</div>"), _flat(text)


def level_paragraphs():
    """Two boxes beside each other whose paragraphs are equally high: the gaps between them run
    across the page.
    """
    left, right = paragraphs(2, 2, 2, 2), paragraphs(3, 2, 2, 2)
    rows = (
        "".join(f"<p style='height:92pt'>{' '.join(p)}</p>" for p in left),
        "".join(f"<p style='height:92pt'>{' '.join(p)}</p>" for p in right),
    )
    body = (
        f"<div style='display:flex;gap:24pt'><div style='flex:1'>{rows[0]}</div><div"
        f" style='flex:1'>{rows[1]}</div></div>"
    )
    return _html(body), _flat(left, right)


def figure_across():
    above, below = paragraphs(4, 2, 2, 2, 2), paragraphs(5, 2, 2, 2, 2)
    figure = (
        "<svg width=640 height=150 viewBox='0 0 640 150' style='margin:8pt 0'><rect width=640"
        " height=150 fill='#dde'/><path d='M10 140L200 40L400 90L630 10' stroke='black'"
        " fill='none'/></svg>"
    )
    body = f"<div class=two>{_all(above)}</div>{figure}<div class=two>{_all(below)}</div>"
    return _html(body), _flat(above, below)


def table_in_a_column():
    text = paragraphs(6, 2, 2, 2, 2, 2, 2)
    table = (
        "<table style='width:100%;border-collapse:collapse;margin:0 0 9pt'"
        " border=1><tr><th>Sodium</th><th>Volume</th><th>Fluid</th></tr><tr><td>below"
        " 30</td><td>low</td><td>saline</td></tr><tr><td>above"
        " 30</td><td>normal</td><td>less</td></tr><tr><td>above"
        " 60</td><td>high</td><td>none</td></tr></table>"
    )
    body = f"<div class=two>{_all(text[:1])}{table}{_all(text[1:])}</div>"
    row = "Sodium Volume Fluid below 30 low saline above 30 normal less above 60 high none"
    return _html(body), [*text[0], row, *_flat(text[1:])]


def footnotes():
    left, right = paragraphs(7, 3, 2), paragraphs(8, 3, 3)
    note, other = sentences(9, 2)
    # The sentence that ends the left column goes on in the right one, with a footnote between.
    torn = left[-1][-1]
    head, _, tail = torn.partition(" is ")
    left_text = _all(left[:-1]) + f"<p>{' '.join(left[-1][:-1])} {head}</p>"
    right_text = f"<p>is {tail}</p>" + _all(right)
    small = (
        "<div style='border-top:1px solid;font-size:8pt;margin-top:12pt;padding-top:3pt'>{}</div>"
    )
    body = (
        "<div style='display:flex;gap:24pt;height:700pt'>"
        "<div"
        f" style='flex:1;display:flex;flex-direction:column;justify-content:space-between'><div>{left_text}</div>{small.format('1 ' + note)}</div>"
        "<div"
        f" style='flex:1;display:flex;flex-direction:column;justify-content:space-between'><div>{right_text}</div>{small.format('2 ' + other)}</div></div>"
    )
    return _html(body), [*_flat(left, right), note, other]


def running_heads():
    """Five pages of two columns with heads that alternate, page numbers, and sentences that go on
    overleaf.
    """
    text = paragraphs(10, *[4] * 30)
    pages, at = [], 0
    chunk = _flat(text)
    words = " ".join(chunk).split()
    size = 520
    while at < len(words):
        number = len(pages) + 1
        head = (
            "Guideline of the society of examples"
            if number % 2
            else "Chapter 3: watching and waiting"
        )
        part = words[at : at + size]
        half = len(part) // 2
        pages.append(
            "<div style='height:250mm;break-after:page;position:relative'><div"
            f" style='font-size:9pt;margin-bottom:14pt'>{head}</div><div"
            f" style='display:flex;gap:22pt'><div style='flex:1'>{' '.join(part[:half])}</div><div"
            f" style='flex:1'>{' '.join(part[half:])}</div></div><div"
            " style='position:absolute;bottom:0;width:100%;text-align:center;font-size:9pt'>–"
            f" {number} –</div></div>"
        )
        at += size
    return _html("".join(pages)), chunk


def broken_words():
    text = [
        [
            "Echocardiography demonstrates considerable anti-inflammatory improvement of"
            " hypertrophic cardiomyopathy throughout multidisciplinary investigations."
        ],
        [
            "Hyponatraemia with hypotonicity necessitates immediate individualised self-monitoring"
            " by experienced interdisciplinary representatives of the department."
        ],
        [
            "Thrombocytopenia following immunosuppressive chemotherapy characteristically"
            " disappears spontaneously, non-invasive surveillance notwithstanding."
        ],
        [
            "Gastroenterological consultations regarding oesophagogastroduodenoscopy presuppose"
            " comprehensive documentation of anticoagulation and pre-existing coagulopathies."
        ],
    ] * 2
    texts = [
        [s[0].replace("throughout", f"throughout {i}")] if i % 4 == 0 else s
        for i, s in enumerate(text)
    ]
    body = (
        "<div"
        f" style='columns:3;column-gap:18pt;text-align:justify;hyphens:auto'>{_all(texts)}</div>"
    )
    return _html(body), _flat(texts[:1])


def three_columns():
    text = paragraphs(11, 2, 2, 2, 2, 2, 2, 2, 2, 2)
    return _html(
        f"<h1>Three columns of advice</h1><div style='columns:3;column-gap:18pt'>{_all(text)}</div>"
    ), ["Three columns of advice", *_flat(text)]


def table_across():
    above, below = paragraphs(12, 2, 2, 2, 2), paragraphs(13, 2, 2, 2, 2)
    cells = sentences(14, 6)
    rows = "".join(
        f"<tr><td>{a}</td><td>{b}</td></tr>" for a, b in zip(cells[::2], cells[1::2], strict=True)
    )
    table = (
        f"<table border=1 style='width:100%;border-collapse:collapse;margin:6pt 0'>{rows}</table>"
    )
    body = f"<div class=two>{_all(above)}</div>{table}<div class=two>{_all(below)}</div>"
    return _html(body), [*_flat(above), *cells, *_flat(below)]


def spanning_headings():
    """Short headings over both columns, within the page: they cross no gutter."""
    first, second, third = (paragraphs(seed, 2, 2, 2, 2) for seed in (15, 16, 17))
    body = "".join(
        f"<h2 style='margin-top:14pt'>{title}</h2><div class=two>{_all(part)}</div>"
        for title, part in (("Before", first), ("During", second), ("After", third))
    )
    return _html(body), [
        "Before",
        *_flat(first),
        "During",
        *_flat(second),
        "After",
        *_flat(third),
    ]


def box_across():
    above, below = paragraphs(18, 2, 2, 2), paragraphs(19, 2, 2, 2)
    key = paragraphs(20, 3)
    box = (
        f"<div style='border:1px solid;padding:6pt;margin:8pt 0;background:#eef'>{_all(key)}</div>"
    )
    body = f"<div class=two>{_all(above)}</div>{box}<div class=two>{_all(below)}</div>"
    return _html(body), _flat(above, key, below)


def abstract_then_columns():
    abstract, text = paragraphs(21, 4), paragraphs(22, 3, 3, 3, 3)
    body = (
        "<h1>On watching and waiting in the long corridor</h1><div"
        f" style='font-size:9.5pt'>{_all(abstract)}</div><div"
        f" class=two><h2>Methods</h2>{_all(text[:2])}<h2>Results</h2>{_all(text[2:])}</div>"
    )
    expected = [
        "On watching and waiting in the long corridor",
        *_flat(abstract),
        "Methods",
        *_flat(text[:2]),
        "Results",
        *_flat(text[2:]),
    ]
    return _html(body), expected


def shaded_page():
    text = paragraphs(23, 2, 2, 2, 2, 2, 2)
    return _html(f"<div class=two style='background:#fec;padding:8pt'>{_all(text)}</div>"), _flat(
        text
    )


CHROMIUM = (
    two_columns,
    level_paragraphs,
    figure_across,
    table_in_a_column,
    footnotes,
    running_heads,
    broken_words,
    three_columns,
    table_across,
    spanning_headings,
    box_across,
    abstract_then_columns,
    shaded_page,
)


def _reportlab(stories, *, justify=True, frames=2, decorate=None):
    """Print stories, each a list of paragraphs or flowables, in frames beside each other."""
    from reportlab.lib.enums import TA_JUSTIFY, TA_LEFT
    from reportlab.lib.pagesizes import A4
    from reportlab.lib.styles import ParagraphStyle
    from reportlab.platypus import BaseDocTemplate, Frame, PageTemplate, Paragraph

    style = ParagraphStyle(
        "body",
        fontName="Times-Roman",
        fontSize=10,
        leading=12.5,
        spaceAfter=8,
        alignment=TA_JUSTIFY if justify else TA_LEFT,
    )
    out = io.BytesIO()
    document = BaseDocTemplate(
        out, pagesize=A4, leftMargin=50, rightMargin=50, topMargin=60, bottomMargin=60
    )
    width = (document.width - 20 * (frames - 1)) / frames
    boxes = [
        Frame(
            document.leftMargin + i * (width + 20),
            document.bottomMargin,
            width,
            document.height,
            id=str(i),
        )
        for i in range(frames)
    ]
    document.addPageTemplates(
        [PageTemplate(frames=boxes, onPage=decorate or (lambda canvas, doc: None))]
    )
    document.build(
        [Paragraph(" ".join(one), style) if isinstance(one, list) else one for one in stories]
    )
    return out.getvalue()


def frames_justified():
    text = paragraphs(31, *[3] * 14)
    return _reportlab(text), _flat(text)


def frames_with_heads_and_feet():
    def decorate(canvas, document):
        canvas.setFont("Times-Italic", 9)
        canvas.drawString(50, 800, f"Society of examples · {canvas.getPageNumber()}")
        canvas.line(50, 795, 545, 795)
        canvas.drawRightString(545, 30, f"Page {canvas.getPageNumber()} of 3")

    text = paragraphs(32, *[4] * 24)
    return _reportlab(text, justify=False, decorate=decorate), _flat(text)


def frames_with_drawing():
    from reportlab.graphics.shapes import Drawing, Rect, String

    drawing = Drawing(220, 90)
    drawing.add(Rect(0, 0, 220, 90, fillColor=None))
    drawing.add(String(60, 40, "Flow 1"))
    text = paragraphs(33, *[3] * 12)
    return _reportlab([*text[:2], drawing, *text[2:]]), _flat(text)


def frames_of_three():
    text = paragraphs(34, *[2] * 18)
    return _reportlab(text, frames=3, justify=False), _flat(text)


REPORTLAB = (frames_justified, frames_with_heads_and_feet, frames_with_drawing, frames_of_three)
