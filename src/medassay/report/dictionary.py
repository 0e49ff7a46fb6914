"""What each column of a publication's tables holds: `data/dictionary.csv`.

A name means the same in every table.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from medassay.report.tables import csv_text

Kind = Literal["text", "number", "count", "yes or no"]
PARQUET: Mapping[Kind, str] = {
    "text": "VARCHAR",
    "number": "DOUBLE",
    "count": "BIGINT",
    "yes or no": "BOOLEAN",
}


class Column(msgspec.Struct, frozen=True):
    """A column: what kind of value it holds, and what that is."""

    kind: Kind
    meaning: str


_SHARE = "share, from 0 to 1"
COLUMNS: Mapping[str, Column] = {
    # what a row is about
    "domain": Column("text", "domain of the ranking, by id; overall: the mean over domains"),
    "mode": Column("text", "solo, or with tools"),
    "model": Column("text", "model, by its id"),
    "setting": Column("text", "what the model was shown besides the question, by id"),
    "metric": Column("text", "metric of the score"),
    "item": Column("text", "item, by its id within its domain"),
    "repeat": Column("count", "which of several askings of the same question, from 0"),
    "category": Column("text", "category of the items"),
    "prompt": Column("text", "prompt of a ranked list"),
    "number": Column("text", "name of the number that the row tells"),
    "weights": Column("text", "weights of the places of a ranked list"),
    "role": Column("text", "model or judge"),
    "kind": Column("text", "kind of question"),
    "items": Column("text", "public or synthetic items"),
    # scores and their intervals
    "score": Column("number", "score, on its scale: shares from 0 to 1, never percentages"),
    "estimate": Column("number", "value of the number, on its scale"),
    "lo": Column("number", "lower end of the 95 % interval"),
    "hi": Column("number", "upper end of the 95 % interval"),
    "interval": Column("text", "method of that interval"),
    "second_method": Column("text", "method of a second interval"),
    "second_lo": Column("number", "lower end of the second interval"),
    "second_hi": Column("number", "upper end of the second interval"),
    "scale_lo": Column("number", "lower end of the scale"),
    "scale_hi": Column("number", "upper end of the scale"),
    "k": Column("number", "steepness of the curve that rescales the number"),
    "x0": Column("number", "middle of the curve that rescales the number"),
    "n": Column("count", "items that the number rests on"),
    "n_common": Column("count", "items that all ranked rows have"),
    "coverage": Column("number", f"{_SHARE}: items with a score"),
    "gold": Column("count", "references made by people"),
    "silver": Column("count", "references made by a model"),
    # ranks
    "rank": Column("count", "first rank of the range; empty where the row is not ranked"),
    "rank_lo": Column("count", "first rank of the range"),
    "rank_hi": Column("count", "last rank of the range"),
    "group": Column("count", "rows with the same first rank"),
    # how replies were read
    "unparsed_rate": Column("number", f"{_SHARE}: replies in which no answer was found"),
    "ambiguous_rate": Column("number", f"{_SHARE}: replies with several answers"),
    "unread_rate": Column("number", f"{_SHARE}: unclear, cut off or declined replies"),
    "cut_off": Column("count", "replies cut off at their token limit"),
    "outcome": Column("text", "answered, unparsed, truncated, refused or failed"),
    "value": Column("text", "what was read from the reply"),
    "reason": Column("text", "rule by which it was read, or why not"),
    "text": Column("text", "the reply; empty where it is withheld"),
    "order": Column("text", "bank letters of the options shown as A, B, C …; empty: the same"),
    "because": Column("text", "why the score is what it is"),
    "scorer": Column("text", "scorer that gave the score"),
    "sha256": Column("text", "hash of the answer's record, as its page shows it"),
    "seconds": Column("number", "seconds of generation"),
    # judges
    "agreement": Column(
        "number", f"{_SHARE}: pairs of judges that say the same of a fact, mean over answers"
    ),
    "unanimous": Column(
        "number", f"{_SHARE}: facts of which all judges say the same, mean over answers"
    ),
    "hallucination_rate": Column("number", f"{_SHARE}: answers with a false claim"),
    "hallucination_lo": Column("number", "lower end of its 95 % interval"),
    "hallucination_hi": Column("number", "upper end of its 95 % interval"),
    "contradict_rate": Column("number", f"{_SHARE}: facts that answers contradict"),
    "judge_failures": Column("count", "answers without all verdicts"),
    "flags": Column("text", "marks of the row, with blanks between them"),
    # pairs
    "first": Column("text", "model of the first row of a pair"),
    "first_setting": Column("text", "its setting"),
    "second": Column("text", "model of the second row of a pair"),
    "second_setting": Column("text", "its setting"),
    "difference": Column("number", "mean of the first minus mean of the second, on the scale"),
    "test": Column("text", "test of this pair alone"),
    "p": Column("number", "its p value"),
    "p_holm": Column("number", "p value after Holm, over all pairs of the ranking"),
    "p_max_t": Column("number", "p value of the test of all pairs at once"),
    "se": Column("number", "standard error of the difference"),
    "better": Column("text", "first or second: which is shown to be better; empty: neither"),
    "different": Column("yes or no", "whether the interval of this pair alone excludes 0"),
    "separated": Column("yes or no", "whether the intervals of the two scores are apart"),
    "ordered": Column("yes or no", "whether the test of all pairs at once orders the two"),
    "note": Column("text", "what else is to be said of the pair"),
    "unread_first": Column("number", f"{_SHARE}: unread replies of the first row"),
    "unread_second": Column("number", f"{_SHARE}: unread replies of the second row"),
    "unread_outweighs": Column(
        "yes or no", "whether unread replies differ by more than the scores"
    ),
    # times and costs
    "replies": Column("count", "replies"),
    "mean_seconds": Column("number", "mean seconds of generation"),
    "seconds_lo": Column("number", "lower end of its 95 % interval"),
    "seconds_hi": Column("number", "upper end of its 95 % interval"),
    "prompt_tokens": Column("count", "tokens of prompts"),
    "completion_tokens": Column("count", "tokens of replies"),
    "cached_tokens": Column("count", "tokens of prompts that were cached"),
    "reasoning_tokens": Column("count", "tokens of replies that were thoughts"),
    "without_tokens": Column("count", "replies that told no tokens"),
    "cost": Column("number", "money, at the prices of the models file; empty: unknown"),
    "currency": Column("text", "currency of the cost"),
    "price_known": Column("yes or no", "whether the price is known"),
    "location": Column("text", "local or external"),
    "engine": Column("text", "what serves the weights"),
    "quantisation": Column("text", "quantisation of the weights"),
    "gpu": Column("text", "graphics processor of the machine"),
    "cpu": Column("text", "processor of the machine"),
    "memory_gib": Column("count", "memory of the machine, in GiB"),
    # the dictionary itself
    "table": Column("text", "name of the table's file, without its ending"),
    "column": Column("text", "name of the column"),
    "holds": Column("text", "text, number, count, or yes or no"),
    "meaning": Column("text", "what the column holds"),
}


def dictionary_csv(tables: Mapping[str, Sequence[str]]) -> str:
    """Return the dictionary of tables, each with its columns, as a table."""
    return csv_text(
        ["table", "column", "holds", "meaning"],
        (
            {
                "table": table,
                "column": name,
                "holds": COLUMNS[name].kind,
                "meaning": COLUMNS[name].meaning,
            }
            for table, columns in tables.items()
            for name in columns
        ),
    )
