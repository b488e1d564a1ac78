"""The catalog as data, for tests: the compiler's own parser, and its descriptions."""
import importlib.util
import pathlib
import re

FOLDER = pathlib.Path(__file__).resolve().parent.parent.parent / "catalog"


def compiler():
    spec = importlib.util.spec_from_file_location("catalog_compiler", FOLDER / "compile.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load():
    """-> (packages by name, types by full name, [(group, version, package)], [(what, described thing)])"""
    module = compiler()
    packages, types, order = module.load()
    return packages, types, order, list(module.described_things(packages))


def stated_default(text):
    """The value in "Default 1." or "Default `Always`.", as text; None if there is none in that form."""
    found = re.search(r"(?:^|\. )Default (?:`([^`]*)`|([^` ]+))\.(?: |$)", text)
    return None if found is None else found[1] if found[1] is not None else found[2]


def closed_set(text):
    """The values of "One of `A`, `B` or `C`."; None if there is no such sentence."""
    found = re.search(r"(?:^|\. )One of ((?:`[^`]*`(?:, | or )?)+)\.(?: |$)", text)
    return None if found is None else re.findall(r"`([^`]*)`", found[1])


def element_of(text):
    """"[]Container" -> "Container"; "map[string]X" -> "X"."""
    while True:
        inner = re.match(r"\[\](.*)|map\[[^\]]*\](.*)", text)
        if inner is None:
            return text
        text = inner[1] or inner[2]


def struct_of(types, package, text):
    """The struct that a field's type names, behind lists and maps; None for other types."""
    name = element_of(text)
    named = types.get(name if "." in name else f"{package.name}.{name}")
    while named is not None and named.keyword in ("list", "map"):
        name = element_of(named.element)
        named = types.get(name if "." in name else f"{named.package.name}.{name}")
    return named if named is not None and named.keyword == "struct" else None


def members_of(types, named):
    """A struct's fields as in JSON: those of inlined structs are its own."""
    for field in named.fields:
        if field.inlined:
            yield from members_of(types, struct_of(types, named.package, field.type))
        else:
            yield field
