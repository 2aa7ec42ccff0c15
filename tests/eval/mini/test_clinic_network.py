"""Each answer of the clinic questions, worked out from the CSV rows without SQL."""

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
    return tables("clinic_network")


def done(db: dict[str, Rows]) -> Rows:
    return [a for a in db["appointment"] if a["status"] == "done"]


def test_active_clinics(db: dict[str, Rows], check: Check) -> None:
    check(0, [(len([c for c in db["clinic"] if c["status"] == "A"]),)])


def test_practitioners_at_home_in_hull(db: dict[str, Rows], check: Check) -> None:
    hull = {c["clinic_id"] for c in db["clinic"] if c["city"] == "Hull"}
    check(1, [(p["name"],) for p in db["practitioner"] if p["home_clinic_id"] in hull])


def test_practitioners_who_still_work(db: dict[str, Rows], check: Check) -> None:
    check(10, [(sum(p["left_on"] is None for p in db["practitioner"]),)])


def test_diagnoses_at_steelworks(db: dict[str, Rows], check: Check) -> None:
    (steelworks,) = [c["clinic_id"] for c in db["clinic"] if c["name"] == "Steelworks"]
    there = {a["appointment_id"] for a in db["appointment"] if a["clinic_id"] == steelworks}
    codes = {x["diagnosis_code"] for x in db["appointment_diagnosis"] if x["appointment_id"] in there}
    check(11, [(d["title"],) for d in db["diagnosis"] if d["code"] in codes])


def test_patients_in_leeds(db: dict[str, Rows], check: Check) -> None:
    assert {"Leeds", "LEEDS", "leeds"} <= {p["city"] for p in db["patient"]}
    check(20, [(sum(p["city"].casefold() == "leeds" for p in db["patient"]),)])


def test_prescriptions_by_month_of_2024(db: dict[str, Rows], check: Check) -> None:
    months: Counter[str] = Counter()
    for prescription in db["prescription"]:
        _, month, year = prescription["issued_on"].split(".")
        if int(year) == 2024:
            months[month] += 1
    check(21, sorted(months.items()))


def test_share_of_no_shows(db: dict[str, Rows], check: Check) -> None:
    missed = sum(a["status"] == "noshow" for a in db["appointment"])
    check(30, [(round(missed * 100 / len(db["appointment"]), 1),)])


def test_practitioners_with_twelve_done_appointments(db: dict[str, Rows], check: Check) -> None:
    counts = Counter(a["practitioner_id"] for a in done(db))
    check(
        31,
        [
            (p["name"], counts[p["practitioner_id"]])
            for p in db["practitioner"]
            if counts[p["practitioner_id"]] >= 12
        ],
    )


def test_last_appointment_of_2023_by_clinic(db: dict[str, Rows], check: Check) -> None:
    clinics, patients = index(db["clinic"], "clinic_id"), index(db["patient"], "patient_id")
    last: dict[str, tuple[str, str]] = {}
    for appointment in db["appointment"]:
        at, clinic = appointment["scheduled_at"], clinics[appointment["clinic_id"]]["name"]
        if at.startswith("2023") and at > last.get(clinic, ("", ""))[0]:
            last[clinic] = (at, patients[appointment["patient_id"]]["name"])
    check(40, [(clinic, *last[clinic]) for clinic in sorted(last)])


def test_first_hired_by_specialty(db: dict[str, Rows], check: Check) -> None:
    labels = {s["code"]: s["label"] for s in db["specialty"]}
    first: dict[str, dict[str, Any]] = {}
    for person in db["practitioner"]:
        label = labels[person["specialty_code"]]
        if label not in first or person["hired_on"] < first[label]["hired_on"]:
            first[label] = person
    check(41, [(label, first[label]["name"], first[label]["hired_on"]) for label in sorted(first)])


def test_private_insurers(db: dict[str, Rows], check: Check) -> None:
    check(50, [(name,) for name in sorted(i["name"] for i in db["insurer"] if i["kind"] == "PRI")])


def test_hired_before_the_supervisor(db: dict[str, Rows], check: Check) -> None:
    people = index(db["practitioner"], "practitioner_id")
    pairs = [(p, people[p["supervisor_id"]]) for p in people.values() if p["supervisor_id"] is not None]
    check(51, [(p["name"], s["name"]) for p, s in pairs if p["hired_on"] < s["hired_on"]])


def test_average_fee_with_missing_as_zero(db: dict[str, Rows], check: Check) -> None:
    fees = [a["fee_cents"] or 0 for a in done(db)]
    known = [a["fee_cents"] for a in done(db) if a["fee_cents"] is not None]
    assert len(known) < len(fees)
    check(60, [(round(sum(fees) / len(fees) / 100, 2),)])


def test_patients_with_a_done_appointment_in_2024(db: dict[str, Rows], check: Check) -> None:
    check(61, [(len({a["patient_id"] for a in done(db) if a["scheduled_at"][:4] == "2024"}),)])


def test_different_patients_by_clinic(db: dict[str, Rows], check: Check) -> None:
    patients = defaultdict(set)
    for appointment in db["appointment"]:
        patients[appointment["clinic_id"]].add(appointment["patient_id"])
    rows = [(c["name"], len(patients[c["clinic_id"]])) for c in db["clinic"] if patients[c["clinic_id"]]]
    check(70, sorted(rows, key=lambda row: (-row[1], row[0])))


def test_patients_with_twice_the_average(db: dict[str, Rows], check: Check) -> None:
    counts = Counter(a["patient_id"] for a in done(db))
    total, patients = sum(counts.values()), len(counts)
    names = index(db["patient"], "patient_id")
    check(71, [(names[p]["name"],) for p, n in counts.items() if n * patients > 2 * total])


def test_different_drugs(db: dict[str, Rows], check: Check) -> None:
    drugs = [p["drug"] for p in db["prescription"]]
    assert len(set(drugs)) > len({drug.casefold() for drug in drugs})
    check(80, [(len({drug.casefold() for drug in drugs}),)])


def test_general_practitioners_who_supervise_nobody(db: dict[str, Rows], check: Check) -> None:
    supervisors = {p["supervisor_id"] for p in db["practitioner"]}
    gps = [p for p in db["practitioner"] if p["specialty_code"] == "GP"]
    assert None in supervisors
    assert any(p["practitioner_id"] in supervisors for p in gps)
    check(81, [(p["name"],) for p in gps if p["practitioner_id"] not in supervisors])


def test_patients_of_both_clinics(db: dict[str, Rows], check: Check) -> None:
    ids = {c["name"]: c["clinic_id"] for c in db["clinic"]}
    seen = defaultdict(set)
    for appointment in done(db):
        seen[appointment["patient_id"]].add(appointment["clinic_id"])
    both = {ids["Riverside"], ids["Minster Gate"]}
    check(90, [(p["name"],) for p in db["patient"] if both <= seen[p["patient_id"]]])


def test_booked_thirty_days_ahead(db: dict[str, Rows], check: Check) -> None:
    ahead = [
        (date.fromisoformat(a["scheduled_at"][:10]) - date.fromisoformat(a["booked_at"][:10])).days
        for a in db["appointment"]
    ]
    assert 30 in ahead
    check(91, [(sum(days >= 30 for days in ahead),)])


def test_no_shows_by_public_insurer(db: dict[str, Rows], check: Check) -> None:
    insurer_of = {p["patient_id"]: p["insurer_id"] for p in db["patient"]}
    totals = Counter(insurer_of[a["patient_id"]] for a in db["appointment"])
    missed = Counter(insurer_of[a["patient_id"]] for a in db["appointment"] if a["status"] == "noshow")
    rows = [
        (i["name"], round(missed[i["insurer_id"]] * 100 / totals[i["insurer_id"]], 1))
        for i in db["insurer"]
        if i["kind"] == "PUB" and totals[i["insurer_id"]]
    ]
    check(100, sorted(rows))


def test_done_away_from_home(db: dict[str, Rows], check: Check) -> None:
    home = {p["practitioner_id"]: p["home_clinic_id"] for p in db["practitioner"]}
    check(101, [(sum(a["clinic_id"] != home[a["practitioner_id"]] for a in done(db)),)])
