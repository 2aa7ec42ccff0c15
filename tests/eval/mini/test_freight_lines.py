"""Each answer of the freight questions, worked out from the CSV rows without SQL."""

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
    return tables("freight_lines")


def calls(db: dict[str, Rows], end: str) -> dict[str, set[str]]:
    """Names of the ports at one end of their voyages, by the name of the vessel."""
    ports, vessels = index(db["port"], "code"), index(db["vessel"], "vessel_id")
    found = defaultdict(set)
    for voyage in db["voyage"]:
        found[vessels[voyage["vessel_id"]]["name"]].add(ports[voyage[f"{end}_code"]]["name"])
    return found


def invoices_of(db: dict[str, Rows]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Every invoice with the customer who got it."""
    shipments, customers = index(db["shipment"], "shipment_id"), index(db["customer"], "customer_id")
    return [(i, customers[shipments[i["shipment_id"]]["customer_id"]]) for i in db["invoice"]]


def test_vessels_in_service(db: dict[str, Rows], check: Check) -> None:
    check(4, [(len([v for v in db["vessel"] if not v["retired_on"]]),)])


def test_voyages_of_a_vessel(db: dict[str, Rows], check: Check) -> None:
    names = {p["code"]: p["name"] for p in db["port"]}
    (vessel,) = [v["vessel_id"] for v in db["vessel"] if v["name"] == "Coral Petrel"]
    voyages = sorted((v for v in db["voyage"] if v["vessel_id"] == vessel), key=lambda v: v["departed_on"])
    check(5, [(names[v["origin_code"]], names[v["destination_code"]], v["departed_on"]) for v in voyages])


def test_hazardous_commodities(db: dict[str, Rows], check: Check) -> None:
    check(14, [(c["name"],) for c in db["commodity"] if c["hazard_class"]])


def test_customers_from_germany(db: dict[str, Rows], check: Check) -> None:
    spellings = [c["country"] for c in db["customer"] if c["country"].casefold() == "germany"]
    assert len(set(spellings)) > 1
    check(15, [(len(spellings),)])


def test_shipments_of_march_2023(db: dict[str, Rows], check: Check) -> None:
    days = [(s["created"][:4], s["created"][4:6], s["created"][6:]) for s in db["shipment"]]
    check(24, [(sum(int(year) == 2023 and int(month) == 3 for year, month, _ in days),)])


def test_credit_limits(db: dict[str, Rows], check: Check) -> None:
    limits = {c["name"]: c["credit_limit"] for c in db["customer"]}
    known = {name: limit for name, limit in limits.items() if limit is not None}
    assert any(limit > "15000" and int(limit) < 15000 for limit in known.values())
    check(25, [(name,) for name, limit in known.items() if int(limit) > 15000])


def test_busy_destinations(db: dict[str, Rows], check: Check) -> None:
    arrivals = Counter(v["destination_code"] for v in db["voyage"])
    check(34, [(p["name"], arrivals[p["code"]]) for p in db["port"] if arrivals[p["code"]] >= 7])


def test_invoices_paid_in_part(db: dict[str, Rows], check: Check) -> None:
    paid: Counter[int] = Counter()
    for payment in db["payment"]:
        paid[payment["invoice_id"]] += payment["amount_cents"]
    check(
        35,
        [
            (i["invoice_id"], i["amount_cents"] - paid[i["invoice_id"]])
            for i in db["invoice"]
            if i["status"] == "O" and i["invoice_id"] in paid
        ],
    )


def test_share_of_shipments_without_voyage(db: dict[str, Rows], check: Check) -> None:
    waiting = [s for s in db["shipment"] if s["voyage_id"] is None]
    check(44, [(round(len(waiting) * 100 / len(db["shipment"]), 1),)])


def test_ports_of_a_vessel(db: dict[str, Rows], check: Check) -> None:
    check(45, [(p,) for p in calls(db, "origin")["Razorbill"] | calls(db, "destination")["Razorbill"]])


def test_to_one_port_but_not_the_other(db: dict[str, Rows], check: Check) -> None:
    sailed = calls(db, "destination")
    assert any({"Genoa", "Hamburg"} <= ports for ports in sailed.values())
    check(54, [(v,) for v, ports in sailed.items() if "Genoa" in ports and "Hamburg" not in ports])


def test_weight_by_priority(db: dict[str, Rows], check: Check) -> None:
    priority = {s["shipment_id"]: s["priority"] for s in db["shipment"]}
    kilograms: Counter[int] = Counter()
    for item in db["shipment_item"]:
        kilograms[priority[item["shipment_id"]]] += item["gross weight"] or 0
    assert all(weight % 100 != 50 for weight in kilograms.values())
    check(55, [(p, round(kilograms[p] / 1000, 1)) for p in sorted(kilograms)])


def test_subsidiaries(db: dict[str, Rows], check: Check) -> None:
    names = {c["customer_id"]: c["name"] for c in db["customer"]}
    check(64, [(c["name"], names[c["parent_id"]]) for c in db["customer"] if c["parent_id"]])


def test_largest_vessel_by_flag(db: dict[str, Rows], check: Check) -> None:
    fleets = defaultdict(list)
    for vessel in db["vessel"]:
        fleets[vessel["flag"]].append((vessel["capacity_teu"], vessel["name"]))
    check(65, [(flag, max(fleet)[1], max(fleet)[0]) for flag, fleet in sorted(fleets.items())])


def test_commodities_of_a_customer(db: dict[str, Rows], check: Check) -> None:
    (customer,) = [c["customer_id"] for c in db["customer"] if c["name"] == "Xenia Cosmetics"]
    theirs = {s["shipment_id"] for s in db["shipment"] if s["customer_id"] == customer}
    shipped = [i["commodity_id"] for i in db["shipment_item"] if i["shipment_id"] in theirs]
    assert len(shipped) > len(set(shipped))
    check(74, [(len(set(shipped)),)])


def test_packages_with_an_open_invoice(db: dict[str, Rows], check: Check) -> None:
    opened = Counter(i["shipment_id"] for i in db["invoice"] if i["status"] == "O")
    assert max(opened.values()) > 1
    check(75, [(sum(i["packages"] for i in db["shipment_item"] if i["shipment_id"] in opened),)])


def test_days_at_sea_by_year(db: dict[str, Rows], check: Check) -> None:
    days = defaultdict(list)
    for voyage in db["voyage"]:
        if voyage["arrived_on"]:
            left, arrived = (date.fromisoformat(voyage[key]) for key in ("departed_on", "arrived_on"))
            days[str(left.year)].append((arrived - left).days)
    check(84, [(year, round(sum(spans) / len(spans), 1)) for year, spans in sorted(days.items())])


def test_largest_vessel(db: dict[str, Rows], check: Check) -> None:
    check(85, [(max(db["vessel"], key=lambda v: v["capacity_teu"])["name"],)])


def test_dollar_invoices_of_2022(db: dict[str, Rows], check: Check) -> None:
    cents = sum(
        i["amount_cents"]
        for i in db["invoice"]
        if i["currency"] == "USD" and i["status"] in ("P", "O", "D") and i["issued_on"][:4] == "2022"
    )
    assert any(i["status"] == "V" and i["currency"] == "USD" for i in db["invoice"])
    check(94, [(round(cents / 100, 2),)])


def test_late_payers(db: dict[str, Rows], check: Check) -> None:
    payer = {i["invoice_id"]: (c["name"], i["due_on"]) for i, c in invoices_of(db)}
    late = Counter(
        payer[p["invoice_id"]][0] for p in db["payment"] if p["paid_on"] > payer[p["invoice_id"]][1]
    )
    check(95, [(name, n) for name, n in late.items() if n >= 6])


def test_euro_invoices_by_country(db: dict[str, Rows], check: Check) -> None:
    cents: Counter[str] = Counter()
    for invoice, customer in invoices_of(db):
        if invoice["currency"] == "EUR" and invoice["status"] != "V":
            cents[customer["country"].upper()] += invoice["amount_cents"]
    check(104, [(country, round(total / 100, 2)) for country, total in cents.most_common()])


def test_from_germany_and_to_spain(db: dict[str, Rows], check: Check) -> None:
    german, spanish = (
        {p["name"] for p in db["port"] if p["country"] == country} for country in ("Germany", "Spain")
    )
    left, reached = calls(db, "origin"), calls(db, "destination")
    check(105, [(v,) for v in left.keys() & reached.keys() if left[v] & german and reached[v] & spanish])
