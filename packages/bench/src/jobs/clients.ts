// Opening and closing many clients at once.
import { participantId, SIDES } from '../candidate.ts'
import type { Client, Dialect, Pair } from '../dialects/dialect.ts'
import { FrameSocket } from '../frame-socket.ts'
import type { Spread, Target } from './job.ts'

/** Runs `work` for 0 … count−1, so many at a time; the first failure ends it. */
export async function atATime(count: number, limit: number, work: (i: number) => Promise<void>): Promise<void> {
  let next = 0
  const worker = async () => {
    while (next < count) await work(next++)
  }
  await Promise.all(Array.from({ length: Math.min(limit, count) }, worker))
}

/** Fails instead of waiting for ever when a server leaves a client without its answer. */
export async function within<T>(ms: number, what: string, promise: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`${what}: not done after ${ms / 1000} s`)), ms)
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

export async function openClient(dialect: Dialect, port: number, id: string, credential: string): Promise<Client> {
  const request = dialect.upgradeRequest(port, id, credential)
  const socket = await FrameSocket.open(port, request, dialect.framing, dialect.way)
  const client = { id, socket }
  await dialect.ready(client)
  return client
}

/** The ports of the nodes on which the caller and the callee of a pair are. */
export function portsOf({ port, morePorts = [] }: Target, spread: Spread, pair: number): [number, number] {
  const ports = [port, ...morePorts]
  const at = (i: number) => ports[i % ports.length]!
  if (spread === 'together') return [at(pair), at(pair)]
  return [at(pair), spread === 'apart' ? at(pair + 1) : at(Math.floor(pair / ports.length))]
}

/** Opens both sides of each pair and brings them together. */
export async function openPairs(
  dialect: Dialect,
  target: Target,
  first: number,
  count: number,
  spread: Spread = 'together',
): Promise<Pair[]> {
  const ids = Array.from({ length: count * 2 }, (_, i) => participantId(first + (i >> 1), SIDES[i % 2]!))
  const credentials = await dialect.credentials(target.port, ids)
  const clients: Client[] = []
  await atATime(ids.length, 32, async (i) => {
    const port = portsOf(target, spread, i >> 1)[i % 2]!
    clients[i] = await openClient(dialect, port, ids[i]!, credentials[i]!)
  })
  return Array.from({ length: count }, (_, i) => ({
    caller: clients[i * 2]!,
    callee: clients[i * 2 + 1]!,
    callUuid: '',
  }))
}

export function clientsOf(pairs: readonly Pair[]): Client[] {
  return pairs.flatMap((pair) => [pair.caller, pair.callee])
}

export async function closeClients(clients: readonly Client[]): Promise<void> {
  await Promise.all(clients.map((client) => client.socket.terminate()))
}
