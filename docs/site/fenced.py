"""Examples in docstrings are code on the docs site: a griffe extension that fences them."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)  # as doctest has it: until an empty line


class FencedExamples(Extension):  # type: ignore[misc]
    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(lambda example: f"```python\n{example[0]}\n```", obj.docstring.value)
