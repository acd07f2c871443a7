"""A checker of JSON against a schema: the words of JSON Schema that schema/reports.json uses, and no others."""

import re

TYPES = {
    "array": list,
    "boolean": bool,
    "integer": int,
    "null": type(None),
    "number": (int, float),
    "object": dict,
    "string": str,
}
SAID_ELSEWHERE = {"$schema", "$id", "$defs", "title", "description"}


def has_type(value, name):
    return isinstance(value, TYPES[name]) and not (isinstance(value, bool) and name in ("integer", "number"))


def is_equal(value, constant):
    return type(value) is type(constant) and value == constant


class Checker:
    """``known_names``: a name that the schema does not describe is wrong as well, which the schema itself leaves open."""

    def __init__(self, schema, known_names=False):
        self.root, self.known_names = schema, known_names

    def at(self, reference):
        node = self.root
        for part in reference.removeprefix("#/").split("/"):
            node = node[part]
        return node

    def wrong(self, value, schema, place="$"):
        """What is wrong with the value, a text each."""
        errors = []
        for word, rule in schema.items():
            if word not in SAID_ELSEWHERE:
                errors += getattr(self, f"check_{word.strip('$')}")(value, rule, schema, place)
        return errors

    def check_ref(self, value, rule, schema, place):
        return self.wrong(value, self.at(rule), place)

    def check_type(self, value, rule, schema, place):
        names = rule if isinstance(rule, list) else [rule]
        return [] if any(has_type(value, name) for name in names) else [f"{place}: {value!r}; must be of type {rule}"]

    def check_const(self, value, rule, schema, place):
        return [] if is_equal(value, rule) else [f"{place}: {value!r}; must be {rule!r}"]

    def check_enum(self, value, rule, schema, place):
        return [] if any(is_equal(value, one) for one in rule) else [f"{place}: {value!r}; must be one of {rule}"]

    def check_minimum(self, value, rule, schema, place):
        is_less = has_type(value, "number") and value < rule
        return [f"{place}: {value}; must be {rule} or more"] if is_less else []

    def check_pattern(self, value, rule, schema, place):
        is_other = isinstance(value, str) and re.search(rule, value) is None
        return [f"{place}: {value!r}; must match {rule}"] if is_other else []

    def check_minLength(self, value, rule, schema, place):
        return [f"{place}: must have {rule} characters or more"] if isinstance(value, str) and len(value) < rule else []

    def check_minItems(self, value, rule, schema, place):
        return [f"{place}: must have {rule} items or more"] if isinstance(value, list) and len(value) < rule else []

    def check_maxItems(self, value, rule, schema, place):
        return [f"{place}: must have {rule} items at most"] if isinstance(value, list) and len(value) > rule else []

    def check_items(self, value, rule, schema, place):
        if not isinstance(value, list):
            return []
        return [text for i, one in enumerate(value) for text in self.wrong(one, rule, f"{place}[{i}]")]

    def check_required(self, value, rule, schema, place):
        return [f"{place}: '{name}' is missing" for name in rule if isinstance(value, dict) and name not in value]

    def check_properties(self, value, rule, schema, place):
        if not isinstance(value, dict):
            return []
        errors = [text for name in rule if name in value for text in self.wrong(value[name], rule[name], f"{place}.{name}")]
        if self.known_names:
            errors += [f"{place}: the name '{name}' is not in the schema" for name in value if name not in rule]
        return errors

    def check_additionalProperties(self, value, rule, schema, place):
        extra = [name for name in value if name not in schema["properties"]] if isinstance(value, dict) else []
        return [f"{place}: the name '{name}' must not be there" for name in extra] if rule is False else []

    def check_anyOf(self, value, rule, schema, place):
        return [] if any(not self.wrong(value, one, place) for one in rule) else [f"{place}: fits none of {rule}"]

    def check_oneOf(self, value, rule, schema, place):
        fitting = sum(not self.wrong(value, one, place) for one in rule)
        return [] if fitting == 1 else [f"{place}: fits {fitting} of {rule}; must fit one"]
