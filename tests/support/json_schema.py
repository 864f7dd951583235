"""Validates JSON against the schemas of docs/schemas: the part of JSON Schema that they use, and nothing else."""

import json
import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "docs/schemas"
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}
KNOWN = {"$schema", "$defs", "$ref", "title", "type", "properties", "required", "additionalProperties", "items", "oneOf", "enum", "const",
         "pattern", "minimum", "minLength"}


def load(name):
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def resolved(reference, root):
    file, _, pointer = reference.partition("#")
    root = load(file) if file else root
    found = root
    for part in pointer.strip("/").split("/"):
        found = found[part]
    return found, root


def errors(value, schema, root, place="$"):
    """Each deviation, with its place."""
    assert schema.keys() <= KNOWN, f"the validator does not know {sorted(schema.keys() - KNOWN)}"
    if "$ref" in schema:
        target, its_root = resolved(schema["$ref"], root)
        return errors(value, target, its_root, place)
    if "oneOf" in schema:
        tried = [errors(value, one, root, place) for one in schema["oneOf"]]
        fitting = tried.count([])
        return [] if fitting == 1 else [f"{place}: fits {fitting} of {len(tried)}"] + min(tried, key=len)
    if "enum" in schema:
        return [] if value in schema["enum"] else [f"{place}: {value!r} is none of {schema['enum']}"]
    if "const" in schema:
        return [] if value == schema["const"] else [f"{place}: {value!r} is not {schema['const']!r}"]
    kind = TYPES[schema["type"]]
    if not isinstance(value, kind) or kind is int and isinstance(value, bool):
        return [f"{place}: {value!r} is no {schema['type']}"]
    if kind is dict:
        return list(errors_of_object(value, schema, root, place))
    if kind is list:
        return [error for at, item in enumerate(value) for error in errors(item, schema["items"], root, f"{place}[{at}]")]
    if kind is str:
        fits = re.search(schema.get("pattern", ""), value) and len(value) >= schema.get("minLength", 0)
        return [] if fits else [f"{place}: {value!r} does not fit {schema.get('pattern')!r}"]
    return [] if kind is bool or value >= schema.get("minimum", value) else [f"{place}: {value} is below {schema['minimum']}"]


def errors_of_object(value, schema, root, place):
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{place}: {name} is missing"
    for name, member in value.items():
        wanted = schema.get("properties", {}).get(name, schema.get("additionalProperties", True))
        if wanted is False:
            yield f"{place}: {name} is not known"
        elif wanted is not True:
            yield from errors(member, wanted, root, f"{place}.{name}")


def validate(value, command):
    """Raises AssertionError if `value` is not what the schema of the command says."""
    schema = load(f"{command}.json")
    found = errors(value, schema, schema)
    assert not found, f"{command}: " + "; ".join(found[:5])
