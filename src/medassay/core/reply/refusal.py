"""Does a reply decline to answer? In English, German, Spanish, French and Chinese.

Readers ask this after nothing else was found in a reply: a reply that declines and answers all the
same has answered. What a clinician says of a case ("I cannot rule out sepsis", "the patient
declined") is no refusal: a refusal is about what the writer will do or is.
"""

import re
from functools import cache

REVISION = 1

SAID = "said"  # the reason of a refusal in words; "provider" is one that the endpoint reports
_LOOKED_AT = 4_000  # characters from the beginning: who declines says so soon
_LONGEST = 1_200  # characters of a reply that does nothing but decline
_ADVERBS = r"(?:\s+(?:\w+ly|also|not|just|even|personally|be\s+able\s+to))*"
_DOING = (
    r"(?:provide|give|offer|make|help|assist|diagnose|answer|comply|fulfil\w*|respond|discuss|"
    r"generate|complete|advise|share|engage|continue|create|"
    r"write|comment|participate|support|process|proceed|do\s+(?:that|this|so)|be\s+of\s+(?:help|"
    r"assistance)|act\s+as|replace|meet|accommodate|handle|"
    r"issue|deliver|supply|present|list|name|suggest|speculate|interpret|evaluate|select|choose|"
    r"pick|render|perform|engage|recommend\s+(?:a\s+)?(?:treat|diagnos|medic))\b"
)
_NOT_ABLE = (
    r"(?:ca(?:n'?t|n’t|nnot|n\s+not)|could(?:n'?t|n’t|\s+not)|(?:am|['’]m|are|"
    r"['’]re)\s+(?:\w+\s+)?(?:unable|not\s+(?:able|allowed|permitted|authori[sz]ed|qualified|"
    r"licensed|equipped|programmed|"
    r"designed|trained|comfortable|in\s+a\s+position|going))\s*(?:to|for)?|(?:am|"
    r"['’]m)\s+un(?:able|qualified)\s+to|wo(?:n'?t|n’t)|will\s+not|shall\s+not|"
    r"(?:do\s+not|don'?t|don’t)\s+(?:feel\s+comfortable|have\s+the\s+(?:ability|qualifications|"
    r"expertise|capability)\s+to)?|(?:must|have\s+to|need\s+to|am\s+going\s+to|"
    r"['’]m\s+going\s+to)\s+(?:\w+ly\s+)?(?:decline|refuse|abstain|refrain))"
)
_ENGLISH = (
    rf"\b(?:I|we)(?:\s+(?:regret|"
    rf"apologi[sz]e)[^.!?\n]{{0,40}})?\s*{_NOT_ABLE}{_ADVERBS}\s*{_DOING}",
    r"\b(?:I|we)\s+(?:\w+\s+){0,3}(?:must|have\s+to|need\s+to|will|"
    r"would)\s+(?:\w+ly\s+)?(?:decline|refuse|abstain)\b",
    r"\bI(?:['’]d|\s+would)\s+(?:prefer|rather)\s+not\b|\bI\s+(?:prefer|choose)\s+not\s+to\b|"
    r"\bI\s+decline\b|\bI\s+refuse\b|^\W*I\s+(?:do\s+not|don['’]?t)\s+diagnose\b",
    r"\b(?:I\s+am|I['’]m)\s+(?:sorry|afraid)\b[^.!?\n]{0,30}?\b(?:that['’]?s|this\s+is|"
    r"it['’]?s)\s+(?:something|not\s+something|beyond|outside)",
    r"\b(?:I\s+am|I['’]m)\s+(?:only\s+|just\s+|merely\s+)?(?:an?\s+)?(?:AI|"
    r"artificial\s+intelligence|(?:large\s+)?language\s+model|virtual\s+assistant|chatbot)\b",
    r"\bas\s+an?\s+(?:AI|artificial\s+intelligence|(?:large\s+)?language\s+model|"
    r"virtual\s+assistant|machine)\b",
    r"\b(?:I\s+am|I['’]m)\s+not\s+an?\s+(?:\w+\s+){0,2}(?:doctor|physician|clinician|"
    r"medical\s+professional|health\s?care\s+professional|healthcare\s+provider|professional)\b",
    r"\b(?:against|violates?|not\s+(?:in\s+line|consistent)\s+with|breach\w*|due\s+to|by|under|"
    r"because\s+of)\s+(?:(?:my|our|the|its|openai['’]?s|content|safety|usage|use|"
    r"ethical)\s+){1,3}(?:guidelines|polic(?:y|ies)|programming|principles|restrictions|"
    r"instructions)\b",
    r"\bit\s?(?:is|would(?:\s+not)?\s+be|['’]s)\s+(?:not\s+)?(?:appropriate|inappropriate|"
    r"unethical|irresponsible|unsafe|wrong|right)\s+for\s+me\b",
    r"\b(?:guidelines|polic(?:y|ies)|programming|instructions|rules|terms|"
    r"restrictions)\s+(?:\w+\s+){0,3}(?:not\s+(?:allow|permit)|prevent|prohibit|forbid)\w*\s+me\b",
    r"^\W*(?:sorry|apologies|unfortunately|regrettably)\W+(?:but\s+)?(?:(?:I|"
    r"we)\s+)?(?:ca(?:n'?t|n’t|nnot)|not\s+able|unable)\b",
    r"^\W*(?:unable|not\s+able|not\s+allowed|cannot|can['’]?t|declin(?:e|"
    r"ing))\s+(?:to\s+)?(?:\w+ly\s+)?" + _DOING,
    r"\b(?:this|that|the)\s+(?:request|question|content|prompt|topic|"
    r"query)\s+(?:\w+\s+){0,4}(?:cannot\s+be\s+(?:answered|fulfilled|processed|completed|"
    r"provided)|violates|goes\s+against|is\s+(?:outside|beyond)|has\s+been\s+(?:blocked|refused|"
    r"declined|flagged))",
    r"\b(?:outside|beyond)\s+(?:of\s+)?(?:my|the)\s+(?:scope|capabilit\w+|abilit\w+|expertise|"
    r"competence)\b",
    r"\b(?:medical|clinical)\s+(?:advice|diagnos\w+)\s+(?:is\s+something\s+)?(?:I|"
    r"that\s+I)\s+(?:am\s+not|cannot|can['’]?t)\b",
    r"\bno\s+(?:medical\s+)?(?:diagnosis|advice)\s+can\s+be\s+(?:given|provided)\s+(?:by|here)",
)
_HELFEN = (
    r"(?:helfen|weiterhelfen|behilflich|diagnos\w*|beantworten|antworten|geben|abgeben|stellen|"
    r"liefern|bereitstellen|anbieten|beraten|ersetzen|erstellen|"
    r"nennen|leisten|erteilen|vornehmen|bieten|nachkommen|entsprechen|erfüllen|auswählen|machen|"
    r"unterstützen|durchführen|treffen|eingehen)"
)
_GERMAN = (
    rf"\bich\s+(?:kann|darf|möchte|werde|könnte|muss)\b[^.!?\n]{{0,80}}?\b(?:nicht|keine\w?|"
    rf"weder)\b[^.!?\n]{{0,90}}?\b{_HELFEN}\b",
    rf"\b(?:kann|darf|möchte|werde)\s+ich\b[^.!?\n]{{0,80}}?\b(?:nicht|"
    rf"keine\w?)\b[^.!?\n]{{0,90}}?\b{_HELFEN}\b",
    r"\b(?:das|dabei|damit|dazu|hierbei|hierzu)\s+(?:kann|darf|"
    r"möchte)\s+ich\b[^.!?;\n]{0,30}?\bnicht\b\s*(?=[.!?;,\n]|$)",
    r"\bich\s+bin\s+(?:\w+\s+){0,2}(?:nicht\s+(?:in\s+der\s+lage|befugt|berechtigt|qualifiziert|"
    r"autorisiert|dafür)|kein\s+(?:arzt|mediziner)|keine\s+(?:ärztin|medizinerin|fachperson)|"
    r"(?:nur\s+)?(?:eine?\s+)?(?:ki\b|künstliche\s+intelligenz|sprachmodell|ki-))",
    r"\bals\s+(?:(?:eine?|reine[sr]?)\s+)?(?:ki\b|ki-\w+|künstliche\s+intelligenz|sprachmodell|"
    r"digitaler\s+assistent)",
    r"\bich\s+(?:muss|möchte)\b[^.!?\n]{0,40}\b(?:ablehnen|verzichten)\b|"
    r"\bich\s+lehne\b[^.!?\n]{0,40}\bab\b",
    r"\b(?:es\s+ist|wäre)\s+(?:mir\s+)?(?:leider\s+)?nicht\s+(?:möglich|erlaubt|"
    r"gestattet)\b[^.!?\n]{0,60}\b(?:diagnos\w*|rat|beratung|auskunft|antwort|zu\s+(?:geben|"
    r"stellen|helfen|beantworten))",
)
_DAR = (
    r"(?:proporcionar|dar|ofrecer|ayudar\w*|diagnosticar|responder|realizar|emitir|hacer|"
    r"brindar|asistir\w*|contestar|cumplir|atender\w*|facilitar|prestar|sustituir|reemplazar|"
    r"establecer|elegir|darle|ofrecerle|ayudarle|proporcionarle)"
)
_SPANISH = (
    rf"\bno\s+(?:me\s+)?(?:puedo|podemos|podría|debo|es\s+posible|está\s+permitido|"
    rf"me\s+es\s+posible)\s+(?:\w+\s+){{0,2}}{_DAR}\b",
    r"\bno\s+(?:estoy|soy|tengo)\s+(?:(?:un|una|la)\s+)?(?:autorizad\w|capacitad\w|calificad\w|"
    r"cualificad\w|habilitad\w|en\s+condiciones|médic\w|doctor\w?|profesional|capacidad)",
    r"\b(?:como|soy|al\s+ser)\s+(?:sólo\s+|solo\s+|únicamente\s+)?(?:(?:un|"
    r"una)\s+)?(?:modelo\s+de\s+lenguaje|ia\b|inteligencia\s+artificial|asistente\s+(?:virtual|"
    r"de\s+ia))",
    r"\b(?:infringe|viola|incumple|vulnera)\w*\s+(?:\w+\s+){0,3}(?:pol[ií]tica|normas|"
    r"directrices)|(?:pol[ií]ticas?|normas|"
    r"directrices)\b[^.!?\n]{0,40}\bno\s+(?:me\s+)?permiten?\b",
    r"\b(?:debo|tengo\s+que|prefiero)\s+(?:declinar|rechazar|rehusar|no\s+(?:responder|"
    r"contestar))|\bme\s+abstengo\b|\bdeclino\b",
)
_FOURNIR = (
    r"(?:fournir|donner|poser|aider|répondre|diagnostiquer|établir|offrir|proposer|"
    r"formuler|remplacer|faire|accéder|traiter|délivrer|émettre|prodiguer|assister|"
    r"satisfaire|choisir)"
)
_FRENCH = (
    rf"\bje\s+(?:ne|n['’])\s*(?:\w+\s+)?(?:peux|puis|saurais|pourrai|pourrais|"
    rf"dois)\b(?:\s+(?!pas\b)\w+)?(?:\s+pas)?\s+(?:\S+\s+){{0,2}}{_FOURNIR}\b",
    r"\bje\s+ne\s+suis\s+(?:\w+\s+)?pas\s+(?:(?:un|une)\s+)?(?:médecin|professionnel|docteur|"
    r"en\s+mesure|habilité|qualifié|autorisé|en\s+capacité|capable)",
    r"\b(?:en\s+tant\s+qu['’]|je\s+suis\s+(?:seulement\s+|juste\s+)?)(?:une?\s+)?(?:ia\b|"
    r"intelligence\s+artificielle|modèle\s+de\s+langage|assistant\s+(?:virtuel|ia))|"
    r"\ben\s+tant\s+que\s+(?:modèle|programme|assistant)",
    r"\b(?:politique|règles|directives|consignes)\b[^.!?\n]{0,40}\bne\s+(?:m['’]autorise|"
    r"me\s+permet)\w*\s+pas",
    r"\bil\s+(?:ne\s+)?m['’]est\s+(?:pas\s+possible|impossible)|\bje\s+(?:dois|"
    r"préfère)\s+(?:décliner|refuser|m['’]abstenir|ne\s+pas)|\bje\s+refuse\b|\bje\s+décline\b",
)
_CHINESE = (
    (
        r"(?:我|本人|本助手|本模型|作为[^。！？\n]{0,20}|抱歉|对不起|很遗憾|不好意思|遗憾)[^。"
        r"！？\n]{0,16}?(?:无法|不能|不可以|不便|没办法|不会|无权|没有资格|不应)[^。"
        r"！？\n]{0,16}?(?:诊断|建议|回答|答案|帮助|帮您|帮你|协助|医疗|意见|服务|满足|替代|代替|处理|提供|完成)"
    ),
    r"我(?:只是|仅是|是)?(?:一个|一名|一款)?(?:AI|人工智能|语言模型|大语言模型|虚拟助手)|作为(?:一个|一名|一款)?(?:AI|人工智能|语言模型|大语言模型|"
    r"大模型|虚拟助手)|我(?:并)?不是(?:一名|一位)?(?:医生|医师|医疗专业)",
    (
        r"^\W*(?:无法|不能|拒绝)(?:为您|为你)?(?:提供|回答|给出)[^。"
        r"！？\n]{0,16}(?:诊断|建议|答案|帮助)|我拒绝"
    ),
)
# A cheap look before the dear one: no refusal is without one of these.
_MAYBE = re.compile(
    r"can['’ ]?n?o?t|couldn|could"
    r" not|unable|n['’]t|\b(?:am|['’]m|are|['’]re|do|will|shall|rather|prefer|choose|"
    r"\w+ly)\s+not\b|\bnot\s+(?:able|allowed|permitted|authori|qualified|licensed|equipped|"
    r"programmed|designed|trained|comfortable|in\s|going|an?\b|diagnose|something|appropriate|"
    r"be\b)|declin|refus|abstain|prefer|\bAI\b|artificial|language"
    r" model|assistant|sorry|apolog|unfortunately|polic|guideline|programming|rules|terms|"
    r"restrictions|appropriate|wrong|right|política|normas|directrices|politique|règles|"
    r"directives|consignes|scope|beyond|outside|chatbot|unethical|inappropriate|"
    r"nicht|kein|weder|\bki\b|sprachmodell|ablehn|lehne|\bno\b|modelo|inteligencia|declin|"
    r"abstengo|\bne\b|n['’]|\bia\b|intelligence|modèle|impossible|refuse|无法|不能|不可|不便|没办法|不会|无权|"
    r"没有资格|不应|不是|作为|我是|我只|拒绝",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s*|\n+")
# What surrounds a refusal and answers nothing: apologies, referrals, offers.
_AROUND = re.compile(
    r"sorry|apolog|understand|unfortunately|thank|happy\s+to|glad\s+to|feel\s+free|"
    r"let\s+me\s+know|anything\s+else|another\s+(?:question|topic)|here\s+to\s+help|"
    r"\b(?:consult|contact|see|seek|speak|talk|visit|reach\s+out|recommend|advise|suggest|"
    r"encourage|urge|important|essential|best|please|call|go\s+to|refer|discuss)\b[^\n]{0,160}?"
    r"\b(?:doctor|physician|professional|provider|clinician|specialist|emergency|hospital|"
    r"practitioner|medical\s+(?:attention|care|help)|care\s+team|911|112)\b|"
    r"not\s+a\s+substitute|general\s+information|leid|bedauer|verständnis|bitte|wenden\s+sie|"
    r"ärztin|arzt|notruf|notaufnahme|fachpersonal|"
    r"lo\s+siento|lamento|disculp|consulte|acuda|médico|profesional|urgencias|désolé|regrette|"
    r"consultez|médecin|professionnel|urgences|抱歉|对不起|遗憾|请|建议|咨询|就医|医生|医院|急诊",
    re.IGNORECASE,
)


@cache
def _declines() -> re.Pattern[str]:
    """Return the pattern of all refusals; compiled when a reply needs it, since that takes as long
    as importing a small library.
    """
    patterns = (*_ENGLISH, *_GERMAN, *_SPANISH, *_FRENCH, *_CHINESE)
    return re.compile("|".join(f"(?:{p})" for p in patterns), re.IGNORECASE)


def declines(text: str) -> bool:
    """Return whether a reply says that its writer will not or cannot answer.

    Examples
    --------
    >>> declines("I'm sorry, but I can't provide a diagnosis."), declines(
    ...     "I cannot rule out sepsis.")
    (True, False)
    """
    return declined_at(text) >= 0


def declined_at(text: str) -> int:
    """Return where in a reply its refusal ends, -1 where it holds none."""
    looked_at = text[:_LOOKED_AT]
    if _MAYBE.search(looked_at) is None:
        return -1
    match = _declines().search(looked_at)
    return -1 if match is None else match.end()


def only_declines(text: str) -> bool:
    """Return whether a reply does nothing else: each of its sentences declines, apologises, or
    sends to a doctor.

    Examples
    --------
    >>> only_declines("I'm not a doctor. Please see your physician."), only_declines(
    ...     "I'm not a doctor, but this is gout. Take colchicine.")
    (True, False)
    """
    if len(text) > _LONGEST or not declines(text):
        return False
    sentences = [
        sentence
        for sentence in _SENTENCE_END.split(text)
        if len(sentence.strip(" \t-*•#_.:0123456789)")) > 2
    ]
    return all(_declines_alone(sentence) for sentence in sentences)


_TURN = re.compile(
    r"\b(?:but|however|although|yet|aber|jedoch|pero|sin\s+embargo|mais|cependant|toutefois)\b|但|"
    r"不过|然而",
    re.IGNORECASE,
)


def _declines_alone(sentence: str) -> bool:
    """Return whether a sentence declines or goes with it.

    Behind a "but" an answer may stand, unless that declines too.
    """
    parts = [part for part in _TURN.split(sentence) if len(part.strip(" ,.;:")) > 2]
    return all(_declines().search(part) or _AROUND.search(part) for part in parts)


def turns_to_answer(text: str) -> bool:
    """Return whether a text holds a word behind which an answer may follow a refusal: but,
    however.
    """
    return _TURN.search(text) is not None
