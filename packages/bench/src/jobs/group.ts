// From `call.invite` of a group to `call.ringing` at each of its members; then the call is cancelled, and all have heard that.
import { participantId } from '../candidate.ts'
import type { Client } from '../dialects/dialect.ts'
import { members } from '../dialects/dialect.ts'
import { nextEvent, ringwire } from '../dialects/ringwire.ts'
import { loadBetween, readLoad } from '../proc.ts'
import { mintTokens, productKey } from '../tokens.ts'
import { atATime, closeClients, openClient, within } from './clients.ts'
import { type GroupJob, type Prepared, plainResult } from './job.ts'

const WITHIN_MS = 60_000
const GROUP = 'bench'

export async function prepareGroup({ target, size }: GroupJob): Promise<Prepared> {
  const ports = [target.port, ...(target.morePorts ?? [])]
  const callerId = participantId(0, 'caller')
  const calleeIds = Array.from({ length: size }, (_, i) => participantId(i, 'callee'))
  const ids = [callerId, ...calleeIds]
  const clients: Client[] = []
  await within(WITHIN_MS, 'Connecting', connect())
  const [caller, ...callees] = clients as [Client, ...Client[]]

  async function connect(): Promise<void> {
    await putGroup(target.port, calleeIds)
    const credentials = await mintTokens(target.port, ids)
    await atATime(ids.length, 32, async (i) => {
      clients[i] = await openClient(ringwire, ports[i % ports.length]!, ids[i]!, credentials[i]!)
    })
  }

  return {
    async run() {
      const before = readLoad(target.pid, null)
      const samples = await within(WITHIN_MS, 'Ringing', ring(caller, callees))
      const load = loadBetween(before, readLoad(target.pid, null))
      return { ...plainResult(samples.length, load), samples }
    },
    release: () => closeClients(clients),
  }
}

async function putGroup(port: number, ids: readonly string[]): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}/v1/server/groups/callee/${GROUP}`, {
    method: 'PUT',
    headers: {
      'X-SVC-Product-Key-ID': productKey.id,
      'X-SVC-Product-Secret': productKey.secret,
      'Content-Type': 'application/json',
    },
    body: JSON.stringify({ members: ids, strategy: 'all' }),
  })
  if (!response.ok) throw new Error(`A group was answered ${response.status}: ${await response.text()}`)
}

/** Microseconds until each member heard `call.ringing`. */
async function ring(caller: Client, callees: readonly Client[]): Promise<number[]> {
  const told = async (event: string) =>
    Promise.all(
      callees.map(async (callee) => {
        const { data } = await nextEvent(callee, event)
        return { at: Bun.nanoseconds(), call_uuid: members(data).call_uuid }
      }),
    )
  const before = Bun.nanoseconds()
  caller.socket.send(JSON.stringify({ event: 'call.invite', data: { callee_group: GROUP, callee_role: 'callee' } }))
  const rings = await told('call.ringing')
  const { data } = await nextEvent(caller, 'call.invited')
  const { call_uuid } = members(data)
  if (rings.some((each) => each.call_uuid !== call_uuid)) throw new Error('Another call rang')
  caller.socket.send(JSON.stringify({ event: 'call.cancel', data: { call_uuid } }))
  await told('call.cancelled')
  return rings.map(({ at }) => Math.floor((at - before) / 1000))
}
