"""Writes a story around an outline, and shows each sentence when it has it."""
import asyncio
import xml.etree.ElementTree as ET
from xml.sax.saxutils import escape

from systole_sdk import call, draft, listener, run


@listener("wish")
async def edit(wish: str) -> str:
    about = ET.fromstring(wish).text or "nothing"
    sentences = [f"This is a story about {about}."]
    draft(sentences[0] + "\n")
    outline = await call(f"<plot>{escape(about)}</plot>")
    for sentence in (ET.fromstring(outline).text or "", "The end."):
        await asyncio.sleep(0.1)
        sentences.append(sentence)
        draft(sentence + "\n")
    return f"<story>{escape(' '.join(sentences))}</story>"


run()
