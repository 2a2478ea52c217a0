"""The sets of configurations that a run carries along: see `automaton.automaton`.

A watched set is a set of rows like any other. A strategy's rows also say, in their state, how their run compares so far
with the run that carries them: `WORSE`, `ALIKE` or `BETTER`. Besides, every partition has *common* sets: for each
strategy all runs begun so far from any start, and the runs that have not marked anything yet (`EARLY` transitions).

A watched row may carry watched sets of its own, for which `Watching` has room level by level. One kernel, `operate`,
calls itself for them; it has to be a single one, because Numba crashes when it loads kernels from disk that call each
other.

Invariant: a watched set holds exactly the configurations of the watched pattern's runs since it was opened; for a
strategy, only those that may still turn out better.
"""

import numpy as np

from cerite.automaton.automaton import LAST, NEXT, OTHERS, PLAIN
from cerite.core.arrays import Longs
from cerite.core.jit import inlined, inner
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
    Configurations,
    Moment,
    Sets,
    Tables,
    Watching,
)  # fmt: skip
from cerite.engine.registers.sets import NO_SET, enabled, follow, intern, place, same_row
from cerite.engine.registers.tables import ACTIONS, EARLY, KEEP, MARKS, OPS, OPS_END, TARGET
from cerite.engine.state.cursor import Stop

WORSE, ALIKE, BETTER, GONE = range(4)
WATCHED_KIND, ENTRY, LIVE, BEGUN_BEFORE, AROUND = range(5)


@inner
def compared_now(kind: int, so_far: int, marks: int, mine: int) -> int:
    """How a watched run compares after an event that it marks or not, and that the run carrying it marks or not."""
    if kind in (PLAIN, OTHERS) or marks == mine:
        return so_far
    if kind == LAST:
        return BETTER if marks else WORSE
    if kind == NEXT:
        return BETTER if so_far == BETTER or marks else GONE
    return BETTER if marks else GONE  # MAX: a run that lacks what the other has never contains it


@inner
def beside_others(row: Longs, part: int, tables: Tables, watching: Watching) -> None:
    """Give a row in which nothing is bound the runs that began before it, which all rows of the partition share."""
    first = VALUES + tables.shape[STORED_VALUES]
    for k in range(tables.shape[WATCHERS]):
        if tables.watchers[k, WATCHED_KIND] == OTHERS:
            row[first + k] = watching.common[part, k]


@inner
def spawned(k: int, row: Longs, fresh: Longs, part: int, tables: Tables, watching: Watching) -> None:
    """Write the configuration in which watcher k begins, within a row, to `fresh` (`Machine.opening`)."""
    stored = tables.shape[STORED_VALUES]
    actions = tables.actions[tables.watchers[k, LIVE]]
    fresh[:] = 0
    fresh[VALUES + stored :] = NO_SET
    fresh[STATE] = tables.watchers[k, ENTRY]
    if not tables.watchers[k, AROUND]:
        beside_others(fresh, part, tables, watching)
        return
    for s in range(stored):
        if actions[s] == KEEP:
            fresh[VALUES + s] = row[VALUES + s]
            fresh[FLAGS] |= row[FLAGS] & (np.int64(3) << 2 * s)
    for s in range(stored, stored + tables.shape[WATCHERS]):
        if actions[s] == KEEP:
            fresh[VALUES + s] = row[VALUES + s]


@inner
def gathered(level: int, n: int, sets: Sets, watching: Watching) -> int:
    """The number of the set of a level's rows; `NO_SET` if there are none, -`MORE_SETS` without room."""
    rows, order = watching.rows[level], watching.order[level]
    distinct = np.int64(0)
    for at in range(n):
        r = order[at]
        if distinct == 0 or not same_row(rows, r, rows, order[distinct - 1]):
            order[distinct] = r
            distinct += 1
    if distinct == 0:
        return NO_SET
    number = intern(rows, order, np.int64(0), distinct, np.int64(-1), sets)
    return number if number >= 0 else -Stop.MORE_SETS


@inlined
def advance(level: int, row: Longs, so_far: int, kind: int, mine: int, early: int, n: int, now: Moment,
            configs: Configurations, code: Code | None, watching: Watching) -> tuple[int, bool]:  # fmt: skip
    """Add the rows reached from a watched row: how many there are now, or -what is missing; and whether one completes.

    With `early`, only runs that have marked nothing yet.
    """
    tables, completes = configs.tables, False
    states = tables.shape[STATES]
    q = row[STATE] % states
    for x in range(tables.first[q], tables.first[q + 1]):
        if early and not tables.t[x, EARLY]:
            continue
        if not enabled(x, row, now.i, now.events, tables, code):
            continue
        rank = compared_now(kind, so_far, tables.t[x, MARKS], mine)
        if rank == GONE:
            continue
        if n == watching.label.size:
            n = np.int64(-Stop.MORE_SCRATCH)
            break
        to = watching.rows[level, n]
        follow(x, row, to, now.i, now.events, tables)
        possible = carry(level + 1, x, row, to, now, configs, code, watching)
        if possible < 0:
            n = np.int64(possible)
            break
        if not possible:
            continue
        if tables.t[x, TARGET] == tables.shape[FINAL]:
            completes |= kind == PLAIN or rank == BETTER
            continue
        to[STATE] += rank * states
        place(n, watching.rows[level], watching.label, watching.order[level])
        n += 1
    return n, completes


@inlined
def carry(level: int, x: int, row: Longs, to: Longs, now: Moment, configs: Configurations, code: Code | None,
          watching: Watching) -> int:  # fmt: skip
    """Carry the watched sets of a row over transition x: 1, or 0 if the step is forbidden, or -what lacks room."""
    tables, done = configs.tables, np.int64(1)
    for o in range(tables.t[x, OPS], tables.t[x, OPS_END]):
        done = np.int64(operate(level, o, row, to, now, configs, code, watching))
        if done != 1:
            break
    if done == 1 and tables.t[x, OPS] < tables.t[x, OPS_END]:
        actions = tables.actions[tables.t[x, ACTIONS]]
        stored = tables.shape[STORED_VALUES]
        for k in range(stored, stored + tables.shape[WATCHERS]):
            if actions[k] != KEEP:
                to[VALUES + k] = NO_SET
    return done


@inner
def operate(level: int, o: int, row: Longs, to: Longs, now: Moment, configs: Configurations, code: Code | None,
            watching: Watching) -> int:  # fmt: skip
    """Do one op: 1 if the step is possible, 0 if it is forbidden, -what lacks room."""
    tables, sets, part = configs.tables, configs.sets, now.part
    k = tables.ops[o, WATCHER]
    first = VALUES + tables.shape[STORED_VALUES]
    if tables.ops[o, RESETS]:
        to[first + k] = NO_SET
        return np.int64(1)
    kind, states, mine = tables.watchers[k, WATCHED_KIND], tables.shape[STATES], tables.ops[o, OP_MARKS]
    source, starts = row[first + k], tables.ops[o, STARTS]
    if starts:
        others = tables.watchers[k, BEGUN_BEFORE]
        source = np.int64(NO_SET) if kind == PLAIN else watching.common[part, k]
        source = row[first + others] if others >= 0 else source
    begin, count = (sets.begin[source], sets.size[source]) if source >= 0 else (np.int64(0), np.int64(0))
    fresh = watching.fresh[level]
    if tables.ops[o, SPAWNS]:
        spawned(k, row, fresh, part, tables, watching)
    n, completes, no = np.int64(0), False, np.int64(0)
    for r in range(begin, begin + count + tables.ops[o, SPAWNS]):
        begun = r < begin + count
        watched = sets.rows[r] if begun else fresh
        so_far = np.int64(WORSE)
        if begun:
            so_far = np.int64(BETTER) if starts else watched[STATE] // states
        elif kind != PLAIN and starts:
            so_far = np.int64(ALIKE)
        n, done = advance(level, watched, so_far, kind, mine, no, n, now, configs, code, watching)
        completes |= done
        if n < 0:
            return n
    if completes and tables.ops[o, FORBIDS]:
        return np.int64(0)
    number = gathered(level, n, sets, watching)
    if number == -Stop.MORE_SETS:
        return np.int64(number)
    to[first + k] = number
    return np.int64(1)


@inner
def watch(x: int, row: Longs, to: Longs, now: Moment, configs: Configurations, code: Code | None,
          watching: Watching) -> int:  # fmt: skip
    """`carry` for the row of a run, which is inside nothing that is watched."""
    return carry(np.int64(0), x, row, to, now, configs, code, watching)


@inner
def advance_common(now: Moment, configs: Configurations, code: Code | None, watching: Watching) -> int:
    """Write what becomes of the partition's common sets to watching.following; `DONE`, or what lacks room."""
    tables, sets, part = configs.tables, configs.sets, now.part
    watchers, top = tables.shape[WATCHERS], np.int64(0)
    fresh = watching.fresh[top]
    for k in range(watchers + 1):
        watching.following[k] = NO_SET
        if k < watchers and (tables.watchers[k, WATCHED_KIND] == PLAIN or tables.watchers[k, BEGUN_BEFORE] >= 0):
            continue
        if k == watchers and not tables.shape[LATE]:
            continue
        early, plain, n = np.int64(k == watchers), np.int64(PLAIN), np.int64(0)
        fresh[:] = 0
        fresh[VALUES + tables.shape[STORED_VALUES] :] = NO_SET
        fresh[STATE] = tables.shape[INITIAL] if early else tables.watchers[k, ENTRY]
        beside_others(fresh, part, tables, watching)
        source = watching.common[part, k]
        begin, count = (sets.begin[source], sets.size[source]) if source >= 0 else (np.int64(0), np.int64(0))
        for r in range(begin, begin + count + 1):
            watched = sets.rows[r] if r < begin + count else fresh
            n, _ = advance(top, watched, plain, plain, plain, early, n, now, configs, code, watching)
            if n < 0:
                return -n
        number = gathered(top, n, sets, watching)
        if number == -Stop.MORE_SETS:
            return Stop.MORE_SETS
        watching.following[k] = number
    return Stop.DONE
