"""YAML of plain data: what graphs of judge questions are written in."""

from collections.abc import Hashable, Iterator
from typing import Any

import yaml

from medassay.core.json import without_twins
from medassay.errors import InputError


def read_yaml(text: str, where: str) -> Any:
    """Return the data in a YAML text; InputError names what is wrong with it."""
    try:
        return yaml.load(text, Loader=_Loader)  # a SafeLoader
    # Odd scalars (`!!int "+"`, `!!timestamp x`) break the reader itself, in many ways.
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(f"{where}: not valid YAML: {error}") from None
    except (RecursionError, yaml.YAMLError) as error:
        message = " ".join(str(error).split())
        raise InputError(f"{where}: not valid YAML: {message}") from None


class _Loader(yaml.SafeLoader):
    """YAML of plain data: keys as written (`true` and `yes` are words), none twice, and no
    aliases.
    """

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise ValueError("aliases are not read; write the node out")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        return without_twins(self._pairs(node))

    def _pairs(self, node: yaml.MappingNode) -> Iterator[tuple[str, Any]]:
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise ValueError("a key is no text")
            yield key.value, self.construct_object(value, deep=True)
