import pytest


@pytest.fixture(scope="module")
def browser(chromium):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        made = play.chromium.launch(
            executable_path=chromium,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield made
        made.close()


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
