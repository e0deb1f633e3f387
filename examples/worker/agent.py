"""Two listeners in one program that stays: one adds, the other calls it, step by step, for the sum of many numbers."""

from dataclasses import dataclass

from systole_sdk import call, listener, named, payload, run

NUMBERS = "urn:example:numbers:v1"


@payload(NUMBERS)
@dataclass
class Add:
    a: int
    b: int


@payload(NUMBERS)
@dataclass
class Sum:
    value: int = named("@value")


@payload(NUMBERS)
@dataclass
class Mean:
    number: list[int]


@payload(NUMBERS)
@dataclass
class Result:
    mean: float
    note: str | None = None


@listener
def add(request: Add) -> Sum:
    return Sum(request.a + request.b)


@listener
async def mean(request: Mean) -> Result:
    total = request.number[0]
    for number in request.number[1:]:
        total = (await call(Add(total, number))).value
    print(f"the sum is {total}")
    return Result(total / len(request.number), note="R&D")


run()
