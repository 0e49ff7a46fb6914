"""The machinery asks kinds of tasks and never compares with the name of one."""

import ast
from pathlib import Path

from medassay.core.records.target import TARGETS
from medassay.kinds.catalog import KINDS, RULES, presentations

PACKAGE = Path(__file__).parents[2] / "src/medassay"
# Free to name a kind: kinds themselves, what is named after one, and the wings.
FREE = (
    *("kinds/", "bank/loaders/", "synthesis/", "study/", "suite/", "selection/", "review/"),
    *("web/", "exchange/", "cli/demo.py", "cli/study_judges.py"),
)
# Words that are a kind's and something else's: here they are the other thing.
OTHER_MEANINGS = {
    "bank/builder.py: k == 'record'",  # keys of files
    "bank/check.py: 'facts' in record",
    "bank/check.py: answer_type == 'open'",
    "bank/check.py: answer_type not in ('closed', 'open')",
    "bank/check.py: record.get('answer_type') == 'open'",
    "bank/table.py: 'regex' not in record",
    "bank/table.py: {'regex', 'expected'} <= record.keys()",
    "bank/table.py: key in ('expected', 'reference', 'regex')",
    "core/records/target/closed.py: 'range' in record",
    "core/records/target/open.py: 'facts' not in record",
    "core/records/target/open.py: 'reference' in record",
    "core/records/target/record.py: 'record' in record",
    "storage/signature.py: signature.keys() != {'key', 'value'}",
    "core/records/model.py: 'likelihood' not in self.capabilities",  # what a model can do
    "runner/probing.py: 'likelihood' in spec.capabilities",
    "core/records/prompt.py: part['type'] == 'text'",  # part of a message
    "judging/graders/graph/graph.py: node.type == 'choice'",  # node of a graph
}


def comparisons(tree, names):
    for node in ast.walk(tree):
        if isinstance(node, ast.match_case):
            constants = {n.value for n in ast.walk(node.pattern) if isinstance(n, ast.Constant)}
            shown = ast.unparse(node.pattern)
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            texts = [side for side in sides if isinstance(side, ast.Constant)]
            for side in sides:
                if isinstance(side, ast.Tuple | ast.List | ast.Set):
                    texts += [e for e in side.elts if isinstance(e, ast.Constant)]
            constants, shown = {text.value for text in texts}, ast.unparse(node)
        else:
            continue
        if constants & names:
            # A comparison with two signs is told as the one with the name.
            yield shown


def found():
    names = {*KINDS, *(target.form for target in TARGETS), *RULES, *presentations()}
    for path in sorted(PACKAGE.rglob("*.py")):
        where = path.relative_to(PACKAGE).as_posix()
        if not where.startswith(FREE):
            for shown in comparisons(ast.parse(path.read_text()), names):
                yield f"{where}: {shown}"


def test_no_comparison_with_the_name_of_a_kind():
    assert set(found()) - OTHER_MEANINGS == set()


def test_every_exception_is_still_there():
    assert set(found()) >= OTHER_MEANINGS
