"""What a heading says of the list below it: diagnoses, what was ruled out, or something else.

The words are those of English, German, Spanish, French and Chinese replies. A heading may name
several things ("Findings in favour of the diagnoses"): what is said first counts, unless it only
leads to the list ("Based on the findings, the diagnoses are").
"""

import re
from enum import StrEnum
from functools import lru_cache


class Subject(StrEnum):
    """What a list is of."""

    UNKNOWN = ""
    DIAGNOSES = "diagnoses"
    INITIAL = "initial diagnoses"  # that a later list may replace
    FURTHER = "further diagnoses"  # alternatives to the ones before
    EXCLUDED = "excluded"
    OTHER = "other"

    @property
    def says_diagnoses(self) -> bool:
        """Return whether the list is said to be of diagnoses."""
        return self in (Subject.DIAGNOSES, Subject.INITIAL, Subject.FURTHER)


_EXCLUDED = re.compile(
    r"\b(?:ruled[\s-]+out|excluded|unlikely|reject\w*|discard\w*|dismiss\w*|not\s+(?:likely|"
    r"supported|consistent|compatible|considered|diagnos\w+)|"
    r"considered\s+(?:but|and)|less\s+consistent|argued?\s+against|"
    r"ausgeschlossen\w*|unwahrscheinlich\w*|verworfen\w*|nicht\s+(?:passend|wahrscheinlich)\w*|"
    r"descartad\w*|excluid\w*|poco\s+probables?|improbables?|exclus?e?s?|écartée?s?|éliminée?s?|"
    r"peu\s+probables?)\b"
    r"|已?排除(?!诊断)|不支持|不考虑|不太可能|可能性(?:较|很)?[小低]",
)
_OTHER = re.compile(
    r"\b(?:(?:key|main|clinical|relevant|positive|negative|pertinent|notable|"
    r"salient)?\s*(?:findings?|features?|clues?|observations?)|"
    r"symptoms?|signs?|complaints?|presentation|manifestations?|phenotypes?|"
    r"tests?(?!-)|testing|investigations?|work-?ups?|labs?|laboratory|imaging|studies|"
    r"exam(?:ination)?s?|"
    r"(?:next|further|recommended|immediate|diagnostic|following)\s+(?:steps?|actions?|"
    r"evaluations?|measures?|approach|plan|management|procedures?)|steps?|"
    r"recommend\w*|suggestions?|advice|treatments?(?!-)|management|therap(?:y|ies)(?!-)|"
    r"medications?(?!-)|interventions?|"
    r"(?:first[\s-]line|further|recommended|additional|next|urgent|bedside|laboratory|lab|"
    r"molecular|initial|suggested|required|key)\s+diagnostics|(?:past\s+)?(?:medical\s+)?history|"
    r"reasons?|reasoning|rationale|thinking|thoughts?|analysis|summary|red\s+flags?|"
    r"risk\s+factors?|"
    r"evidence|explanations?|justifications?|references?|sources?|limitations?|disclaimer|notes?|"
    r"please|questions?|criteria|"
    r"monitoring|follow-?up|prognosis|"
    r"(?:leit)?befunde?|symptome?n?|beschwerden|anzeichen|klinik|untersuchung(?:en)?|diagnostik|"
    r"labor\w*|bildgebung|schritte?|vorgehen|"
    r"empfehl\w*|ma(?:ß|ss)nahmen|therapie\w*|behandlung\w*|begründung\w*|überlegung\w*|"
    r"hinweise?|anamnese|bitte|zusammenfassung|abklärung\w*|"
    r"hallazgos?|síntomas?|signos?|pruebas?|exámenes|estudios?|(?:próximos\s+)?pasos|"
    r"recom[ie]+nd\w*|suger\w*|aconsej\w*|tratamientos?|manejo|conducta|razon\w*|"
    r"antecedentes|análisis|resumen|justificaci\w*|datos|"
    r"signes?|symptômes?|éléments?|examens?|bilans?|étapes?|conseils?|recommand\w*|traitements?|"
    r"prise\s+en\s+charge|conduite|raisonnement|"
    r"analyse|antécédents|résumé|argument\w*|explorations?)\b"
    r"|症状|体征|表现|特征|发现|要点|检查|化验|步骤|治疗|处理|处置|建议|依据|理由|分析|推理|思考|病史|下一步|说明|注意|随访",
)
_DIAGNOSES = re.compile(
    r"\b(?:(?:\d+[_-]?)?diagnos(?:is|es|e|en|tic\s+(?:possibilit\w+|considerations?|impressions?|"
    r"hypothes\w+|list))\b|\w*diagnosen?\b|diagnosis_output|diagnóstic(?:o|os|a|as)\b|"
    r"diagnostics?\b(?!\s+(?:tests?|steps?|work|eval|plan|criteria|approach|proced|imag|stud))|"
    r"différentiels?\b|diferencial(?:es)?\b|"
    r"differentials?\b|d?ddx\b|dx\b|(?:most\s+)?(?:likely|probable|possible|potential|plausible|"
    r"suspected|underlying)\s+(?:causes?|conditions?|diseases?|disorders?|illness(?:es)?|"
    r"explanations?|etiolog\w+|candidates?)|"
    r"(?:possible|main|common|rare|important|serious)?\s*(?:causes|diseases|disorders|conditions|"
    r"etiologies|possibilities|hypotheses|candidates|considerations)\b|"
    r"(?:most|more|less|least)\s+(?:likely|probable)\b|likely\b|(?:high|low|moderate|"
    r"medium)\s+(?:probability|likelihood)\b|"
    r"top[\s_-]?(?:\d+|five|three|ten)\b|rank(?:ed|ing)\b|in\s+order\s+of|(?:final|my|ordered|"
    r"revised|updated|ranked|working|initial|preliminary)\s+(?:list|answer|ranking)\b|answer\b|"
    r"consider(?:ed|ing)?\b|"
    r"must[\s-]not[\s-](?:be[\s-])?miss(?:ed)?|can(?:not|'t|’t)[\s-](?:be[\s-])?miss(?:ed)?|"
    r"reihenfolge|rangfolge|rangliste|clasificación|classement|krankheiten|erkrankungen|ursachen|"
    r"verdachts\w*|in\s+frage|infrage|wahrscheinlichste\w*|möglich\w*|"
    r"enfermedades|causas|hipótesis|posibilidades|posibles|sospecha\w*|probables?\b|maladies|"
    r"hypothèses|étiologies)"
    r"|诊断|鉴别|疾病|病因|考虑|怀疑|可能|排序|排名",
)
_INITIAL = re.compile(
    r"\b(?:initial\w*|working|preliminary|provisional|first\s+(?:impression|thoughts?|pass|"
    r"draft)|tentative|early|vorläufig\w*|anfänglich\w*|erste\s+einschätzung|"
    r"inicial(?:es)?|preliminar(?:es)?|provisional(?:es)?|initiale?s?|initiaux|préliminaires?|"
    r"provisoires?)\b|初步|最初|初始",
)
_FURTHER = re.compile(
    r"\b(?:other|alternative|further|additional|secondary|next|less\s+(?:likely|probable)|also|"
    r"remaining|rare(?:r)?|"
    r"weitere|andere|alternativ\w*|seltene\w*|otr[oa]s|alternativ[oa]s|menos\s+probables?|"
    r"autres?|moins\s+probables?)\b|其他|其它|次要|较少",
)
_REPLACES = re.compile(
    r"\b(?:final\w*|revised|updated|definitive|refined|endgültig\w*|abschließend\w*|"
    r"überarbeitet\w*|definitiv\w*|revisad\w*|finale?s?|révisée?s?|définiti\w*)\b|最终|最后|修订",
)
# Words that lead from findings to the list: "Based on the findings, …", "These findings suggest …".
_LEADS_IN = re.compile(
    r"\s*[*#_>\s]*(?:\w{2,}ing|based|given|after|from|considering|with|in\s+(?:view|light)|"
    r"taking|according|having|as|for|"
    r"nach|aufgrund|basierend|anhand|unter|según|basad|con\s+base|después|tras|dad|teniendo|"
    r"considerando|d['’]après|compte\s+tenu|après|au\s+vu|selon|sur\s+la\s+base|"
    r"根据|基于|综合|结合|鉴于)",
)
_INFERENCE = re.compile(
    r"suggest|point|consistent|compatible|indicat|leads?\s+to|raise|narrow|here\s+(?:are|is)|"
    r"the\s+following|these|most\s+likely|"
    r"deuten|sprechen|passen|ergeben|ergib|sugier|orienta|apunta|évoqu|suggèr|orient",
)
_TITLE_WORDS = 14
_LONGEST = 240  # characters of a line that are looked at
_CJK = re.compile(r"[\u4e00-\u9fff]")


_NUMBERED = re.compile(
    r"^\W*(?:step|part|section|stage|phase|schritt|teil|abschnitt|paso|parte|étape|partie|步骤|"
    r"第)\s*[\w一二三四五六七八九十]{1,5}\s*[:.)：–-]\s*(?=\S)",
)


def subject_of(heading: str) -> Subject:
    """Return what a heading says that the list below it is of.

    Examples
    --------
    >>> subject_of("After weighing the findings, the final differential diagnosis:").value
    'diagnoses'
    >>> subject_of("Tests to confirm the diagnosis").value, subject_of("Ruled out:").value
    ('other', 'excluded')
    """
    return _subject_of(heading[:_LONGEST].lower())


@lru_cache(maxsize=4096)  # the lines above a list are looked at for more than one reason
def _subject_of(heading: str) -> Subject:
    text = _NUMBERED.sub("", heading)
    diagnosis_match, other = _DIAGNOSES.search(text), _OTHER.search(text)
    long = len(text.split()) > _TITLE_WORDS  # says too much for one word of it to decide
    excluded = _EXCLUDED.search(text)
    led = (
        long
        and diagnosis_match is not None
        and excluded is not None
        and diagnosis_match.start() < excluded.start()
    )
    if excluded is not None and not led:
        return Subject.EXCLUDED
    if diagnosis_match is None:
        led = other is not None and _lead_in_ends(text) > other.start()
        return Subject.UNKNOWN if other is None or led else Subject.OTHER
    if other is not None and not _leads_to_diagnoses(text, diagnosis_match, other):
        return Subject.UNKNOWN if long else Subject.OTHER
    if _INITIAL.search(text):
        return Subject.INITIAL
    further = _FURTHER.search(text) is not None and _REPLACES.search(text) is None
    return Subject.FURTHER if further else Subject.DIAGNOSES


def says_other_first(text: str) -> bool:
    """Return whether a text begins with a word for something else than diagnoses, or for excluded
    ones.
    """
    text = text.lower()
    return _OTHER.match(text) is not None or _EXCLUDED.match(text) is not None


def _leads_to_diagnoses(text: str, diagnosis_match: re.Match[str], other: re.Match[str]) -> bool:
    """Return whether diagnoses are what the heading is about, though it names something else
    too.
    """
    if _CJK.search(text):  # the noun that counts stands last
        return _last(_DIAGNOSES, text) > _last(_OTHER, text)
    if diagnosis_match.start() < other.start():
        return True
    if (end := _lead_in_ends(text)) > 0:
        rest = text[end:]
    elif inference := _INFERENCE.search(text, other.end()):
        rest = text[inference.end() :]
    else:
        return False
    said_behind, other_behind = _DIAGNOSES.search(rest), _OTHER.search(rest)
    if said_behind is None:
        return False
    return other_behind is None or said_behind.start() < other_behind.start()


def _lead_in_ends(text: str) -> int:
    """Return where the words end that only lead to what follows ("Based on the findings, …"), 0
    where there are none.
    """
    return text.find(",") + 1 if _LEADS_IN.match(text) else 0


def _last(pattern: re.Pattern[str], text: str) -> int:
    return max(match.start() for match in pattern.finditer(text))
