"""Streaming transducers and what they detect (SRT report, definition 32).

⊤* · e passes over any number of events, so that a stretch S_m..k is in the language of e exactly if the prefix S_1..k
is in that of ⊤* · e, with the same marks.
"""

from __future__ import annotations

from cerite.automaton.srt.concat import concat
from cerite.automaton.srt.epsilon import eliminate_epsilon
from cerite.automaton.srt.runs import Positions, reached
from cerite.automaton.srt.star import star
from cerite.automaton.srt.terminals import terminal
from cerite.automaton.srt.transducer import Transducer
from cerite.pattern.semantics.stream import Stream


def streaming(transducer: Transducer) -> Transducer:
    """The sSRT: recognition may begin at every event."""
    return eliminate_epsilon(concat(star(terminal()), transducer))


def detected(transducer: Transducer, stream: Stream) -> set[Positions]:
    """Every match in the stream that is complete at the event it marks last (definition 24).

    >>> from cerite.automaton.srt.build import build
    >>> from cerite.language.sremo import parse_sremo
    >>> stream = Stream.of({"type": each} for each in "abcabc")
    >>> sorted(map(sorted, detected(build(parse_sremo("a^o . b^o")), stream)))
    [[0, 1], [3, 4]]
    """
    anywhere = streaming(transducer)
    return {
        each.marked
        for each in reached(anywhere, stream)
        if each.just_marked and each.configuration.state in anywhere.finals
    }
