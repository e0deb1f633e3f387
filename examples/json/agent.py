"""The desk of a shop. Payloads are JSON here (`json: true`): the same classes as of any worker, or a dict with the name."""

from dataclasses import dataclass

from systole_sdk import call, listener, named, payload, run


@dataclass
class Line:
    article: str
    price: float
    count: int = 1


@payload
@dataclass
class Order:
    buyer: str
    line: list[Line]
    id: int | None = named("@id", default=None)


@payload
@dataclass
class Receipt:
    buyer: str
    total: float


@listener
async def take(order: Order) -> Receipt:
    cents = [round(line.price * 100) * line.count for line in order.line]
    charged = await call({"charge": {"cents": cents}})
    return Receipt(order.buyer, charged["charged"]["total"] / 100)


run()
