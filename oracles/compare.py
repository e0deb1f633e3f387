"""Compares the verdicts of lxml and xsd-schema with those of the corpus, and with its table of disagreements."""

import sys
from pathlib import Path

from lxml import etree


class Resolver(etree.Resolver):
    """Finds the attributes of the namespace `xml` where the crate has them, and nothing in the net."""

    def __init__(self, xml_xsd):
        self.xml_xsd = xml_xsd

    def resolve(self, url, public_id, context):
        return self.resolve_filename(self.xml_xsd, context) if url.endswith("/xml.xsd") else None


def lxml_verdicts(corpus, xml_xsd):
    """The error of each instance; None if it is valid."""
    parser = etree.XMLParser(no_network=True)
    parser.resolvers.add(Resolver(xml_xsd))
    schemas = {}
    for path in sorted(corpus.glob("*.xml")):
        name = path.stem.split(".")[0]
        if name not in schemas:
            try:
                schemas[name] = etree.XMLSchema(etree.parse(str(corpus / f"{name}.xsd"), parser))
            except etree.XMLSchemaParseError as error:
                schemas[name] = str(error)
        schema = schemas[name]
        if isinstance(schema, str):
            yield path.stem, schema
        else:
            valid = schema.validate(etree.parse(str(path)))
            yield path.stem, None if valid else str(schema.error_log[0].message)


def read_verdicts(path):
    for line in path.read_text().splitlines():
        name, verdict, *reason = line.split(" ", 2)
        yield name, None if verdict == "valid" else " ".join(reason)


def listed(corpus, oracle):
    lines = (corpus / "disagreements.txt").read_text().splitlines()
    rows = [[column.strip() for column in line.split("|")] for line in lines if line and not line.startswith("#")]
    return {row[0] for row in rows if row[1] == oracle}


def main():
    corpus, xml_xsd, other = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    libxml = ".".join(map(str, etree.LIBXML_VERSION))
    oracles = [
        ("lxml", f"libxml2 {libxml} (lxml {etree.__version__})", lxml_verdicts(corpus, xml_xsd)),
        ("xsd-schema", "xsd-schema (Rust)", read_verdicts(other)),
    ]
    wrong = False
    print("| validator | instances | as the Recommendation says | disagreements |")
    print("|---|---|---|---|")
    for oracle, title, verdicts in oracles:
        verdicts = dict(verdicts)
        expects = lambda name: name.split(".")[-1].startswith("valid-")
        found = {name: said for name, said in verdicts.items() if expects(name) != (said is None)}
        print(f"| {title} | {len(verdicts)} | {len(verdicts) - len(found)} | {len(found)} |")
        known = listed(corpus, oracle)
        for name in sorted(found.keys() - known):
            wrong = True
            print(f"not listed: {name} | {oracle} | says: {found[name] or 'valid'}", file=sys.stderr)
        for name in sorted(known - found.keys()):
            wrong = True
            print(f"listed, but {oracle} agrees: {name}", file=sys.stderr)
    sys.exit(wrong)


main()
