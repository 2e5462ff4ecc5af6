import { ageBounds, type ProcessPresent, type Status } from '../observability/status.ts'
import type { MaybePromise } from '../ports/maybe.ts'
import { idOf } from '../ports/node-name.ts'
import { everyMs, type Samples } from './samples.ts'
import { absenceTroubles } from './troubles.ts'

export interface NowOptions {
  readonly status: Status
  readonly samples: Samples
  readonly now: () => number
}

/** How long the page waits for a slow store or worker before it shows what was said last, in ms. */
const waitMs = 10
/** How old that may be, in ms. The page asks every two seconds. */
const keptMs = 10_000

/** Makes the first view of the operator's page [ADM2] from what is counted already, so its cost does not grow with the sockets. */
export function createNow({ status, samples, now }: NowOptions) {
  const presentSoon = answeredSoon(() => status.present(), now)
  const healthSoon = answeredSoon(() => status.ready(), now)

  /** `since`: points of the charts that the page has already, in ms since the epoch. */
  return async (since: number) => {
    const [present, { body }] = await Promise.all([presentSoon(), healthSoon()])
    return {
      at: new Date(now()).toISOString(),
      health: body,
      troubles: absenceTroubles(present),
      nodes: nodesOf(present),
      connections: present.reduce((sum, { sockets }) => sum + sockets, 0),
      calls: callsOf(present),
      recent: samples.recent(),
      every_ms: everyMs,
      points: samples.after(since),
    }
  }
}

/** Asks. A slow answer does not hold up the page if there is a recent one: then the page gets the recent one. */
function answeredSoon<T>(ask: () => MaybePromise<T>, now: () => number): () => Promise<T> {
  let last: { readonly answer: T; readonly at: number } | undefined

  async function asked(): Promise<T> {
    const answer = await ask()
    last = { answer, at: now() }
    return answer
  }

  return async () => {
    const recent = last !== undefined && now() - last.at <= keptMs ? last : undefined
    const answer = asked()
    if (recent === undefined) return answer
    const { promise: late, resolve } = Promise.withResolvers<T>()
    const timer = setTimeout(resolve, waitMs, recent.answer)
    return Promise.race([answer, late]).finally(() => clearTimeout(timer))
  }
}

/** The processes of this machine, and those that they know. A process that was started again under the same name is another one. */
function nodesOf(present: readonly ProcessPresent[]) {
  const others = present.flatMap(({ others }) => others).map((node) => ({ ...node, isHere: false }))
  const here = present.map((node) => ({ ...node, isHere: true }))
  return [...new Map([...others, ...here].map((node) => [node.node, node])).values()]
    .map(({ node, sockets, isHere }) => ({ node: idOf(node), sockets, is_here: isHere }))
    .sort((a, b) => (a.node < b.node ? -1 : 1))
}

function callsOf(present: readonly ProcessPresent[]) {
  const sum = (status: keyof ProcessPresent['calls']) => {
    const ages = present.map(({ calls }) => calls[status])
    return Array.from({ length: ageBounds.length + 1 }, (_, i) => ages.reduce((all, one) => all + (one[i] ?? 0), 0))
  }
  return {
    age_bounds_s: ageBounds,
    ringing: sum('ringing'),
    accepted: sum('accepted'),
    connected: sum('connected'),
  }
}
