"""Mutants of Python files, by the operators of cosmic-ray and one more."""

from __future__ import annotations

import ast
import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Example, Operator
from cosmic_ray.operators.provider import OperatorProvider
from mutation_trials.mutant import Mutant, edit
from mutation_trials.sample import Place
from mutation_trials.scope import left_out
from parso.python.tree import Keyword

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Mapping

_LIKELY: Final[Mapping[str, tuple[str, ...]]] = {
    "Add": ("Sub",),
    "Sub": ("Add",),
    "Mul": ("Add", "FloorDiv"),
    "Div": ("Mul", "FloorDiv"),
    "FloorDiv": ("Mul", "Div"),
    "Mod": ("FloorDiv", "Add"),
    "Pow": ("Mul",),
    "RShift": ("LShift",),
    "LShift": ("RShift",),
    "BitOr": ("BitAnd",),
    "BitAnd": ("BitOr",),
    "BitXor": ("BitOr",),
    "Eq": ("NotEq", "Lt", "GtE"),
    "NotEq": ("Eq", "Lt", "Gt"),
    "Lt": ("LtE", "Gt", "NotEq"),
    "LtE": ("Lt", "GtE", "Eq"),
    "Gt": ("GtE", "Lt", "NotEq"),
    "GtE": ("Gt", "LtE", "Eq"),
    "Is": ("IsNot",),
    "IsNot": ("Is",),
    "USub": ("UAdd",),
}
"""What an operator is replaced by. Cosmic-ray knows more, of which most raise at once whatever they are given: they
would make the score look better."""

_REPLACES = re.compile(r"Replace(?:Binary|Comparison|Unary)Operator_(\w+)_(\w+)")
_TYPES: Final[Mapping[str, frozenset[str]]] = {
    "ReplaceBinaryOperator": frozenset({"operator"}),
    "ReplaceComparisonOperator": frozenset({"comparison"}),
    "ReplaceUnaryOperator": frozenset({"factor", "not_test"}),
}
"""The types of nodes that such an operator does something to, so that it need not be asked of each node."""

_PARAMETRISED = frozenset({"VariableReplacer", "VariableInserter"})  # they want names of variables
_FAMILIES: Final = (
    (re.compile("ReplaceBinaryOperator"), "arithmetic"),
    (re.compile("ReplaceComparisonOperator"), "comparison"),
    (re.compile("ReplaceUnaryOperator|AddNot"), "negation"),
    (re.compile("Replace(?:And|Or)With"), "connective"),
    (re.compile("Replace(?:True|False)With"), "constant"),
    (re.compile("NumberReplacer"), "number"),
    (re.compile("ReplaceBreak|ReplaceContinue|ZeroIteration"), "loop"),
    (re.compile("ExceptionReplacer"), "exception"),
    (re.compile("RemoveDecorator"), "decorator"),
    (re.compile("DropStatement"), "statement"),
)
_LEAVES = frozenset(
    {"name", "newline", "string", "endmarker", "fstring_string", "fstring_start", "fstring_end"}
)


class DropStatement(Operator):
    """Put ``pass`` in the place of a call or an assignment that stands alone."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """Yield the place of the statement, if the node is one."""
        if node.type == "simple_stmt" and _does_something(node.children[0]):
            yield node.children[0].start_pos, node.children[0].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """Return the node with ``pass`` in the place of its statement."""
        assert index == 0
        first = node.children[0]
        node.children[0] = Keyword("pass", first.start_pos, first.get_first_leaf().prefix)
        return node

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """Return an example for each kind of statement."""
        return Example("f(x)\n", "pass\n"), Example("x += 1\n", "pass\n"), Example("x.y = 1\n", "pass\n")


def _does_something(node: Any) -> bool:
    """Whether a statement is a call, or sets something that is there before."""
    if node.type == "atom_expr":
        return str(node.get_code()).rstrip().endswith(")")
    if node.type != "expr_stmt":
        return False
    target, operation = node.children[0], node.children[1]
    return operation.type == "operator" and (operation.value != "=" or target.type == "atom_expr")


@functools.cache
def operators() -> Mapping[str, Any]:
    """Return the operators, by name."""
    known = OperatorProvider()
    found = {name: known[name] for name in known if name not in _PARAMETRISED and _is_likely(name)}
    return {**found, "DropStatement": DropStatement}


def _is_likely(operator: str) -> bool:
    """Whether an operator is none of those that replace, or one that replaces as people might."""
    replaces = _REPLACES.fullmatch(operator)
    return replaces is None or replaces[1] == "Delete" or replaces[2] in _LIKELY.get(replaces[1], ())


def family_of(operator: str) -> str:
    """Return the family of an operator.

    Raises
    ------
    LookupError
        If it has none.
    """
    for pattern, family in _FAMILIES:
        if pattern.match(operator):
            return family
    raise LookupError(operator)


@dataclass(frozen=True, slots=True)
class _Choice:
    """One thing that an operator can do at one place."""

    operator: str
    occurrence: int


def places(path: str, text: str) -> Iterator[Place]:
    """Yield the places of a file where something can be mutated, each with all that can be done there.

    Parameters
    ----------
    path
        Relative to the repository.
    text
        The file's text.
    """
    regions = left_out(path, text)
    known = {name: operator() for name, operator in operators().items()}
    counts = dict.fromkeys(known, 0)
    found: dict[tuple[str, tuple[int, int]], list[_Choice]] = {}
    for node in ast_nodes(get_ast(text)):
        if node.type in _LEAVES:
            continue
        for name, operator in known.items():
            if node.type not in _TYPES.get(name.partition("_")[0], (node.type,)):
                continue
            for start, _ in operator.mutation_positions(node):
                choice = _Choice(name, counts[name])
                counts[name] += 1
                if not any(start in region for region in regions):
                    found.setdefault((family_of(name), start), []).append(choice)
    for (family, start), choices in sorted(found.items(), key=lambda one: one[0]):

        def make(generator: random.Random, family: str = family, choices: Any = choices) -> Mutant | None:
            return _made(path, text, family, generator.choice(choices))

        yield Place(path=path, family=family, where=start, make=make)


def _made(path: str, text: str, family: str, choice: _Choice) -> Mutant | None:
    """Return a mutant; None if what is done leaves the text as it is, or makes no Python of it.

    The star before parameters that have names only is an operator to cosmic-ray.
    """
    mutated = mutate_code(text, operators()[choice.operator](), choice.occurrence)
    if mutated is None or mutated == text:
        return None
    try:
        ast.parse(mutated)
    except SyntaxError:
        return None
    return edit(path, text, mutated, operator=choice.operator, family=family)
