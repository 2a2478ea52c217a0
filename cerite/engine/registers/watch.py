"""The sets of configurations that a run carries along: see `automaton.watching`.

A watched set is a set of rows like any other. A strategy's rows also say, in their state, how their way compares so far
with the way of the run: `WORSE`, `SAME` or `BETTER`. Beside the runs, every partition has *common* sets: for each
strategy all ways begun so far from any start, and the ways that have not marked anything yet (`EARLY` transitions).

Invariant: a watched set holds exactly the configurations of the watched pattern's ways since it was opened, and of a
strategy those that may still turn out better.
"""

import numpy as np

from cerite.automaton.automaton import LAST, NEXT, PLAIN
from cerite.core.arrays import Longs
from cerite.core.jit import inner
from cerite.engine.cursor import DONE, MORE_SCRATCH, MORE_SETS
from cerite.engine.registers.interpret import FLAGS, STATE, VALUES, Code
from cerite.engine.registers.layout import (
    FINAL,
    FORBIDS,
    INITIAL,
    LATE,
    OP_MARKS,
    RESETS,
    SPAWNS,
    STARTS,
    STATES,
    STORED_VALUES,
    WATCHER,
    WATCHERS,
    Events,
    Scratch,
    Sets,
    Tables,
    Watching,
)  # fmt: skip
from cerite.engine.registers.sets import NO_SET, enabled, follow, intern, place, same_row
from cerite.engine.registers.tables import ACTIONS, EARLY, KEEP, MARKS, OPS, OPS_END, TARGET

WORSE, SAME, BETTER, GONE = range(4)
KIND, ENTRY, LIVE = range(3)


@inner
def compared_now(kind: int, so_far: int, marks: int, mine: int) -> int:
    """How a way compares after an event that it marks or not, and that the run marks or not."""
    if kind == PLAIN or marks == mine:
        return so_far
    if kind == LAST:
        return BETTER if marks else WORSE
    if kind == NEXT:
        return BETTER if so_far == BETTER or marks else GONE
    return BETTER if marks else GONE  # MAX: a way that lacks what the run has never contains it


@inner
def spawned(k: int, row: Longs, made: Longs, tables: Tables) -> None:
    """The configuration in which watcher k begins beside a row (`Machine.opening`)."""
    stored = tables.shape[STORED_VALUES]
    actions = tables.actions[tables.watchers[k, LIVE]]
    made[:] = 0
    made[VALUES + stored :] = NO_SET
    made[STATE] = tables.watchers[k, ENTRY]
    for s in range(stored):
        if actions[s] == KEEP:
            made[VALUES + s] = row[VALUES + s]
            made[FLAGS] |= row[FLAGS] & (np.int64(3) << 2 * s)


@inner
def advance(row: Longs, so_far: int, kind: int, mine: int, early: int, n: int, i: int, events: Events, tables: Tables,
            code: Code | None, watching: Watching) -> tuple[int, bool]:  # fmt: skip
    """Add the rows reached from one watched row; how many there are then (-1 without room), and whether one completes.

    With `early`, only ways that have marked nothing yet.
    """
    completes = False
    states = tables.shape[STATES]
    q = row[STATE] % states
    for x in range(tables.first[q], tables.first[q + 1]):
        if early and not tables.t[x, EARLY]:
            continue
        if not enabled(x, row, i, events, tables, code):
            continue
        now = compared_now(kind, so_far, tables.t[x, MARKS], mine)
        if now == GONE:
            continue
        if tables.t[x, TARGET] == tables.shape[FINAL]:
            completes |= kind == PLAIN or now == BETTER
            continue
        if n == watching.order.size:
            return np.int64(-1), completes
        follow(x, row, watching.rows[n], i, events.values, events.nulls, tables.t, tables.actions, tables.shape,
               tables.beyond)  # fmt: skip
        watching.rows[n, STATE] += now * states
        place(n, watching.rows, watching.label, watching.order)
        n += 1
    return n, completes


@inner
def gathered(n: int, sets: Sets, watching: Watching) -> int:
    """The number of the set of the inner rows; `NO_SET` if there are none, -`MORE_SETS` without room."""
    kept = np.int64(0)
    for at in range(n):
        r = watching.order[at]
        if kept == 0 or not same_row(watching.rows, r, watching.rows, watching.order[kept - 1]):
            watching.order[kept] = r
            kept += 1
    if kept == 0:
        return NO_SET
    found = intern(watching.rows, watching.order, np.int64(0), kept, np.int64(-1), sets)
    return found if found >= 0 else -MORE_SETS


@inner
def operate(o: int, row: Longs, made: Longs, part: int, i: int, events: Events, tables: Tables, sets: Sets,
            scratch: Scratch, code: Code | None, watching: Watching) -> int:  # fmt: skip
    """One op: 1 if the step is possible, 0 if it is forbidden, -what there is no room for."""
    k = tables.ops[o, WATCHER]
    slot = VALUES + tables.shape[STORED_VALUES] + k
    if tables.ops[o, RESETS]:
        made[slot] = NO_SET
        return 1
    kind, states, mine = tables.watchers[k, KIND], tables.shape[STATES], tables.ops[o, OP_MARKS]
    source = row[slot]
    if tables.ops[o, STARTS]:
        source = np.int64(NO_SET) if kind == PLAIN else watching.common[part, k]
    n, completes, no = np.int64(0), False, np.int64(0)
    if source >= 0:
        for r in range(sets.begin[source], sets.begin[source] + sets.size[source]):
            so_far = np.int64(BETTER) if tables.ops[o, STARTS] else sets.rows[r, STATE] // states
            n, done = advance(sets.rows[r], so_far, kind, mine, no, n, i, events, tables, code, watching)
            completes |= done
            if n < 0:
                return -MORE_SCRATCH
    if tables.ops[o, SPAWNS]:
        fresh = scratch.start[scratch.start.shape[0] - 1]
        spawned(k, row, fresh, tables)
        so_far = np.int64(WORSE if kind == PLAIN or not tables.ops[o, STARTS] else SAME)
        n, done = advance(fresh, so_far, kind, mine, no, n, i, events, tables, code, watching)
        completes |= done
        if n < 0:
            return -MORE_SCRATCH
    if completes and tables.ops[o, FORBIDS]:
        return 0
    found = gathered(n, sets, watching)
    if found == -MORE_SETS:
        return found
    made[slot] = found
    return 1


@inner
def watch(x: int, row: Longs, made: Longs, part: int, i: int, events: Events, tables: Tables, sets: Sets,
          scratch: Scratch, code: Code | None, watching: Watching) -> int:  # fmt: skip
    """Carry the watched sets of a row over transition x; 1, 0 if the step is forbidden, -what there is no room for."""
    for o in range(tables.t[x, OPS], tables.t[x, OPS_END]):
        done = operate(o, row, made, part, i, events, tables, sets, scratch, code, watching)
        if done != 1:
            return done
    actions = tables.actions[tables.t[x, ACTIONS]]
    stored = tables.shape[STORED_VALUES]
    for k in range(stored, stored + tables.shape[WATCHERS]):
        if actions[k] != KEEP:
            made[VALUES + k] = NO_SET
    return 1


@inner
def advance_common(part: int, i: int, events: Events, tables: Tables, sets: Sets, scratch: Scratch,
                   code: Code | None, watching: Watching) -> int:  # fmt: skip
    """What becomes of the partition's common sets, in watching.following; `DONE`, or what there is no room for."""
    watchers = tables.shape[WATCHERS]
    for k in range(watchers + 1):
        watching.following[k] = NO_SET
        if (k < watchers and tables.watchers[k, KIND] == PLAIN) or (k == watchers and not tables.shape[LATE]):
            continue
        early, plain = np.int64(k == watchers), np.int64(PLAIN)
        fresh = scratch.start[scratch.start.shape[0] - 1]
        if early:
            fresh[:] = 0
            fresh[VALUES + tables.shape[STORED_VALUES] :] = NO_SET
            fresh[STATE] = tables.shape[INITIAL]
        else:
            spawned(k, fresh, fresh, tables)
        n, _ = advance(fresh, plain, plain, plain, early, np.int64(0), i, events, tables, code, watching)
        source = watching.common[part, k]
        if source >= 0 and n >= 0:
            for r in range(sets.begin[source], sets.begin[source] + sets.size[source]):
                n, _ = advance(sets.rows[r], plain, plain, plain, early, n, i, events, tables, code, watching)
                if n < 0:
                    break
        if n < 0:
            return MORE_SCRATCH
        found = gathered(n, sets, watching)
        if found == -MORE_SETS:
            return MORE_SETS
        watching.following[k] = found
    return DONE
