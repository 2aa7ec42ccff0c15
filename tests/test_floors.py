"""The floors of the house: a folder imports only from below; heavy libraries stay where they belong."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FLOORS = [
    {"domain"},
    {"databases"},
    {"prompts", "models", "stores", "oracles"},
    {"nodes"},
    {"graph"},
    {"eval"},
    {"app"},
]
FLOOR_OF = {portion: floor for floor, portions in enumerate(FLOORS) for portion in portions}
LANGGRAPH_ALLOWED = {"nodes", "graph", "app"}


def imports_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            yield module
            if module == "merit_sql":
                yield from (f"merit_sql.{alias.name}" for alias in node.names)


def modules() -> list[Path]:
    return sorted(path for portion in FLOOR_OF for path in (ROOT / portion).rglob("*.py"))


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_from_its_own_folder_and_the_floors_below(path: Path) -> None:
    portion = path.relative_to(ROOT).parts[0]
    for name in imports_of(path):
        parts = name.split(".")
        if parts[0] == "merit_sql" and len(parts) > 1 and parts[1] != portion:
            assert FLOOR_OF[parts[1]] < FLOOR_OF[portion], f"{path} imports {name} from a floor not below it"
        if parts[0] == "langgraph":
            assert portion in LANGGRAPH_ALLOWED, f"{path} imports {name}"


def test_every_portion_is_on_a_floor_and_ships_its_types() -> None:
    configured = {
        line.split('"')[1].removeprefix("merit_sql.")
        for line in (ROOT / "pyproject.toml").read_text().splitlines()
        if line.startswith('"merit_sql.') and " = " in line and "[" not in line
    }
    assert configured == set(FLOOR_OF)
    for portion in FLOOR_OF:
        assert (ROOT / portion / "py.typed").exists(), portion
