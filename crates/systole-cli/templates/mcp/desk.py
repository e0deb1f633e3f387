"""The desk of the shop: it takes orders, and asks the MCP server for the stock."""

from dataclasses import dataclass

from systole_sdk import call, listener, payload, run

SHOP = "urn:example:NAME:v1"
STOCK = "urn:systole:mcp:server:stock"


@payload(SHOP)
@dataclass
class Order:
    article: str
    packets: int


@payload(SHOP)
@dataclass
class Receipt:
    taken: bool
    note: str


@payload(STOCK)
@dataclass
class Count:
    article: str


@payload(STOCK)
@dataclass
class CountResult:
    packets: int


@listener
async def desk(order: Order) -> Receipt:
    stock: CountResult = await call(Count(order.article))
    if order.packets > stock.packets:
        return Receipt(False, f"only {stock.packets} packets of {order.article} are in stock")
    return Receipt(True, f"{order.packets} packets of {order.article} are yours")


run()
