"""Bad pattern files of Wayeb, each with the whole message a user sees (`golden_wayeb/*.txt`: text, `---`, message).

`python -m tests.faults.test_wayeb` writes the messages anew; read the difference before committing it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cerite.core.errors import CeriteError
from cerite.language.wayeb import parse_wayeb
from cerite.pattern.check import check
from tests.faults.shown import never_shown

GOLDEN = Path(__file__).parent / "golden_wayeb"
CASES = sorted(GOLDEN.glob("*.txt"))


def message_of(text: str) -> str:
    """What the user sees, or an empty text for a file that is accepted."""
    try:
        check(parse_wayeb(text))
    except CeriteError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def split(path: Path) -> tuple[str, str]:
    text, _, message = path.read_text("utf-8").partition("\n---\n")
    return text, message.rstrip("\n")


@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
def test_message(path: Path) -> None:
    text, message = split(path)
    assert message
    assert message_of(text) == message


@pytest.mark.parametrize("module", ["cerite/language/wayeb.py", "cerite/language/wayeb_sentences.py"])
def test_every_refusal_and_all_advice_is_in_some_message(module: str) -> None:
    assert never_shown(module, (split(path)[1] for path in CASES)) == []


LONG = {
    "ten thousand operands, broken at the end": ";(" + ",".join(["TruePredicate"] * 10_000) + ",)",
    "a thousand levels": "*(" * 1000 + "TruePredicate" + ")" * 1000,
    "a thousand negations": "-(" * 1000 + "TruePredicate" + ")" * 1000,
    "a number of a thousand digits": "EQ(id," + "9" * 1000 + ")",
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_long_and_deep_files_end_with_a_message(text: str) -> None:
    message = message_of(text)
    assert message.startswith("QuerySyntaxError")
    assert len(message) < 600


if __name__ == "__main__":
    for case in CASES:
        written, _ = split(case)
        case.write_text(f"{written}\n---\n{message_of(written)}\n", "utf-8")
