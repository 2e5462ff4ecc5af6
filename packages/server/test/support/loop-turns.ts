import type { SqliteMeter, SqliteWork } from './sqlite-work.ts'

/** What SQLite did in one turn of the event loop, and what went on then. */
export interface Turn extends SqliteWork {
  readonly during: string
}

export interface LoopTurns {
  /** What follows is counted under this name. */
  name(during: string): void
  /** The turns with the most steps and with the most rows under each name. */
  worst(): readonly Turn[]
  /** Turns in which a statement ran that may write. */
  writing(): readonly Turn[]
  stop(): void
}

/** Looks once in each turn of the event loop what SQLite did since the turn before. */
export function watchTurns(meter: SqliteMeter): LoopTurns {
  const mostSteps = new Map<string, Turn>()
  const mostRows = new Map<string, Turn>()
  const writing: Turn[] = []
  let during = ''
  let isOver = false

  function look(): void {
    const work = meter.take()
    if (work.writes > 0) writing.push({ during, ...work })
    if (work.steps > (mostSteps.get(during)?.steps ?? 0)) mostSteps.set(during, { during, ...work })
    if (work.rows > (mostRows.get(during)?.rows ?? 0)) mostRows.set(during, { during, ...work })
  }

  function turn(): void {
    look()
    if (!isOver) setImmediate(turn)
  }
  // Drops what SQLite did before.
  meter.take()
  turn()

  return {
    name(next) {
      look()
      during = next
    },
    writing: () => writing,
    worst: () => [...new Set([...mostSteps.values(), ...mostRows.values()])].sort((a, b) => b.steps - a.steps),
    stop() {
      isOver = true
    },
  }
}

/** The same ports. Each operation is named in its own turns. */
export function inTurns<T extends object>(ports: T, turns: LoopTurns, path = ''): T {
  return new Proxy(ports, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key)
      if (typeof value === 'object' && value !== null) return inTurns(value, turns, `${path}${String(key)}.`)
      if (typeof value !== 'function') return value
      return (...args: unknown[]) => {
        const name = `${path}${String(key)}`
        turns.name(name)
        const answer: unknown = value.apply(target, args)
        return isIterable(answer) ? iterated(answer, turns, name) : settled(answer, turns)
      }
    },
  })
}

const isIterable = (answer: unknown): answer is AsyncIterable<unknown> =>
  typeof answer === 'object' && answer !== null && Symbol.asyncIterator in answer

async function settled(answer: unknown, turns: LoopTurns): Promise<unknown> {
  try {
    return await answer
  } finally {
    turns.name('between')
    await new Promise((resolve) => setImmediate(resolve))
  }
}

async function* iterated(answer: AsyncIterable<unknown>, turns: LoopTurns, name: string): AsyncGenerator<unknown> {
  for await (const item of answer) {
    yield item
    turns.name(name)
  }
  await settled(undefined, turns)
}
