"""The state machine, run for real on SQLite with a scripted model."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from merit_sql.databases.catalogue import Catalogue
from merit_sql.domain.episode import Case, EpisodeRecord, Verdict
from merit_sql.domain.errors import DataError
from merit_sql.domain.execution import EMPTY_REPLY
from merit_sql.domain.memory import Observation
from merit_sql.domain.status import Opinion, Polarity, Status
from merit_sql.graph.method import METHODS
from merit_sql.graph.repair import build_repair_graph
from merit_sql.graph.stream import run_stream
from merit_sql.models.hashing import HashingEncoder
from merit_sql.models.scripted import ScriptedChatModel
from merit_sql.oracles.execution import ExecutionOracle
from merit_sql.stores.episodic import EpisodicMemory


@dataclass
class ExpectedRows:
    """Confirms what returns the rows it was told; counts what it executed."""

    databases: Catalogue
    rows: list[tuple[Any, ...]]
    judged: list[str] = field(default_factory=list)
    name: str = "expected rows"

    def judge(self, case: Case, sql: str) -> Verdict:
        self.judged.append(sql)
        execution = self.databases[case.database_id].execute(sql)
        if not execution.ok:
            return Verdict(opinion=Opinion.REFUTED, status=execution.status, error=execution.error)
        if list(execution.rows) == self.rows:
            return Verdict(opinion=Opinion.CONFIRMED, status=Status.CORRECT, confirmed_by=self.name)
        return Verdict(opinion=Opinion.REFUTED, status=Status.DENOTATION_MISMATCH)


@dataclass
class Kept:
    """A committer that keeps what it is given, and passes observations on."""

    memory: EpisodicMemory | None = None
    records: list[EpisodeRecord] = field(default_factory=list)
    observations: list[Observation | None] = field(default_factory=list)

    def commit(self, record: EpisodeRecord, observation: Observation | None) -> None:
        self.records.append(record)
        self.observations.append(observation)
        if self.memory is not None and observation is not None:
            self.memory.commit(observation)


@pytest.fixture
def databases(shop: Path) -> Iterator[Catalogue]:
    with Catalogue.from_file(shop) as catalogue:
        yield catalogue


@pytest.fixture
def memory() -> Iterator[EpisodicMemory]:
    with EpisodicMemory.in_memory(HashingEncoder()) as store:
        yield store


RIGHT = "SELECT count(*) FROM customer"
ASKED = {"question": "How many customers?", "database_id": "shop"}


def answer(sql: str) -> str:
    return f"<answer>{sql}</answer>"


def test_a_right_initial_query_is_confirmed_without_asking_the_model(databases: Catalogue) -> None:
    model, committer = ScriptedChatModel(replies=[]), Kept()
    oracle = ExpectedRows(databases, [(3,)])
    graph = build_repair_graph(model, None, oracle, databases, METHODS["merit"], committer)
    result = graph.invoke({**ASKED, "initial_sql": RIGHT})
    assert (result["sql"], result["status"]) == (RIGHT, "CORRECT")
    assert result["confirmed_by"] == "expected rows"
    assert committer.observations == [None]
    assert set(result) == {"sql", "status", "confirmed_by", "attempts", "memory_ids"}


def test_the_model_writes_the_initial_query_where_none_was_given(databases: Catalogue) -> None:
    model = ScriptedChatModel(replies=[answer(RIGHT)])
    graph = build_repair_graph(model, None, ExpectedRows(databases, [(3,)]), databases, METHODS["iterative"])
    result = graph.invoke(ASKED)
    assert [a["step"] for a in result["attempts"]] == [0]
    assert result["status"] == "CORRECT"


@pytest.mark.parametrize("budget", [0, 1, 7])
def test_the_budget_bounds_the_revisions_and_every_failure_is_classified(
    databases: Catalogue, budget: int
) -> None:
    model = ScriptedChatModel(replies=[answer(f"SELECT nam{n} FROM customer") for n in range(budget)])
    committer = Kept()
    graph = build_repair_graph(
        model,
        None,
        ExpectedRows(databases, [(3,)]),
        databases,
        METHODS["merit"],
        committer,
        budget=budget,
    )
    result = graph.invoke({**ASKED, "initial_sql": "SELECT nope FROM customer"})
    assert [a["step"] for a in result["attempts"]] == list(range(budget + 1))
    assert all((a["failure"] or {})["type"] == "Schema Linking" for a in result["attempts"])
    assert len(model.prompts) == budget
    assert (committer.observations[0] is None) == (budget == 0)


def test_zero_shot_judges_and_never_revises(databases: Catalogue) -> None:
    graph = build_repair_graph(
        ScriptedChatModel(replies=[]),
        None,
        ExpectedRows(databases, [(3,)]),
        databases,
        METHODS["zero_shot"],
    )
    result = graph.invoke({**ASKED, "initial_sql": "SELECT 1"})
    assert (len(result["attempts"]), result["status"]) == (1, "DENOTATION_MISMATCH")


def test_an_empty_reply_is_a_failed_attempt_even_where_nothing_is_expected(databases: Catalogue) -> None:
    class Nothing(ExpectedRows):
        def judge(self, case: Case, sql: str) -> Verdict:
            return Verdict(opinion=Opinion.CONFIRMED, status=Status.CORRECT, confirmed_by=self.name)

    model = ScriptedChatModel(replies=["I cannot tell.", answer("SELECT 1 WHERE 0")])
    graph = build_repair_graph(model, None, Nothing(databases, []), databases, METHODS["iterative"])
    result = graph.invoke({**ASKED, "initial_sql": ""})
    first, second, third = result["attempts"]
    assert (first["status"], first["error"]) == ("EXECUTION_ERROR", EMPTY_REPLY)
    assert (second["sql"], second["error"]) == ("", EMPTY_REPLY)
    assert third["status"] == "CORRECT"


def test_what_runs_and_nobody_judged_ends_the_episode_and_writes_no_memory(databases: Catalogue) -> None:
    committer = Kept()
    model = ScriptedChatModel(replies=[answer("SELECT name FROM customer")])
    graph = build_repair_graph(
        model, None, ExecutionOracle(databases), databases, METHODS["merit"], committer
    )
    result = graph.invoke({**ASKED, "initial_sql": "SELECT nam FROM customer"})
    assert (result["status"], result["confirmed_by"]) == ("EXECUTED", None)
    assert committer.observations == [None]


def test_a_repair_is_remembered_and_served_to_later_questions_only(
    databases: Catalogue, memory: EpisodicMemory
) -> None:
    wrong, right = "SELECT count(nam) FROM customer", "SELECT count(name) FROM customer"
    replies = [answer(right), answer(right)]
    model, committer = ScriptedChatModel(replies=replies), Kept(memory)
    oracle = ExpectedRows(databases, [(3,)])
    graph = build_repair_graph(model, memory, oracle, databases, METHODS["merit"], committer)
    cases = [
        Case(query_id=str(n), database_id="shop", question="How many?", position=n, initial_sql=wrong)
        for n in range(2)
    ]
    first, second = list(run_stream(graph, cases))
    assert first["memory_ids"] == []
    observation = committer.observations[0]
    assert observation is not None and observation.provenance.polarity is Polarity.POSITIVE
    assert second["memory_ids"] == [observation.entry_id]
    (use,) = second["attempts"][-1]["memories"]
    # One candidate: each channel is constant, which min-max makes 0.
    assert use == {
        "id": observation.entry_id,
        "polarity": "positive",
        "score": 0.0,
        "dense": 0.0,
        "lexical": 0.0,
        "same_type": True,
        "sources": [{"query_id": "0", "database_id": "shop", "position": 0, "polarity": "positive"}],
    }
    assert right in model.prompts[1] and right not in model.prompts[0]


def test_without_a_committer_nothing_is_written(databases: Catalogue, memory: EpisodicMemory) -> None:
    before = memory.digest()
    model = ScriptedChatModel(replies=[answer(RIGHT)])
    graph = build_repair_graph(model, memory, ExpectedRows(databases, [(3,)]), databases, METHODS["merit"])
    assert graph.invoke({**ASKED, "initial_sql": "SELECT 1"})["status"] == "CORRECT"
    assert memory.digest() == before


def test_keep_lets_the_model_repeat_itself_and_executes_every_repeat(databases: Catalogue) -> None:
    oracle = ExpectedRows(databases, [(3,)])
    model = ScriptedChatModel(replies=[answer("SELECT 1")] * 3)
    graph = build_repair_graph(model, None, oracle, databases, METHODS["iterative"], budget=3)
    result = graph.invoke({**ASKED, "initial_sql": "SELECT 1"})
    assert oracle.judged == ["SELECT 1"] * 4
    assert [a["repeat_of"] for a in result["attempts"]] == [None] * 4


def test_redraw_spends_budget_on_a_repeat_without_executing_it_and_draws_warmer(
    databases: Catalogue, memory: EpisodicMemory
) -> None:
    oracle = ExpectedRows(databases, [(3,)])
    replies = [answer("select  1"), answer("SELECT 1;"), answer(RIGHT)]
    model = ScriptedChatModel(replies=replies)
    graph = build_repair_graph(model, memory, oracle, databases, METHODS["merit_redraw"], budget=3)
    result = graph.invoke({**ASKED, "initial_sql": "SELECT 1"})
    assert oracle.judged == ["SELECT 1", RIGHT]
    assert [a["repeat_of"] for a in result["attempts"]] == [None, 0, 0, None]
    assert [a["draw"] for a in result["attempts"]] == [0, 0, 1, 2]
    assert len(set(model.prompts)) == 1
    assert result["status"] == "CORRECT"


def test_an_unknown_database_is_an_error_that_names_the_known_ones(databases: Catalogue) -> None:
    graph = build_repair_graph(
        ScriptedChatModel(replies=[]), None, ExecutionOracle(databases), databases, METHODS["merit"]
    )
    with pytest.raises(DataError, match=r"'shap'.*shop"):
        graph.invoke({"question": "?", "database_id": "shap"})
    with pytest.raises(DataError, match=r"'shap'.*shop"):
        graph.invoke({"question": "?", "database_id": "shap", "initial_sql": "SELECT 1"})


def test_a_thread_that_asks_again_starts_a_new_episode(databases: Catalogue) -> None:
    other = "SELECT count(*) FROM purchase"
    model = ScriptedChatModel(replies=[answer(RIGHT), answer(other), answer(RIGHT)])
    graph = build_repair_graph(
        model, None, ExpectedRows(databases, [(3,)]), databases, METHODS["iterative"], budget=1
    )
    graph.checkpointer = InMemorySaver()
    thread = {"configurable": {"thread_id": "t"}}
    first = graph.invoke({**ASKED, "initial_sql": "SELECT 1"}, thread)
    second = graph.invoke({"question": "How many purchases?", "database_id": "shop"}, thread)
    assert [a["sql"] for a in first["attempts"]] == ["SELECT 1", RIGHT]
    assert [a["sql"] for a in second["attempts"]] == [other, RIGHT]
    assert [a["step"] for a in second["attempts"]] == [0, 1]
    assert "How many purchases?" in model.prompts[1] and ASKED["question"] not in model.prompts[2]


def test_the_state_is_plain_data(databases: Catalogue, memory: EpisodicMemory) -> None:
    model = ScriptedChatModel(replies=[answer("SELECT 2"), answer(RIGHT)])
    graph = build_repair_graph(
        model, memory, ExpectedRows(databases, [(3,)]), databases, METHODS["merit"], budget=2
    )
    for state in graph.stream({**ASKED, "initial_sql": "SELECT 1"}, stream_mode="values"):
        assert json.loads(json.dumps(state)) == state


def test_the_graph_has_the_nodes_and_edges_of_the_design(databases: Catalogue) -> None:
    graph = build_repair_graph(
        ScriptedChatModel(replies=[]), None, ExecutionOracle(databases), databases, METHODS["merit"]
    )
    edges = {(edge.source, edge.target) for edge in graph.get_graph().edges}
    assert edges == {
        ("__start__", "oracle"),
        ("__start__", "generate"),
        ("oracle", "classify"),
        ("oracle", "finalize"),
        ("classify", "retrieve"),
        ("classify", "finalize"),
        ("retrieve", "generate"),
        ("generate", "oracle"),
        ("finalize", "__end__"),
    }


@pytest.mark.parametrize("positions", [[0, 0], [3, 1]])
def test_a_stream_refuses_positions_that_do_not_grow(
    databases: Catalogue, positions: list[int], make_case: Callable[[int], Case]
) -> None:
    graph = build_repair_graph(
        ScriptedChatModel(replies=[]), None, ExecutionOracle(databases), databases, METHODS["iterative"]
    )
    with pytest.raises(ValueError, match="position"):
        list(run_stream(graph, map(make_case, positions)))


@pytest.fixture
def make_case() -> Callable[[int], Case]:
    return lambda n: Case(
        query_id=f"q{n}", database_id="shop", question="?", position=n, initial_sql="SELECT 1"
    )


def test_reflexion_reflects_after_every_failure_and_shows_it_the_next_attempt(
    databases: Catalogue,
) -> None:
    replies = [
        "<reflection>thought 0</reflection>",
        answer("SELECT 1"),
        "thought 1",
        answer("SELECT 2"),
        "<reflection></reflection>",
    ]
    model, committer = ScriptedChatModel(replies=replies), Kept()
    oracle = ExpectedRows(databases, [(3,)])
    graph = build_repair_graph(model, None, oracle, databases, METHODS["reflexion"], committer, budget=2)
    graph.invoke({**ASKED, "initial_sql": "SELECT 0"})
    asked_to_reflect = ["Do not write a query now" in prompt for prompt in model.prompts]
    assert asked_to_reflect == [True, False, True, False, True]
    (record,) = committer.records
    assert [(one["step"], one["text"]) for one in record.reflections] == [
        (0, "thought 0"),
        (1, "thought 1"),
        (2, ""),
    ]
    assert "thought 0" in model.prompts[1] and "thought 1" not in model.prompts[1]
    assert "thought 0" in model.prompts[3] and "thought 1" in model.prompts[3]
    assert committer.observations == [None]


def test_reflections_stay_in_their_episode(databases: Catalogue) -> None:
    replies = ["thought 0", answer(RIGHT), "thought 1", answer(RIGHT)]
    model = ScriptedChatModel(replies=replies)
    graph = build_repair_graph(model, None, ExpectedRows(databases, [(3,)]), databases, METHODS["reflexion"])
    graph.checkpointer = InMemorySaver()
    thread = {"configurable": {"thread_id": "t"}}
    graph.invoke({**ASKED, "initial_sql": "SELECT 0"}, thread)
    graph.invoke({**ASKED, "question": "How many are there?", "initial_sql": "SELECT 0"}, thread)
    assert "thought 0" in model.prompts[1]
    assert "thought 0" not in "".join(model.prompts[2:])


@pytest.mark.parametrize("name", METHODS)
def test_a_graph_reflects_only_where_its_method_does(databases: Catalogue, name: str) -> None:
    graph = build_repair_graph(
        ScriptedChatModel(replies=[]), None, ExecutionOracle(databases), databases, METHODS[name]
    )
    assert ("reflect" in graph.get_graph().nodes) == (name == "reflexion")
