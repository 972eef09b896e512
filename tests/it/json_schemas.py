"""Checks answers against their schemas:  json_schemas.py SCHEMA ANSWERS [SCHEMA ANSWERS]..

ANSWERS has a JSON value, or one on each line. A schema leaves room for keys of later versions; here there is none, so that a key that no schema names
is found.
"""

import json
import sys

import jsonschema


def closed(schema):
    if isinstance(schema, dict):
        schema = {key: closed(value) for key, value in schema.items()}
        if "properties" in schema and "additionalProperties" not in schema:
            schema["additionalProperties"] = False
    elif isinstance(schema, list):
        schema = [closed(one) for one in schema]
    return schema


def values(text):
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.splitlines()]


wrong, seen = [], 0
pairs = sys.argv[1:]
for schema_file, answer_file in zip(pairs[::2], pairs[1::2]):
    with open(schema_file, encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(closed(schema))
    with open(answer_file, encoding="utf-8") as file:
        for value in values(file.read()):
            seen += 1
            for error in validator.iter_errors(value):
                wrong.append(f"{schema_file}: {answer_file}: {list(error.absolute_path)}: {error.message[:300]}")
print(f"{seen} answers")
print("\n".join(wrong), file=sys.stderr)
sys.exit(1 if wrong or not seen else 0)
