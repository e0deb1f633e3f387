"""Two listeners in one program that stays. A payload is a dataclass, a listener is a function."""

from dataclasses import dataclass

from systole_sdk import call, listener, payload, run


@payload
@dataclass
class Add:
    a: int
    b: int


@payload
@dataclass
class Sum:
    value: int


@payload
@dataclass
class Mean:
    number: list[int]


@payload
@dataclass
class Result:
    mean: float


@listener
def add(request: Add) -> Sum:
    return Sum(request.a + request.b)


@listener
async def mean(request: Mean) -> Result:
    total = 0
    for number in request.number:
        total = (await call(Add(total, number))).value
    print(f"the sum is {total}")  # goes to the log
    return Result(total / len(request.number))


run()
