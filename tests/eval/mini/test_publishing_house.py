"""Each answer of the publishing questions, worked out from the CSV rows without SQL."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from datetime import date
from typing import Any

import pytest

Rows = list[dict[str, Any]]
Check = Callable[[int, Iterable[tuple[Any, ...]]], None]


def index(rows: Rows, key: str) -> dict[Any, dict[str, Any]]:
    return {row[key]: row for row in rows}


@pytest.fixture(scope="module")
def db(tables: Callable[[str], dict[str, Rows]]) -> dict[str, Rows]:
    return tables("publishing_house")


def names_in_role(db: dict[str, Rows], role: str) -> set[str]:
    ids = {x["author_id"] for x in db["book_author"] if x["role"] == role}
    return {a["name"] for a in db["author"] if a["author_id"] in ids}


def test_open_orders(db: dict[str, Rows], check: Check) -> None:
    check(2, [([o["state"] for o in db["order"]].count("O"),)])


def test_books_in_german(db: dict[str, Rows], check: Check) -> None:
    assert {"de", "DE"} <= {b["language"] for b in db["book"]}
    check(3, [(sum(b["language"] in ("de", "DE", "De", "dE") for b in db["book"]),)])


def test_who_wrote_a_book(db: dict[str, Rows], check: Check) -> None:
    (book,) = [b["book_id"] for b in db["book"] if b["title"] == "The Winter Lighthouse"]
    people = index(db["author"], "author_id")
    roles = [(people[x["author_id"]]["name"], x["role"]) for x in db["book_author"] if x["book_id"] == book]
    wrote = {name for name, role in roles if role == "author"}
    assert wrote < {name for name, _ in roles}
    check(12, [(name,) for name in wrote])


def test_books_by_year(db: dict[str, Rows], check: Check) -> None:
    years = Counter(b["published"].split("/")[2] for b in db["book"])
    check(13, sorted((year, n) for year, n in years.items() if int(year) >= 2019))


def test_average_pages(db: dict[str, Rows], check: Check) -> None:
    known = [b["pages"] for b in db["book"] if b["pages"] is not None]
    assert len(known) < len(db["book"])
    check(22, [(round(sum(known) / len(known), 1),)])


def test_longest_book_by_language(db: dict[str, Rows], check: Check) -> None:
    best: dict[str, dict[str, Any]] = {}
    for book in db["book"]:
        code = book["language"].lower()
        if book["pages"] and (code not in best or book["pages"] > best[code]["pages"]):
            best[code] = book
    check(23, [(code, best[code]["title"], best[code]["pages"]) for code in sorted(best)])


def test_stores_without_orders(db: dict[str, Rows], check: Check) -> None:
    ordering = {o["store_id"] for o in db["order"]}
    check(32, [(s["name"],) for s in db["store"] if s["store_id"] not in ordering])


def test_books_with_a_high_discount(db: dict[str, Rows], check: Check) -> None:
    titles = {b["book_id"]: b["title"] for b in db["book"]}
    high = {line["book_id"] for line in db["order_line"] if int(line["discount"]) > 15}
    misread = {line["book_id"] for line in db["order_line"] if line["discount"] > "15"}
    assert high != misread
    check(33, {(titles[book],) for book in high})


def test_revenue_of_2023(db: dict[str, Rows], check: Check) -> None:
    shipped = {o["order_id"] for o in db["order"] if o["state"] == "S" and o["ordered_on"][:4] == "2023"}
    hundredths_of_cents = sum(
        line["quantity"] * round(line["unit price"] * 100) * (100 - int(line["discount"]))
        for line in db["order_line"]
        if line["order_id"] in shipped
    )
    assert hundredths_of_cents % 100 != 50
    check(42, [(round(hundredths_of_cents / 10_000, 2),)])


def test_sequels(db: dict[str, Rows], check: Check) -> None:
    titles = {b["book_id"]: b["title"] for b in db["book"]}
    check(43, [(b["title"], titles[b["sequel_to"]]) for b in db["book"] if b["sequel_to"]])


def test_average_stars(db: dict[str, Rows], check: Check) -> None:
    stars = defaultdict(list)
    for review in db["review"]:
        if not review["deleted"] and review["stars"] is not None:
            stars[review["book_id"]].append(review["stars"])
    check(
        52,
        [
            (b["title"], round(sum(given) / len(given), 2))
            for b in db["book"]
            if len(given := stars[b["book_id"]]) >= 3
        ],
    )


def test_reviews_without_stars(db: dict[str, Rows], check: Check) -> None:
    check(53, [([r["stars"] for r in db["review"]].count(None),)])


def test_people_who_wrote_and_translated(db: dict[str, Rows], check: Check) -> None:
    check(62, [(name,) for name in names_in_role(db, "author") & names_in_role(db, "translator")])


def test_longest_book_by_imprint(db: dict[str, Rows], check: Check) -> None:
    labels = {i["imprint_id"]: i["label"] for i in db["imprint"]}
    lengths = defaultdict(list)
    for book in db["book"]:
        if book["pages"] is not None:
            lengths[labels[book["imprint_id"]]].append((book["pages"], book["title"]))
    check(63, [(label, max(books)[1], max(books)[0]) for label, books in sorted(lengths.items())])


def test_dear_books(db: dict[str, Rows], check: Check) -> None:
    dear = [(b["title"], b["list price"]) for b in db["book"] if b["list price"] > 25]
    check(72, sorted(dear, key=lambda row: (-row[1], row[0])))


def test_different_books_by_store(db: dict[str, Rows], check: Check) -> None:
    store_of = {o["order_id"]: o["store_id"] for o in db["order"] if o["state"] == "S"}
    books = defaultdict(set)
    for line in db["order_line"]:
        if line["order_id"] in store_of:
            books[store_of[line["order_id"]]].add(line["book_id"])
    stores = index(db["store"], "store_id")
    check(73, [(stores[s]["name"], len(found)) for s, found in books.items() if len(found) >= 8])


def test_days_to_ship(db: dict[str, Rows], check: Check) -> None:
    assert all((o["shipped_on"] is not None) == (o["state"] == "S") for o in db["order"])
    days = [
        (date.fromisoformat(o["shipped_on"]) - date.fromisoformat(o["ordered_on"])).days
        for o in db["order"]
        if o["shipped_on"]
    ]
    check(82, [(round(sum(days) / len(days), 1),)])


def test_dear_for_their_imprint(db: dict[str, Rows], check: Check) -> None:
    prices = defaultdict(list)
    for book in db["book"]:
        prices[book["imprint_id"]].append(round(book["list price"] * 100))
    gaps = {
        b["title"]: 2 * round(b["list price"] * 100) * len(own) - 3 * sum(own)
        for b in db["book"]
        if (own := prices[b["imprint_id"]])
    }
    assert 0 not in gaps.values()
    check(83, [(title,) for title, gap in gaps.items() if gap > 0])


def test_share_of_cancelled_orders(db: dict[str, Rows], check: Check) -> None:
    states = Counter(o["state"] for o in db["order"])
    check(92, [(round(states["X"] * 100 / states.total(), 1),)])


def test_royalties_in_three_years(db: dict[str, Rows], check: Check) -> None:
    years = defaultdict(set)
    for royalty in db["royalty"]:
        years[royalty["author_id"]].add(royalty["year"])
    check(93, [(a["name"],) for a in db["author"] if {2021, 2022, 2023} <= years[a["author_id"]]])


def test_family_of_imprints(db: dict[str, Rows], check: Check) -> None:
    imprints = index(db["imprint"], "imprint_id")

    def ancestors(imprint: dict[str, Any]) -> list[str]:
        if imprint["parent_id"] is None:
            return []
        parent = imprints[imprint["parent_id"]]
        return [parent["label"], *ancestors(parent)]

    check(102, [(i["label"],) for i in imprints.values() if "Lanternfish" in ancestors(i)])


def test_best_paid_of_2023(db: dict[str, Rows], check: Check) -> None:
    totals: Counter[int] = Counter()
    for royalty in db["royalty"]:
        if royalty["year"] == 2023:
            totals[royalty["author_id"]] += royalty["amount_cents"]
    people = index(db["author"], "author_id")
    check(103, [(people[a]["name"], round(cents / 100, 2)) for a, cents in totals.most_common(3)])
