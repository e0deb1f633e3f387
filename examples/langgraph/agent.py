"""A graph of LangGraph as a listener, and a plain function beside it, which the graph calls through the organism.

The model is scripted, so it runs offline: any chat model of LangChain stands in its place, such as
`init_chat_model("anthropic:…")`, with its key in `env` of the organism.
"""

from dataclasses import dataclass
from typing import Any, TypedDict

from langchain_core.language_models.chat_models import SimpleChatModel
from langchain_core.messages import BaseMessage
from langgraph.graph import END, START, StateGraph

from systole_sdk import call, listener, named, payload, run

RESEARCH = "urn:example:research:v1"


@payload(RESEARCH)
@dataclass
class Question:
    text: str = named("$text")


@payload(RESEARCH)
@dataclass
class Report:
    answer: str
    source: list[str]


@payload(RESEARCH)
@dataclass
class Lookup:
    term: str = named("$text")


@payload(RESEARCH)
@dataclass
class Facts:
    fact: list[str]


class Scripted(SimpleChatModel):
    """Answers by rules."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _call(self, messages: list[BaseMessage], *_: Any, **__: Any) -> str:
        task, _, text = str(messages[-1].content).partition(": ")
        if task == "Name the term to look up":
            return text.rstrip("?").split()[-1]
        return f"From {text.count(';') + 1} facts: {text}"


class State(TypedDict, total=False):
    question: str
    term: str
    facts: list[str]
    answer: str


model = Scripted()


async def plan(state: State) -> State:
    return {"term": (await model.ainvoke(f"Name the term to look up: {state['question']}")).text}


async def search(state: State) -> State:
    # A call of the organism: judged, journaled, and answered by the other listener.
    facts: Facts = await call(Lookup(state["term"]))
    return {"facts": facts.fact}


async def write(state: State) -> State:
    return {"answer": (await model.ainvoke(f"Answer from these facts: {'; '.join(state['facts'])}")).text}


def give_up(state: State) -> State:
    return {"answer": f"Nothing is known about {state['term']}."}


graph = StateGraph(State)
for node in (plan, search, write, give_up):
    graph.add_node(node.__name__, node)
graph.add_edge(START, "plan")
graph.add_edge("plan", "search")
graph.add_conditional_edges("search", lambda state: "write" if state["facts"] else "give_up")
graph.add_edge("write", END)
graph.add_edge("give_up", END)
researcher = graph.compile()


@listener
async def research(question: Question) -> Report:
    state = await researcher.ainvoke({"question": question.text})
    return Report(state["answer"], state["facts"])


LIBRARY = {"systole": ["the phase in which the heart pumps", "a message pump for organisms of actors"]}


@listener
def lookup(request: Lookup) -> Facts:
    return Facts(LIBRARY.get(request.term.lower(), []))


run()
