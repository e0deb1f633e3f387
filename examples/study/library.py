"""Finds notes by the words of a search."""

import re
from dataclasses import dataclass
from pathlib import Path

from systole_sdk import listener, payload, run

STUDY = "urn:example:study:v1"
NOTES = (Path(__file__).parent / "notes.txt").read_text(encoding="utf-8").splitlines()


@payload(STUDY)
@dataclass
class Search:
    words: str


@payload(STUDY)
@dataclass
class Notes:
    note: list[str]


def words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.lower()) if len(word) > 2}


@listener
async def search(request: Search) -> Notes:
    wanted = {note: len(words(note) & words(request.words)) for note in NOTES}
    best = max(wanted.values())
    return Notes([note for note, shared in wanted.items() if shared == best and best])


run()
