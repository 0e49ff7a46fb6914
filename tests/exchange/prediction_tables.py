"""Tables of finished predictions."""

COLUMNS = {"item": "i", "model": "m", "domain": "d", "prediction": "p", "key": "k"}


HEAD = "i,m,d,p,k\n"


def table(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    return path


def rows(n=12, models=("a", "b")):
    return HEAD + "".join(
        f"q{i:02},{m},d,{'AB'[(i + k) % 3 == 0]},A\n"
        for i in range(n)
        for k, m in enumerate(models)
    )
