// From `call.invite` to the request at the push service: the callees are registered there, and not connected.
import { createECDH, randomBytes } from 'node:crypto'
import { participantId } from '../candidate.ts'
import type { Client } from '../dialects/dialect.ts'
import { members } from '../dialects/dialect.ts'
import { nextEvent, ringwire } from '../dialects/ringwire.ts'
import { loadBetween, readLoad } from '../proc.ts'
import { mintTokens } from '../tokens.ts'
import { atATime, closeClients, openClient, within } from './clients.ts'
import { type Prepared, plainResult, type WakeJob } from './job.ts'
import { paceOf } from './pace.ts'

const WITHIN_MS = 60_000
const DEVICE = 'phone'

export async function prepareWake(job: WakeJob): Promise<Prepared> {
  const numbers = Array.from({ length: job.pairs }, (_, i) => i)
  const [callerIds, calleeIds] = (['caller', 'callee'] as const).map((side) =>
    numbers.map((i) => participantId(i, side)),
  ) as [string[], string[]]
  const { port } = job.target
  const callers: Client[] = []
  await within(WITHIN_MS, 'Connecting', registerAll(job, calleeIds))
  const credentials = await mintTokens(port, callerIds)
  await atATime(job.pairs, 32, async (i) => {
    callers[i] = await openClient(ringwire, port, callerIds[i]!, credentials[i]!)
  })
  return {
    async run({ measureMs }) {
      const samples: number[] = []
      const pace = paceOf(job.perSecond)
      const rounds = Math.ceil(((measureMs / 1000) * job.perSecond) / job.pairs)
      const before = readLoad(job.target.pid, job.target.core)
      const lanes = callers.map(async (caller, lane) => {
        for (let i = 0; i < rounds; i++) {
          await pace(lane + i * callers.length)
          samples.push(await wake(caller, calleeIds[lane]!, job.receiver))
        }
      })
      await within(WITHIN_MS + measureMs, 'Waking', Promise.all(lanes))
      const load = loadBetween(before, readLoad(job.target.pid, job.target.core))
      return { ...plainResult(samples.length, load), samples }
    },
    release: () => closeClients(callers),
  }
}

/** Each with a device that a browser would have: its own keys, at an address of its own. */
async function registerAll({ target: { port }, receiver }: WakeJob, ids: readonly string[]): Promise<void> {
  const tokens = await mintTokens(port, ids, DEVICE)
  await atATime(ids.length, 32, async (i) => {
    const p256dh = createECDH('prime256v1').generateKeys().toString('base64url')
    const keys = { p256dh, auth: randomBytes(16).toString('base64url') }
    const response = await fetch(`http://127.0.0.1:${port}/v1/call/device`, {
      method: 'PUT',
      headers: { Authorization: `Bearer ${tokens[i]}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ platform: 'webpush', subscription: { endpoint: `${receiver}/push/${ids[i]}`, keys } }),
    })
    if (!response.ok) throw new Error(`A device was answered ${response.status}: ${await response.text()}`)
  })
}

/** Microseconds from the invite to the push, by the clock of the machine; the call is cancelled before the next. */
async function wake(caller: Client, calleeId: string, receiver: string): Promise<number> {
  const before = performance.timeOrigin + performance.now()
  const data = { callee_user_id: calleeId, callee_role: 'callee' }
  caller.socket.send(JSON.stringify({ event: 'call.invite', data }))
  const callUuid = String(members((await nextEvent(caller, 'call.invited')).data).call_uuid)
  const answer = await fetch(`${receiver}/pushes/${callUuid.replaceAll('-', '')}`)
  const { at } = (await answer.json()) as { at: number }
  caller.socket.send(JSON.stringify({ event: 'call.cancel', data: { call_uuid: callUuid } }))
  return Math.round((at - before) * 1000)
}
