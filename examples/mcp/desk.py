"""The fares and the desk of a travel agency: one program, which both listeners run."""
from dataclasses import dataclass

from systole_sdk import call, draft, listener, named, payload, run

TRAVEL = "urn:example:travel:v1"
FARES = {"Paris": 120, "Rome": 90, "Oslo": 210}


@payload(TRAVEL)
@dataclass
class Quote:
    to: str
    travellers: int


@payload(TRAVEL)
@dataclass
class Fare:
    euros: int


@payload(TRAVEL)
@dataclass
class Booking:
    to: str
    travellers: int


@payload(TRAVEL)
@dataclass
class Offer:
    text: str = named("$text")


@payload(TRAVEL)
@dataclass
class Consent:
    agreed: bool
    name: str


@payload(TRAVEL)
@dataclass
class Ticket:
    text: str = named("$text")


@listener
async def fare(quote: Quote) -> Fare:
    return Fare(FARES[quote.to] * quote.travellers)


@listener
async def book(booking: Booking) -> Ticket:
    draft(f"The fare to {booking.to}?\n")
    fare = await call(Quote(booking.to, booking.travellers))
    consent = await call(Offer(f"{booking.to} for {booking.travellers} costs {fare.euros} euros. Agreed?"))
    if not consent.agreed:
        return Ticket("nothing was booked")
    return Ticket(f"{booking.to} for {consent.name}, {fare.euros} euros")


run()
