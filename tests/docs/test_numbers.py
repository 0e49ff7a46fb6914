"""Numbers in the documentation are those that its commands print."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_worked_example_of_metrics_prints_the_numbers_of_its_text(cli, data):
    text = (ROOT / "docs/how-to/suites.md").read_text(encoding="utf-8")
    example = text.split("### A worked example: metrics against people")[1].split("\n###")[0]
    folder = data / "mts_dialog/correlation_study"
    code, printed, errors = cli(
        "study",
        "metrics",
        folder / "MTS-Dialog-Automatic-Summaries-ValidationSet.csv",
        "--labels",
        folder / "MTS-Dialog-Manual-Scores4CorrelationStudy.csv",
        "--people",
        "FactualF1,OmissionRate,HallucinationRate",
        "--columns",
        "prediction=Automatic Summary,reference=Reference Summary,item=ID",
    )
    assert code == 0, errors
    estimates = re.findall(r"−?0\.\d\d \[[^]]+\]", example)
    assert len(estimates) == 2
    assert all(estimate in printed for estimate in estimates)
    lines = {line.split("│")[1].strip(): line for line in printed.splitlines() if "│" in line}
    assert "chrf" in lines
    rouge = [line for line in printed.splitlines() if re.match(r"│ rouge1 +│", line)]
    facts, left_out, hallucination = (
        float(re.search(r"−?0\.\d\d", line)[0].replace("−", "-")) for line in rouge
    )
    assert f"before ROUGE-1 ({facts:.2f} and −{-left_out:.2f})" in " ".join(example.split())
    largest = float(re.search(r"has \|r\| (0\.\d\d)", example)[1])
    assert largest == -hallucination
    shown = printed.split("Agreement with people: HallucinationRate")[1].split(
        "Which say the same"
    )[0]
    assert largest == max(
        abs(float(r.replace("−", "-"))) for r in re.findall(r"(−?0\.\d\d) \[", shown)
    )
