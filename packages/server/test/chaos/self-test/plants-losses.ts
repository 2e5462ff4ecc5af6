import { type Draft, firstOf, isPush, isResume, missed, missedApart, refuse, reset, type Spot, spots } from './draft.ts'
import type { Plant } from './plant.ts'

/** How long a fault of these runs may show itself, in ms. */
const aftermathMs = 4_000

/** What came of that kind while a fault lasted, or soon after; nothing that takes logs away is near. */
function during(draft: Draft, kind: string, fits: (spot: Spot) => boolean): Spot {
  const { from, until } = firstOf(
    draft.header.faults.filter((fault) => fault.kind === kind),
    kind,
  )
  const found = spots(draft, 'in', fits).filter(({ at }) => at > from && at < until + aftermathMs)
  return firstOf(found, `such a frame after ${kind}`)
}

/** `session.reset` after a push. */
function begin(draft: Draft, spot: Spot) {
  reset(spot, draft)
  return { user: spot.trace.user, at: spot.at }
}

export const plantsInLosses: readonly Plant[] = [
  {
    name: 'recovered: false after PostgreSQL was killed',
    kind: 'resume',
    plant: (draft) => refuse(during(draft, 'PostgreSQL killed', isResume)),
  },
  ...(['node killed', 'node terminated'] as const).flatMap((kind): Plant[] => [
    {
      name: `recovered: false, ${kind}, and its log in Redis`,
      kind: 'resume',
      recording: 'several',
      plant: (draft) => refuse(during(draft, kind, isResume)),
    },
    {
      name: `session.reset, ${kind}, and its log in Redis`,
      kind: 'resume',
      recording: 'several',
      plant: (draft) => begin(draft, during(draft, kind, isPush)),
    },
  ]),
  {
    name: 'session.reset twice after one loss',
    kind: 'resume',
    recording: 'several',
    plant: (draft) =>
      begin(
        draft,
        during(draft, 'Redis killed', ({ frame }) => frame.event === 'session.reset'),
      ),
  },
  {
    name: "session.reset after somebody else's log was evicted",
    kind: 'resume',
    recording: 'several',
    plant(draft) {
      const spot = during(draft, 'node killed', isPush)
      const evicted = { key: 'log', user: 'somebody else' }
      draft.header.faults.push({ kind: 'keys evicted', target: 'Redis', from: spot.at - 100, until: spot.at, evicted })
      return begin(draft, spot)
    },
  },
  {
    name: 'recovered: false, and less was missed than a log keeps',
    kind: 'resume',
    recording: 'several',
    plant: (draft) => refuse(missed(draft, 20)),
  },
  {
    name: 'recovered: false, and less was missed than a log keeps, from a base client',
    kind: 'resume',
    recording: 'several',
    plant: (draft) => refuse(missedApart(draft, 20)),
  },
  {
    name: 'recovered: true, and another session',
    kind: 'protocol',
    plant(draft) {
      const { frame, trace } = firstOf(spots(draft, 'in', isResume), 'resume')
      frame.data = { ...frame.data, session_id: 'another' }
      return { user: trace.user }
    },
  },
]
