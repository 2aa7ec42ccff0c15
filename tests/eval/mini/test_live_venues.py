"""Each answer of the venue questions, worked out from the CSV rows without SQL."""

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
    return tables("live_venues")


def kept_sales(db: dict[str, Rows]) -> list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
    """Every sale that was not refunded, with its ticket type and its event."""
    types, events = index(db["ticket_type"], "ticket_type_id"), index(db["event"], "event_id")
    kept = [(s, types[s["ticket_type_id"]]) for s in db["sale"] if s["refunded"] == 0]
    return [(sale, ticket, events[ticket["event_id"]]) for sale, ticket in kept]


def test_cancelled_events(db: dict[str, Rows], check: Check) -> None:
    check(6, [(sum(e["cancelled"] for e in db["event"]),)])


def test_jazz_artists(db: dict[str, Rows], check: Check) -> None:
    spellings = [a["genre"] for a in db["artist"] if a["genre"].casefold() == "jazz"]
    assert len(set(spellings)) > 1
    check(7, [(len(spellings),)])


def test_artists_at_a_venue(db: dict[str, Rows], check: Check) -> None:
    (stage,) = [v["venue_id"] for v in db["venue"] if v["name"] == "Ribeira Open Air"]
    held = {e["event_id"] for e in db["event"] if e["venue_id"] == stage and not e["cancelled"]}
    played = [p["artist_id"] for p in db["performance"] if p["event_id"] in held]
    assert len(played) > len(set(played))
    check(16, [(a["name"],) for a in db["artist"] if a["artist_id"] in played])


def test_towns_with_both_kinds_of_venue(db: dict[str, Rows], check: Check) -> None:
    kinds = defaultdict(set)
    for venue in db["venue"]:
        kinds[venue["town"]].add(venue["indoor"])
    check(17, [(town,) for town, found in kinds.items() if found == {0, 1}])


def test_venues_of_unknown_capacity(db: dict[str, Rows], check: Check) -> None:
    check(26, [(v["name"],) for v in db["venue"] if v["capacity"] is None])


def test_takings_of_2023(db: dict[str, Rows], check: Check) -> None:
    cents = sum(s["quantity"] * t["price_cents"] for s, t, e in kept_sales(db) if e["held_on"][:4] == "2023")
    check(27, [(round(cents / 100, 2),)])


def test_events_by_promoter(db: dict[str, Rows], check: Check) -> None:
    promoted = Counter(e["promoter_id"] for e in db["event"])
    assert 0 in [promoted[p["promoter_id"]] for p in db["promoter"]]
    check(36, [(p["name"], promoted[p["promoter_id"]]) for p in db["promoter"]])


def test_artists_on_no_bill(db: dict[str, Rows], check: Check) -> None:
    billed = {p["artist_id"] for p in db["performance"]}
    check(37, [(a["name"],) for a in db["artist"] if a["artist_id"] not in billed])


def test_share_of_refunded_sales(db: dict[str, Rows], check: Check) -> None:
    refunded = len([s for s in db["sale"] if s["refunded"] == 1])
    check(46, [(round(refunded * 100 / len(db["sale"]), 2),)])


def test_buyers_for_lyon(db: dict[str, Rows], check: Check) -> None:
    lyon = {v["venue_id"] for v in db["venue"] if v["town"] == "Lyon"}
    check(47, [(len({s["buyer_id"] for s, _, e in kept_sales(db) if e["venue_id"] in lyon}),)])


def test_buyers_from_porto(db: dict[str, Rows], check: Check) -> None:
    people = [(b["last name"], b["first name"]) for b in db["buyer"] if b["town"] == "Porto"]
    check(56, [(first, last) for last, first in sorted(people)])


def test_busy_venues(db: dict[str, Rows], check: Check) -> None:
    hosted = Counter(e["venue_id"] for e in db["event"] if not e["cancelled"])
    check(57, [(v["name"], hosted[v["venue_id"]]) for v in db["venue"] if hosted[v["venue_id"]] >= 8])


def test_largest_venue_by_town(db: dict[str, Rows], check: Check) -> None:
    sizes = defaultdict(list)
    for venue in db["venue"]:
        if venue["capacity"] is not None:
            sizes[venue["town"]].append((venue["capacity"], venue["name"]))
    check(66, [(town, max(venues)[1], max(venues)[0]) for town, venues in sorted(sizes.items())])


def test_a_third_of_the_quota_sold(db: dict[str, Rows], check: Check) -> None:
    sold: Counter[int] = Counter()
    for sale, ticket, _ in kept_sales(db):
        sold[ticket["ticket_type_id"]] += sale["quantity"]
    check(
        67,
        [
            (t["ticket_type_id"], sold[t["ticket_type_id"]])
            for t in db["ticket_type"]
            if sold[t["ticket_type_id"]] > t["quota"] / 3
        ],
    )


def test_average_fee_with_missing_as_zero(db: dict[str, Rows], check: Check) -> None:
    fees = [p["fee"] for p in db["performance"]]
    assert None in fees
    check(76, [(round(sum(fee for fee in fees if fee) / len(fees), 2),)])


def test_artists_on_a_bill_together(db: dict[str, Rows], check: Check) -> None:
    bills = defaultdict(set)
    names = {a["artist_id"]: a["name"] for a in db["artist"]}
    for performance in db["performance"]:
        bills[performance["event_id"]].add(names[performance["artist_id"]])
    together = set[str]().union(*(bill for bill in bills.values() if "Otto Brandt" in bill))
    check(77, [(name,) for name in together - {"Otto Brandt"}])


def test_share_of_a_mail_domain(db: dict[str, Rows], check: Check) -> None:
    domains = [b["email"].split("@")[1] for b in db["buyer"]]
    assert any(b["email"] != b["email"].lower() for b in db["buyer"])
    check(86, [(round(sum(d.lower() == "mail.example" for d in domains) * 100 / len(domains), 1),)])


def test_sales_of_the_last_week(db: dict[str, Rows], check: Check) -> None:
    types, events = index(db["ticket_type"], "ticket_type_id"), index(db["event"], "event_id")
    ahead = [
        (
            date.fromisoformat(events[types[s["ticket_type_id"]]["event_id"]]["held_on"])
            - date.fromisoformat(s["sold_at"][:10])
        ).days
        for s in db["sale"]
    ]
    assert min(ahead) >= 0
    assert 7 in ahead
    check(87, [(sum(days <= 7 for days in ahead),)])


def test_rock_in_two_towns(db: dict[str, Rows], check: Check) -> None:
    venues, events = index(db["venue"], "venue_id"), index(db["event"], "event_id")
    towns = defaultdict(set)
    for performance in db["performance"]:
        venue = venues[events[performance["event_id"]]["venue_id"]]
        towns[performance["artist_id"]].add(venue["town"])
    rock = [a for a in db["artist"] if a["genre"].casefold() == "rock"]
    check(96, [(a["name"],) for a in rock if {"Ghent", "Lyon"} <= towns[a["artist_id"]]])


def test_best_selling_event_by_year(db: dict[str, Rows], check: Check) -> None:
    takings: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for sale, ticket, event in kept_sales(db):
        takings[event["held_on"][:4]][event["event_id"]] += sale["quantity"] * ticket["price_cents"]
    best = [(year, *events.most_common(1)[0]) for year, events in sorted(takings.items())]
    check(97, [(year, event, round(cents / 100, 2)) for year, event, cents in best])


def test_share_of_cancelled_by_promoter(db: dict[str, Rows], check: Check) -> None:
    events = defaultdict(list)
    for event in db["event"]:
        events[event["promoter_id"]].append(event["cancelled"])
    rows = [
        (p["name"], round(sum(theirs) * 100 / len(theirs), 1))
        for p in db["promoter"]
        if (theirs := events[p["promoter_id"]])
    ]
    check(106, sorted(rows, key=lambda row: (-row[1], row[0])))


def test_buyers_without_newsletter(db: dict[str, Rows], check: Check) -> None:
    answers = Counter(b["newsletter"] for b in db["buyer"])
    assert answers[None] > 0
    check(107, [(answers.total() - answers[1],)])
