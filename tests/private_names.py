"""Private names in source that belong to another module: attributes, imports, and strings given to `getattr`.

An attribute is a class's own if the class, or one of ours that it inherits from, defines it, and it is used on `self`,
`cls`, `super()` or what is annotated with that class. Every other private attribute is that of another module, also
where one of ours has the same name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

PACKAGES = ("memstate_core", "memstate_pipeline")
NAMED_TUPLE = {"_asdict", "_replace", "_fields", "_make"}
"""Public names of named tuples in spite of their underscore."""
BY_NAME = {"getattr", "setattr", "hasattr", "delattr", "attrgetter"}
Trees = Mapping[str, ast.Module]
"""Modules by their path below the root."""


@dataclass
class Class:
    """A class of ours: the private names that it defines, and those of its bases that are ours, by their full names."""

    own: set[str] = field(default_factory=set)
    bases: list[str] = field(default_factory=list)


@dataclass
class Classes:
    """All classes of ours, by their full names."""

    found: dict[str, Class]

    def names(self, name: str | None, bases_only: bool = False) -> set[str]:
        """The private names of a class and of what it inherits from, as far as that is ours."""
        if name not in self.found:
            return set()
        inherited = set[str]().union(*map(self.names, self.found[name].bases))
        return inherited if bases_only else inherited | self.found[name].own


def private_references(trees: Trees) -> Iterator[tuple[str, str]]:
    """Path and private name of another module, for each that a module imports, reads or sets."""
    classes = Classes({name: each for path, tree in trees.items() for name, each in _classes(path, tree)})
    for path, tree in trees.items():
        yield from ((path, name) for name in _PrivateNames(_module(path), _imported(tree), classes).of(tree))


@dataclass
class _PrivateNames:
    module: str
    imported: dict[str, str]
    classes: Classes

    def of(self, node: ast.AST, inside: str | None = None, annotated: Mapping[str, str] | None = None) -> Iterator[str]:
        """Those of a node: `inside` is the class around it, `annotated` the variables of known classes."""
        if isinstance(node, ast.ClassDef):
            inside = f"{self.module}.{node.name}"
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            annotated = {**(annotated or {}), **dict(self._annotated(node))}
        elif isinstance(node, ast.Attribute) and is_private(node.attr):
            if node.attr not in self._own(node.value, inside, annotated or {}):
                yield node.attr
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from _imports(node)
        elif isinstance(node, ast.Call):
            yield from _by_name(node)
        for child in ast.iter_child_nodes(node):
            yield from self.of(child, inside, annotated)

    def _own(self, value: ast.expr, inside: str | None, annotated: Mapping[str, str]) -> set[str]:
        """The private names that the class around may use on an object."""
        match value:
            case ast.Name(id="self" | "cls"):
                return self.classes.names(inside)
            case ast.Call(func=ast.Name(id="super")):
                return self.classes.names(inside, bases_only=True)
            case ast.Name(id=name) if inside is not None and annotated.get(name) == inside:
                return self.classes.names(inside)
        return set()

    def _annotated(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, str]]:
        given = function.args
        for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs):
            if isinstance(argument.annotation, ast.Name):
                yield argument.arg, _full(argument.annotation.id, self.module, self.imported)
        for node in ast.walk(function):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                yield node.target.id, _full(ast.unparse(node.annotation), self.module, self.imported)


def is_private(name: str) -> bool:
    """Whether a name is private by convention."""
    return name.startswith("_") and not name.startswith("__") and name not in NAMED_TUPLE


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _imported(tree: ast.Module) -> dict[str, str]:
    """Full names of what a module imports from others of ours."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name: f"{node.module}.{alias.name}" for node in nodes for alias in node.names}


def _full(name: str, module: str, imported: Mapping[str, str]) -> str:
    first, dot, rest = name.partition(".")
    return imported[first] + dot + rest if first in imported else f"{module}.{name}"


def _classes(path: str, tree: ast.Module) -> Iterator[tuple[str, Class]]:
    module, imported = _module(path), _imported(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            bases = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]
            named = [_full(ast.unparse(base), module, imported) for base in bases]
            yield f"{module}.{node.name}", Class(set(filter(is_private, _defined(node))), named)


def _defined(node: ast.ClassDef) -> Iterator[str]:
    """Names that a class defines: methods, attributes of the class, and those that its methods set."""
    for each in node.body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            yield each.name
        elif isinstance(each, ast.Assign | ast.AnnAssign):
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))
    for each in ast.walk(node):
        match each:
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                yield name


def _imports(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if _foreign_private(alias.name))
    elif node.level == 0 and node.module is not None:
        if _foreign_private(node.module):
            yield node.module
        elif not node.module.startswith(PACKAGES):
            yield from (alias.name for alias in node.names if is_private(alias.name))


def _foreign_private(module: str) -> bool:
    return not module.startswith(PACKAGES) and any(is_private(part) for part in module.split("."))


def _by_name(node: ast.Call) -> Iterator[str]:
    if isinstance(node.func, ast.Name) and node.func.id in BY_NAME:
        texts = [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        yield from filter(is_private, texts)
