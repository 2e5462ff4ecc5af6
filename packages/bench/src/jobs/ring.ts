// From `call.invite` to `call.ringing`, one call after another; each is cancelled and seen off before the next.
import type { Client, Pair } from '../dialects/dialect.ts'
import { members } from '../dialects/dialect.ts'
import { nextEvent } from '../dialects/ringwire.ts'
import { loadBetween, readLoad } from '../proc.ts'
import { LatencyHistogram } from '../statistics.ts'
import { dialectOf } from '../systems.ts'
import { stayAwake } from './awake.ts'
import { closeClients, openPairs, within } from './clients.ts'
import { type Prepared, plainResult, type Result, type RingJob, type Shape, type Target } from './job.ts'

const WITHIN_MS = 20_000

export async function prepareRing({ target, pair, spread }: RingJob): Promise<Prepared> {
  const opening = openPairs(dialectOf(target.system), target, pair, 1, spread)
  const [{ caller, callee }] = (await within(WITHIN_MS, 'Connecting', opening)) as [Pair]
  return {
    run: (shape) => ringAgain(caller, callee, target, shape),
    release: () => closeClients([caller, callee]),
  }
}

/** One call after another, for as long as a run lasts. */
export async function ringAgain(
  caller: Client,
  callee: Client,
  target: Target,
  { warmupMs, measureMs }: Pick<Shape, 'warmupMs' | 'measureMs'>,
): Promise<Result> {
  const latencies = new LatencyHistogram()
  const awake = stayAwake()
  const ringFor = async (ms: number) => {
    const until = performance.now() + ms
    for (; performance.now() < until; calls++) latencies.record(await ring(caller, callee))
  }
  let calls = 0
  await within(WITHIN_MS + warmupMs, 'Ringing', ringFor(warmupMs))
  latencies.clear()
  calls = 0
  const before = readLoad(target.pid, target.core)
  await within(WITHIN_MS + measureMs, 'Ringing', ringFor(measureMs))
  const load = loadBetween(before, readLoad(target.pid, target.core))
  awake.stop()
  return { ...plainResult(calls, load), latencies: latencies.counts() }
}

/** Nanoseconds until the callee heard of the call. */
async function ring(caller: Client, callee: Client): Promise<number> {
  const invite = { callee_user_id: callee.id, callee_role: 'callee' }
  const before = Bun.nanoseconds()
  caller.socket.send(JSON.stringify({ event: 'call.invite', data: invite }))
  const { data } = await nextEvent(callee, 'call.ringing')
  const nanoseconds = Bun.nanoseconds() - before
  const call = { call_uuid: members(data).call_uuid }
  caller.socket.send(JSON.stringify({ event: 'call.cancel', data: call }))
  const { data: told } = await nextEvent(callee, 'call.cancelled')
  if (members(told).call_uuid !== call.call_uuid) throw new Error('Another call was cancelled')
  return nanoseconds
}
