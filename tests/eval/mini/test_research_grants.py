"""Each answer of the grants questions, worked out from the CSV rows without SQL."""

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
    return tables("research_grants")


def approved(db: dict[str, Rows]) -> Rows:
    return [g for g in db["grant"] if g["decision"] == "A"]


def spent(db: dict[str, Rows]) -> Rows:
    return [e for e in db["expense"] if e["reversed"] == 0]


def authors(db: dict[str, Rows]) -> dict[int, list[int]]:
    """The ids of each publication's authors."""
    found = defaultdict(list)
    for entry in db["publication_author"]:
        found[entry["publication_id"]].append(entry["researcher_id"])
    return found


def test_approved_applications(db: dict[str, Rows], check: Check) -> None:
    check(8, [(len(approved(db)),)])


def test_principal_investigators_in_biology(db: dict[str, Rows], check: Check) -> None:
    (biology,) = [d["dept_id"] for d in db["department"] if d["name"] == "Biology"]
    leaders = {g["pi_id"] for g in approved(db)}
    check(
        9,
        [
            (r["given_name"], r["family_name"])
            for r in db["researcher"]
            if r["dept_id"] == biology and r["researcher_id"] in leaders
        ],
    )


def test_undecided_applications(db: dict[str, Rows], check: Check) -> None:
    check(18, [(sum(g["decision"] not in ("A", "R") for g in db["grant"]),)])


def test_share_of_approved(db: dict[str, Rows], check: Check) -> None:
    decisions = Counter(g["decision"] for g in db["grant"])
    check(19, [(round(decisions["A"] * 100 / (decisions["A"] + decisions["R"]), 1),)])


def test_travel_expenses(db: dict[str, Rows], check: Check) -> None:
    travel = [e for e in spent(db) if e["category"].casefold() == "travel"]
    assert len({e["category"] for e in travel}) > 1
    check(28, [(sum(e["amount_eur"] for e in travel),)])


def test_spending_by_year(db: dict[str, Rows], check: Check) -> None:
    years: Counter[str] = Counter()
    for expense in spent(db):
        _, _, year = expense["booked_on"].split("/")
        years[year] += expense["amount_eur"]
    check(29, sorted(years.items()))


def test_applications_to_a_programme(db: dict[str, Rows], check: Check) -> None:
    (funder,) = [f["funder_id"] for f in db["funder"] if f["name"] == "National Research Council"]
    namesakes = [p for p in db["programme"] if p["name"] == "Starting Grants"]
    assert len(namesakes) > 1
    (programme,) = [p["programme_id"] for p in namesakes if p["funder_id"] == funder]
    check(38, [(sum(g["programme_id"] == programme for g in db["grant"]),)])


def test_members_by_faculty(db: dict[str, Rows], check: Check) -> None:
    faculty = {d["dept_id"]: d["faculty"] for d in db["department"]}
    people, granted = index(db["researcher"], "researcher_id"), {g["grant_id"] for g in approved(db)}
    members = defaultdict(set)
    for entry in db["grant_member"]:
        department = people[entry["researcher_id"]]["dept_id"]
        if entry["grant_id"] in granted and department is not None:
            members[faculty[department]].add(entry["researcher_id"])
    check(39, [(name, len(found)) for name, found in sorted(members.items())])


def test_publications_without_doi(db: dict[str, Rows], check: Check) -> None:
    check(48, [(p["title"],) for p in db["publication"] if p["year"] == 2023 and p["doi"] is None])


def test_mentors_elsewhere(db: dict[str, Rows], check: Check) -> None:
    home = {r["researcher_id"]: r["dept_id"] for r in db["researcher"]}
    pairs = [(r["researcher_id"], r["mentor_id"]) for r in db["researcher"] if r["mentor_id"]]
    known = [(r, m) for r, m in pairs if home[r] is not None and home[m] is not None]
    assert len(known) < len(pairs)
    check(49, [(r, m) for r, m in known if home[r] != home[m]])


def test_departments_without_researchers(db: dict[str, Rows], check: Check) -> None:
    staffed = {r["dept_id"] for r in db["researcher"]}
    assert None in staffed
    check(58, [(d["name"],) for d in db["department"] if d["dept_id"] not in staffed])


def test_sizes_of_research_groups(db: dict[str, Rows], check: Check) -> None:
    sizes = Counter(r["group"] for r in db["researcher"] if r["group"])
    check(59, sorted(sizes.items(), key=lambda item: (-item[1], item[0])))


def test_awards_near_the_maximum(db: dict[str, Rows], check: Check) -> None:
    most = {p["programme_id"]: p["max_award_keur"] * 1000 for p in db["programme"]}
    gaps = {g["code"]: 10 * g["award_eur"] - 9 * most[g["programme_id"]] for g in approved(db)}
    assert 0 in gaps.values()
    check(68, [(code,) for code, gap in gaps.items() if gap > 0])


def test_highest_award_by_funder(db: dict[str, Rows], check: Check) -> None:
    programmes, funders = index(db["programme"], "programme_id"), index(db["funder"], "funder_id")
    awards = defaultdict(list)
    for grant in approved(db):
        funder = funders[programmes[grant["programme_id"]]["funder_id"]]
        awards[funder["short_name"]].append((grant["award_eur"], grant["code"]))
    check(69, [(name, max(found)[1], max(found)[0]) for name, found in sorted(awards.items())])


def test_share_of_grants_without_publication(db: dict[str, Rows], check: Check) -> None:
    fruitful = {entry["grant_id"] for entry in db["publication_grant"]}
    barren = [g for g in approved(db) if g["grant_id"] not in fruitful]
    check(78, [(round(len(barren) * 100 / len(approved(db)), 1),)])


def test_overspent_grants(db: dict[str, Rows], check: Check) -> None:
    totals: Counter[int] = Counter()
    for expense in spent(db):
        totals[expense["grant_id"]] += expense["amount_eur"]
    grants = index(db["grant"], "grant_id")
    check(79, [(grants[g]["code"], n) for g, n in totals.items() if n > grants[g]["award_eur"]])


def test_days_to_decision(db: dict[str, Rows], check: Check) -> None:
    days = defaultdict(list)
    for grant in db["grant"]:
        if grant["decision"]:
            submitted, decided = (date.fromisoformat(grant[key]) for key in ("submitted_on", "decided_on"))
            days[grant["decision"]].append((decided - submitted).days)
    check(88, [(code, round(sum(spans) / len(spans), 1)) for code, spans in sorted(days.items())])


def test_professors_who_lead_and_join(db: dict[str, Rows], check: Check) -> None:
    led, joined = defaultdict(set), defaultdict(set)
    for grant in db["grant"]:
        led[grant["pi_id"]].add(grant["grant_id"])
    for entry in db["grant_member"]:
        joined[entry["researcher_id"]].add(entry["grant_id"])
    assert all(not led[person] & joined[person] for person in list(led))
    check(
        89,
        [
            (r["given_name"], r["family_name"])
            for r in db["researcher"]
            if r["title"] == "Prof" and led[r["researcher_id"]] and joined[r["researcher_id"]]
        ],
    )


def test_first_authors(db: dict[str, Rows], check: Check) -> None:
    first = Counter(a["researcher_id"] for a in db["publication_author"] if a["position"] == 1)
    people = index(db["researcher"], "researcher_id")
    check(98, [(people[r]["given_name"], people[r]["family_name"], n) for r, n in first.items() if n >= 3])


def test_more_authors_than_average(db: dict[str, Rows], check: Check) -> None:
    sizes = [len(found) for found in authors(db).values()]
    assert len(sizes) == len(db["publication"])
    check(99, [(sum(size * len(sizes) > sum(sizes) for size in sizes),)])


def test_publications_across_faculties(db: dict[str, Rows], check: Check) -> None:
    faculty = {d["dept_id"]: d["faculty"] for d in db["department"]}
    home = {r["researcher_id"]: faculty.get(r["dept_id"]) for r in db["researcher"]}
    spread = [{home[author] for author in found} - {None} for found in authors(db).values()]
    check(108, [(sum(len(faculties) >= 3 for faculties in spread),)])


def test_best_funded_departments(db: dict[str, Rows], check: Check) -> None:
    people, departments = index(db["researcher"], "researcher_id"), index(db["department"], "dept_id")
    money: Counter[str] = Counter()
    for grant in approved(db):
        department = people[grant["pi_id"]]["dept_id"]
        if department is not None:
            money[departments[department]["name"]] += grant["award_eur"]
    check(109, money.most_common(3))
