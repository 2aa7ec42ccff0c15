"""The report in a headless Chromium: what a reader sees, reaches by keyboard, and waits for."""

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from merit_sql.app.cli import main
from merit_sql.eval.datasets import Question

MakeRun = Callable[..., Path]
Open = Callable[..., Page]
CHROMIUM = shutil.which("chromium")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the path"),
]

HOSTILE = "<script>window.hacked = 1</script> </script> <!-- <img src=x onerror='window.hacked = 2'> &lt; %s"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # A container's root cannot have Chromium's own sandbox; the pages are ours.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Open a report; the test fails where it logged an error or asked for anything but itself."""
    faults: list[str] = []
    contexts = []

    def open_(report: Path, fragment: str = "", **options: Any) -> Page:
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on(
            "request", lambda one: None if one.url.startswith(report.as_uri()) else faults.append(one.url)
        )
        page.goto(report.as_uri() + fragment)
        page.wait_for_selector("#detail h3")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert faults == []


@pytest.fixture(scope="module")
def small(make_run: MakeRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 questions, two methods, two orders; question 2 is hostile."""
    from merit_sql.eval.suites import mini_questions

    texts = [item["question"] for item in mini_questions()]
    questions = [
        Question(
            id=number,
            database_id=f"db_{number % 3}",
            question=HOSTILE if number == 2 else texts[number],
            evidence=HOSTILE if number == 2 else "",
            difficulty="easy",
        )
        for number in range(40)
    ]
    run = make_run(tmp_path_factory.mktemp("small") / "run", questions=questions, orders=(0, 1))
    assert main(["report", str(run), "--against", "paper"]) == 0
    return run / "report.html"


@pytest.fixture(scope="module")
def large(make_run: MakeRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """10,000 episodes of up to eight attempts."""
    run = make_run(tmp_path_factory.mktemp("large") / "run", questions=2500, orders=(0, 1), budget=7)
    assert main(["report", str(run)]) == 0
    return run / "report.html"


def count(page: Page) -> str:
    return page.inner_text("#count")


def detail(page: Page) -> str:
    return page.inner_text("#detail")


def filtered(page: Page, selector: str, label: str) -> str:
    """Choose in a filter, and wait for the count to follow."""
    before = count(page)
    page.select_option(selector, label=label)
    page.wait_for_function("before => document.getElementById('count').textContent !== before", arg=before)
    return count(page)


def test_the_overview_comes_first_and_answers_five_questions(small: Path, open_page: Open) -> None:
    page = open_page(small)
    assert page.locator("main > section").first.get_attribute("id") == "overview"
    assert page.locator("#overview .answer h3").all_inner_texts() == [
        "Which method is better?",
        "Is that certain?",
        "Where does it gain?",
        "At what cost?",
        "What did episode 17 do?",
    ]
    assert page.evaluate("scrollY") == 0


def test_hostile_text_is_shown_and_does_nothing(small: Path, open_page: Open) -> None:
    page = open_page(small)
    page.select_option("#goto-kind", label="question id")
    page.fill("#goto-value", "2")
    page.click("#goto button")
    assert page.inner_text("#detail .question") == HOSTILE
    assert HOSTILE in page.inner_text("#detail dl")
    assert page.evaluate("window.hacked === undefined")
    assert page.locator("img").count() == 0


def test_episode_17_is_found_at_once_by_position_or_by_address(small: Path, open_page: Open) -> None:
    page = open_page(small)
    page.fill("#goto-value", "17")
    page.press("#goto-value", "Enter")
    assert detail(page).startswith("Episode 17: merit, order 0")
    assert page.evaluate("document.activeElement.id") == "detail"
    address = page.evaluate("location.hash")
    again = open_page(small, address)
    assert detail(again) == detail(page)
    again.evaluate("location.hash = '#episode/0/3'")
    again.wait_for_function(
        "() => document.querySelector('#detail h3').textContent.startsWith('Episode 3: iterative')"
    )


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [("position in its stream, from 0", "40", "positions 0 to 39"), ("question id", "99", "no question 99")],
)
def test_going_nowhere_says_so(small: Path, open_page: Open, kind: str, value: str, said: str) -> None:
    page = open_page(small)
    page.select_option("#goto-kind", label=kind)
    page.fill("#goto-value", value)
    page.click("#goto button")
    assert said in page.inner_text("#goto-said")


def test_an_address_of_no_episode_says_so(small: Path, open_page: Open) -> None:
    page = open_page(small, "#episode/9/9")
    assert "not in this report" in page.inner_text("#goto-said")


def test_filters_narrow_the_list(small: Path, open_page: Open) -> None:
    # 40 questions: 14 right at first; merit repairs the 13 even others, iterative 4, 8, 16, 20, 28, 32.
    page = open_page(small)
    assert count(page) == "160 of 160 episodes"
    assert filtered(page, "#f-outcome", "repaired") == "38 of 160 episodes"
    assert filtered(page, "#f-method", "merit") == "26 of 160 episodes"
    assert filtered(page, "#f-order", "1") == "13 of 160 episodes"
    # Of merit's repaired 2, 4, 8, 10, 14, …: those with number % 3 = 1 are 4, 10, 16, 22, 28, 34.
    assert filtered(page, "#f-database", "db_1") == "6 of 160 episodes"
    page.click("#filters button")
    page.wait_for_function("() => document.getElementById('count').textContent.startsWith('160 of')")
    # Schema Linking at first: 3 mod 4 and not 0 mod 3: 7, 11, 19, 23, 31, 35 in four streams.
    page.select_option("#f-outcome", label="unresolved")
    assert filtered(page, "#f-type", "Schema Linking") == "24 of 160 episodes"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ONERROR=", "4 of 160"),
        ("from t7 ", "4 of 160"),
        ("no such column: c2", "24 of 160"),
        ("no such thing at all", "0 of 160"),
    ],
)
def test_free_text_is_sought_in_questions_sql_and_errors(
    small: Path, open_page: Open, text: str, found: str
) -> None:
    page = open_page(small)
    page.fill("#f-text", text)
    page.wait_for_function("() => document.getElementById('count').textContent !== '160 of 160 episodes'")
    assert count(page) == f"{found} episodes"


def test_an_episode_shows_attempts_differences_memories_and_why_they_were_eligible(
    small: Path, open_page: Open
) -> None:
    page = open_page(small)
    page.select_option("#goto-kind", label="question id")
    page.fill("#goto-value", "7")
    page.click("#goto button")
    # Question 7 is never repaired: attempts 0, 1, 2 with columns c0, c1, c2.
    attempts = page.locator("#detail .attempt")
    assert attempts.count() == 3
    assert "90 prompt + 20 output tokens" in attempts.nth(0).inner_text()
    second = attempts.nth(1)
    assert second.locator("pre").first.inner_text() == "SELECT name, c0c1 FROM t7 WHERE a = 1"
    assert second.locator("pre").first.locator("del").all_inner_texts() == ["c0"]
    assert second.locator("pre").first.locator("ins").all_inner_texts() == ["c1"]
    told = second.inner_text()
    for expected in (
        "EXECUTION_ERROR",
        "Error: no such column: c1",
        "Failure type: Schema Linking (Missing Column)",
        "100 prompt + 10 output tokens",
        "2 memories shown to the model for this attempt",
        "score 0.750 = mixture of vector 1.000 and BM25 0.000",
        "Eligible: its one source is earlier than position",
        "of another question than 7",
    ):
        assert expected in told
    memory = second.locator(".memory").first
    position = int(page.inner_text("#detail h3").split(":")[0].split()[1])
    source = memory.locator("li").first.inner_text()
    assert int(source.split(",")[0].removeprefix("position ")) < position
    assert memory.locator("pre").count() == 1
    assert page.locator("#detail pre").filter(has_text="TABLE of db_1").count() == 0
    page.click("#detail summary >> text=Schema")
    assert page.locator("#detail pre").filter(has_text="TABLE of db_1").count() == 1


def test_a_memory_that_was_not_eligible_is_called_so(
    make_run: MakeRun, tmp_path: Path, open_page: Open
) -> None:
    run = make_run(tmp_path / "run", methods=("merit",))
    ledger = run / "merit-0/episodes.jsonl"
    lines = [json.loads(line) for line in ledger.read_text().splitlines()]
    shown = next(
        place
        for place, line in enumerate(lines)
        if any(one["memories"] for one in line["record"]["attempts"])
    )
    memory = next(one["memories"][0] for one in lines[shown]["record"]["attempts"] if one["memories"])
    memory["sources"][0]["position"] = shown
    ledger.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert main(["report", str(run)]) == 0
    page = open_page(run / "report.html", f"#episode/0/{shown}")
    assert "Not eligible by this record" in detail(page)


def test_the_list_works_by_keyboard(small: Path, open_page: Open) -> None:
    page = open_page(small)
    page.focus("#list")
    page.keyboard.press("Home")
    assert detail(page).startswith("Episode 0: iterative, order 0")
    page.keyboard.press("ArrowDown")
    assert detail(page).startswith("Episode 1: iterative, order 0")
    active = page.get_attribute("#list", "aria-activedescendant")
    assert page.get_attribute(f"#{active}", "aria-selected") == "true"
    page.keyboard.press("End")
    assert detail(page).startswith("Episode 39: merit, order 1")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("PageUp")
    assert "merit, order 1" in page.inner_text("#detail h3")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "detail"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "list"


def test_the_first_tab_reaches_a_skip_link_and_focus_is_seen(small: Path, open_page: Open) -> None:
    page = open_page(small)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the overview"
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_every_control_has_a_label(small: Path, open_page: Open) -> None:
    page = open_page(small)
    unlabelled = page.evaluate(
        "[...document.querySelectorAll('input, select')].filter(one => !one.labels.length).map(one => one.id)"
    )
    assert unlabelled == []
    assert page.locator("button").all_inner_texts() == ["Go", "Show all"]


CONTRAST = """() => {
  const value = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const light = hex => {
    const full = hex.length === 4 ? hex.replace(/[^#]/g, '$&$&') : hex;
    const [r, g, b] = [1, 3, 5].map(at => parseInt(full.slice(at, at + 2), 16) / 255)
      .map(one => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (one, other) => {
    const [low, high] = [light(value(one)), light(value(other))].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const text = [['--ink', '--paper'], ['--soft', '--paper'], ['--soft', '--band'], ['--link', '--paper'],
    ['--ins-ink', '--ins'], ['--del-ink', '--del'], ['--ink', '--warn'], ['--ink', '--chosen']];
  const marks = [...Array(8).keys()].map(slot => [`--c${slot}`, '--paper']);
  return [Math.min(...text.map(pair => ratio(...pair))), Math.min(...marks.map(pair => ratio(...pair)))];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_marks_stand_out_in_both_themes(small: Path, open_page: Open, scheme: str) -> None:
    # WCAG 2.2: 4.5 for text, 3 for graphics.
    page = open_page(small, color_scheme=scheme)
    text, marks = page.evaluate(CONTRAST)
    assert text >= 4.5 and marks >= 3
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")


def test_a_phone_needs_no_sideways_scrolling(small: Path, open_page: Open) -> None:
    page = open_page(small, viewport={"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_print_has_the_figures_and_no_controls(small: Path, open_page: Open) -> None:
    # 680 CSS pixels: the width of A4 between margins of 15 mm.
    page = open_page(small, color_scheme="dark", viewport={"width": 680, "height": 1000})
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") <= 680
    assert not page.locator("#filters").is_visible()
    assert not page.locator("nav").is_visible()
    assert page.locator("#overview .answer").first.is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.pdf().startswith(b"%PDF")


def test_without_javascript_tables_and_charts_still_stand(small: Path, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(small.as_uri())
    assert page.locator("#overview svg.chart").is_visible()
    assert page.locator("#accuracy table").first.is_visible()
    assert "needs JavaScript" in page.inner_text("#episodes")
    context.close()


def test_ten_thousand_episodes_do_not_lag(large: Path, open_page: Open) -> None:
    begun = time.perf_counter()
    page = open_page(large)
    assert time.perf_counter() - begun < 10
    assert count(page) == "10,000 of 10,000 episodes"
    assert page.locator("#list .row").count() < 60
    assert page.evaluate("document.querySelectorAll('*').length") < 6000
    measured = page.evaluate(
        """() => {
          const time = act => { const begun = performance.now(); act(); return performance.now() - begun; };
          const key = key => document.getElementById('list')
            .dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
          return { end: time(() => key('End')), up: time(() => {
            for (let n = 0; n < 20; n += 1) key('ArrowUp');
          }) };
        }"""
    )
    assert measured["end"] < 500 and measured["up"] / 20 < 200
    assert detail(page).startswith("Episode 2479: merit, order 1")
    begun = time.perf_counter()
    page.fill("#f-text", "from t1234 ")
    page.wait_for_function(
        "() => document.getElementById('count').textContent.startsWith('4 of')", timeout=10_000
    )
    assert time.perf_counter() - begun < 10


def test_scrolling_fills_the_list_with_what_is_there(large: Path, open_page: Open) -> None:
    page = open_page(large)
    page.evaluate("document.getElementById('list').scrollTop = 58 * 5000")
    page.wait_for_selector("#row-5003")
    assert " · 3 · merit 0 · " in page.inner_text("#row-5003")
