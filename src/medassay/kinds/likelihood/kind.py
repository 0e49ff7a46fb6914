"""How likely a model finds texts, instead of what it replies."""

from medassay.core.scale import PERPLEXITY, Scale
from medassay.kinds.kind import Kind, Presentation
from medassay.kinds.likelihood import choice_scorer, perplexity, relaxed_perplexity
from medassay.kinds.likelihood.summary import LikelihoodScores
from medassay.kinds.likelihood.tasks import TASKS
from medassay.score.measure import Measure
from medassay.score.scorer import Scorer


def _presentation() -> Presentation:
    from medassay.kinds.likelihood.page import PRESENTATION

    return PRESENTATION


LIKELIHOOD = Kind(
    tasks=TASKS,
    scorers=(
        Scorer(
            "bits_per_byte",
            perplexity.bits_per_byte,
            revision=1,
            scale=PERPLEXITY,
            missing_is_worst=False,
        ),
        Scorer(
            "relaxed_perplexity",
            relaxed_perplexity.relaxed_perplexity,
            revision=1,
            scale=PERPLEXITY,
            missing_is_worst=False,
        ),
    ),
    measures=(
        Measure(
            name="likeliest",
            parts=choice_scorer.likeliest_parts,
            revision=choice_scorer.REVISION,
            columns=dict.fromkeys(choice_scorer.SHARES, Scale()),
            forms=("choice",),
        ),
        Measure(
            name="perplexity",
            parts=perplexity.perplexity_parts,
            revision=perplexity.REVISION,
            columns=dict.fromkeys(perplexity.SIZES, PERPLEXITY),
            forms=("open", "text"),
        ),
        Measure(
            name="relaxed_perplexity",
            parts=relaxed_perplexity.relaxed_parts,
            revision=relaxed_perplexity.REVISION,
            forms=("open", "text"),
        ),
    ),
    key="likelihood",
    summary=LikelihoodScores,
    public_parts=(
        *("must", "nice", "per_position", "log_p", "above_one", "impossible"),
        *("kept", "distinct"),
    ),
    presentation=_presentation,
)
