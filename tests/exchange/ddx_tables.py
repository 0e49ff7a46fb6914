"""Kernel29's tables of labels and of raw lists."""

COLUMNS = (
    "patient_id,model_name,prompt_name,golden_diagnosis,golden_diagnosis_severity,rank,"
    "differential_diagnosis,differential_diagnosis_severity_name,"
    "differential_diagnosis_semantic_relationship_name"
)


GOOD = [
    "1,m,p,Gout,moderate,1,Podagra,moderate,Exact Synonym",
    "1,m,p,Gout,moderate,2,Flu,mild,Not Related",
]


def labels(folder, *rows):
    path = folder / "labels.csv"
    path.write_text("\n".join([COLUMNS, *rows]) + "\n")
    return path
