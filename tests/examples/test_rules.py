"""docs/rules.md keeps what it promises: every rule goes from a file to a data frame in under 15 lines."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "rules.md").read_text("utf-8")
LINES = 15


def test_every_rule_is_short() -> None:
    rules = re.findall(r"^## (.+?)\n.*?```python\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(rules) == PAGE.count("\n## ") >= 5
    for name, code in rules:
        written = [line for line in code.splitlines() if line.startswith((">>>", "..."))]
        assert len(written) < LINES, name
        assert ".csv" in code, name
        assert ".to_pandas()" in code, name
