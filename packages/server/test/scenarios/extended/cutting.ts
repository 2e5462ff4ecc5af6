import { describe, expect, test } from 'bun:test'
import { someone } from '@ringwire/testkit/flows'
import { isLong } from '@ringwire/testkit/long'
import type { Service } from '@ringwire/testkit/service'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import { check } from '../../support/extended-check.ts'
import type { Start } from '../calls/composition.ts'
import { type Cuts, startCuts } from './cuts.ts'
import { Phone, type Plan } from './phones.ts'
import { createRandom, type Random } from './random.ts'

/** Calls that go from the invite to the end, calls that end while they ring, and who makes them. */
const size = { calls: isLong ? 1_000 : 120, short: isLong ? 100 : 40, callers: 30, callees: 30 } as const
type CuttingSize = typeof size

/** A bound for failures, never a pace. */
const limitMs = 600_000

/** Sixty clients talk while every connection is cut again and again: nothing is lost, doubled or out of order. */
export function registerCutting(name: string, start: Start): void {
  describe(`connections that are cut, ${name}`, () => {
    test(
      '[EXT1] [EXT2] [EXT3] [EXT4] [RES1] nothing is lost, doubled or out of order, and everybody agrees on how calls ended',
      async () => {
        const seed = Number(process.env.RINGWIRE_TEST_SEED ?? crypto.getRandomValues(new Uint32Array(1))[0])
        console.log(`RINGWIRE_TEST_SEED=${seed}`)
        const service = await start({
          // The service finds dead sockets within seconds, so that it does so in this test.
          ...{ RINGWIRE_PING_INTERVAL_MS: '2000', RINGWIRE_PONG_TIMEOUT_MS: '1500' },
          // No call ends because its phones waited for a core.
          ...{ RINGWIRE_RING_TIMEOUT_MS: '120000', RINGWIRE_CALLER_LOST_MS: '120000', RINGWIRE_PEER_LOST_MS: '240000' },
        })
        const proxy = await new TcpProxy(() => service.nextUrl()).start()
        try {
          await checkCutting(service, proxy, createRandom(seed), size)
        } finally {
          proxy.stop()
          await service.dispose()
        }
      },
      limitMs,
    )
  })
}

async function checkCutting(service: Service, proxy: TcpProxy, random: Random, size: CuttingSize): Promise<void> {
  const plans = new Map<string, Plan>()
  const phone = async (role: string) => {
    const userId = someone(role)
    const token = await service.token({ user_id: userId, role })
    return new Phone({ userId, url: proxy.url, token, plans, random })
  }
  const callers = await Promise.all(Array.from({ length: size.callers }, () => phone('customer')))
  const callees = await Promise.all(Array.from({ length: size.callees }, () => phone('agent')))
  const phones = [...callers, ...callees]
  await Promise.all(phones.map(({ client }) => client.connect()))

  const began = performance.now()
  const cuts = startCuts(proxy, phones, random)
  const todo = createPlans(size, random)
  for (const plan of todo) plans.set(plan.callUuid, plan)
  try {
    await Promise.all(callers.map((caller) => callOneAfterAnother(caller, callees, todo, random)))
    await Promise.all(callees.map((callee) => callee.quiet()))
  } finally {
    cuts.stop()
    report(size, phones, cuts, performance.now() - began)
  }
  await Promise.all(phones.map(({ client }) => client.settle()))
  for (const { client } of phones) client.stop()

  const { findings } = check(phones.map(({ client }) => client.trace))
  expect(findings).toEqual({ lost: [], doubled: [], outOfOrder: [], seq: [], replies: [], order: [], notRecovered: [] })
  await checkEnds(service, callers, callees, [...plans.values()])
}

/** Each caller takes the next call as soon as it is free; it never calls somebody twice at once. */
async function callOneAfterAnother(caller: Phone, callees: readonly Phone[], todo: Plan[], random: Random) {
  for (let plan = todo.pop(); plan !== undefined; plan = todo.pop()) {
    await caller.call(random.pick(callees).userId, plan)
  }
}

function createPlans({ calls, short }: CuttingSize, random: Random): Plan[] {
  const plan = (kind: Plan['kind']): Plan => ({
    callUuid: crypto.randomUUID(),
    kind,
    endedBy: random.pick(['caller', 'callee', 'both']),
    candidates: { caller: random.between(20, 24), callee: random.between(20, 24) },
  })
  const whole = Array.from({ length: calls }, () => plan('whole'))
  const others = Array.from({ length: short }, (_, n) => plan(n % 2 === 0 ? 'rejected' : 'cancelled'))
  return [...whole, ...others].sort((a, b) => (a.callUuid < b.callUuid ? -1 : 1))
}

/** Both peers and the history of both say the same about every call. */
async function checkEnds(
  service: Service,
  callers: readonly Phone[],
  callees: readonly Phone[],
  plans: readonly Plan[],
): Promise<void> {
  const records = new Map<string, string[]>()
  const add = (callUuid: string, end: string) => records.set(callUuid, [...(records.get(callUuid) ?? []), end])
  for (const [role, people] of [
    ['customer', callers],
    ['agent', callees],
  ] as const) {
    for (const { userId, views } of people) {
      for (const [callUuid, { status, reason }] of views) add(callUuid, `${status} ${reason}`)
      for (const record of await historyOf(service, { user_id: userId, role })) {
        add(record.call_uuid, `${record.status} ${record.end_reason}`)
      }
    }
  }
  const disagreements = plans.filter(({ callUuid, kind }) => {
    const said = records.get(callUuid) ?? []
    // A call that is cancelled at once may never have rung: nobody was there.
    const isComplete = said.length === 4 || (kind === 'cancelled' && said.length === 3)
    return !isComplete || new Set(said).size !== 1
  })
  expect(disagreements.map(({ callUuid }) => [callUuid, records.get(callUuid)])).toEqual([])
  expect(records.size).toBe(plans.length)
}

async function historyOf(service: Service, wish: { user_id: string; role: string }) {
  const token = await service.token(wish)
  const records: { call_uuid: string; status: string; end_reason: string }[] = []
  let cursor: string | null | undefined = ''
  while (typeof cursor === 'string') {
    const page = await service.history(token, `?limit=100${cursor === '' ? '' : `&cursor=${cursor}`}`)
    records.push(...page.data)
    cursor = page.next_cursor
  }
  return records
}

function report(size: CuttingSize, phones: readonly Phone[], cuts: Cuts, ms: number): void {
  const { counts, findings } = check(phones.map(({ client }) => client.trace))
  const { lost, doubled, outOfOrder, notRecovered } = findings
  console.log(
    JSON.stringify({
      calls: size.calls,
      shortCalls: size.short,
      clients: phones.length,
      seconds: Math.round(ms / 100) / 10,
      cuts: cuts.counts,
      ...counts,
      lost: lost.length,
      doubled: doubled.length,
      outOfOrder: outOfOrder.length,
      notRecovered: notRecovered.length,
    }),
  )
}
