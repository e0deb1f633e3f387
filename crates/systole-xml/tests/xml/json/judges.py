"""Answers the questions of `judges.rs`, one JSON document a line: whether a schema takes values, and whether xmlschema's
default converter makes the same JSON of payloads."""

import json
import sys
from decimal import Decimal

import jsonschema
import xmlschema


def plain(value):
    """The form of the converter, without its namespace declarations and its types of numbers."""
    if isinstance(value, dict):
        return {key.split(":")[-1]: plain(inner) for key, inner in value.items() if not key.startswith("@xmlns")}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    # An element without content is None there, and an empty object here.
    if value is None:
        return {}
    if isinstance(value, (Decimal, int, float)) and not isinstance(value, bool):
        return str(float(value))
    return value


def ours(value):
    if isinstance(value, dict):
        return {key: ours(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [ours(inner) for inner in value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(float(value))
    return value


def same(left, right):
    if isinstance(left, dict) and isinstance(right, dict):
        # An empty text has no property there.
        left = {"$": "", **left} if right.get("$") == "" else left
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    # An empty text is None there, and so an empty object by now.
    if left == {} and right in ("", []):
        return True
    if isinstance(left, str) and isinstance(right, str) and left != right:
        try:
            return float(left) == float(right) or left == right.lower() or (left == "nan" and right == "NaN")
        except ValueError:
            return False
    return left == right


for line in sys.stdin:
    case = json.loads(line)
    if "schema" in case:
        jsonschema.Draft202012Validator.check_schema(case["schema"])
        validator = jsonschema.Draft202012Validator(case["schema"])
        print(json.dumps([validator.is_valid(value) for value in case["values"]]))
    else:
        schema = xmlschema.XMLSchema(case["xsd"])
        print(json.dumps([same(plain(schema.to_dict(xml)) , ours(value)) for xml, value in case["payloads"]]))
    sys.stdout.flush()
