import pytest


@pytest.fixture
def page(browser):
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    made = context.new_page()
    made.problems = []
    made.on("console", lambda message: made.problems.append(message.text))
    made.on("pageerror", lambda error: made.problems.append(str(error)))
    made.on(
        "request",
        lambda request: (
            request.url.startswith(("file:", "data:")) or made.problems.append(request.url)
        ),
    )
    yield made
    context.close()
    assert made.problems == []
