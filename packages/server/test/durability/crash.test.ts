import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { CallRecord } from '@ringwire/protocol/rest'
import { Client, type Received } from '@ringwire/testkit/client'
import { candidate } from '@ringwire/testkit/flows'
import { isLong } from '@ringwire/testkit/long'
import { soon } from '@ringwire/testkit/patience'
import { Service } from '@ringwire/testkit/service'

/**
 * kill -9 in the middle of everything, again and again on the same data: everything that a client heard is in the
 * history, and calls go on. Pairs of people call each other as fast as the service goes; each always waits for one
 * answer, so as many transitions are in flight as there are pairs.
 */
const rounds = isLong ? 12 : 6
const leastInFlight = 50
/** Pairs that only call; that keep their first call; whose calls nobody answers. */
const pairCounts = { busy: 90, talking: 12, unanswered: 10 }
/** Shorter than a start takes: what rings at the kill is overdue when the service is back. */
const shortRingMs = 150

type Habit = keyof typeof pairCounts

/** What a client heard about a call. */
interface Told {
  readonly pair: Pair
  accepted: boolean
  over: { status: string; reason: string; endedAt: string } | undefined
}

interface Pair {
  readonly habit: Habit
  readonly callerId: string
  readonly calleeId: string
  readonly callerToken: string
  readonly calleeToken: string
  caller: Client
  callee: Client
}

/** The socket died under a request. */
class Dead extends Error {}

const service = new Service({
  RINGWIRE_PORT: '0',
  RINGWIRE_WS_RATE: 'off',
  RINGWIRE_INVITE_RATE: 'off',
  RINGWIRE_PAIR_INVITE_RATE: 'off',
  RINGWIRE_TOKEN_RATE_IP: 'off',
  RINGWIRE_TOKEN_RATE_KEY: 'off',
  RINGWIRE_MAX_RINGING: '1000',
  RINGWIRE_LOG_LEVEL: 'warn',
})
const pairs: Pair[] = []
const told = new Map<string, Told>()
const counts = { inFlight: [] as number[], inFlightWritten: 0, acknowledged: 0, verified: 0, wentOn: 0, missed: 0 }

/** A request whose effect no client has seen yet. */
interface Request {
  readonly pair: Pair
  readonly event: string
  readonly callUuid: string
}
const inFlight = new Set<Request>()
/** It happens at a request that makes enough of them, once this many transitions were acknowledged. */
let kill: (() => void) | undefined
let killAfter = 0

beforeAll(async () => {
  await service.start()
  const habits = Object.entries(pairCounts).flatMap(([habit, count]) => Array<Habit>(count).fill(habit as Habit))
  await Promise.all(
    habits.map(async (habit, index) => {
      const callerId = `caller-${index}`
      const calleeId = `callee-${index}`
      const [callerToken, calleeToken] = await Promise.all([
        service.token({ user_id: callerId, role: 'customer' }),
        service.token({ user_id: calleeId, role: 'agent' }),
      ])
      const [caller, callee] = await Promise.all([connect(callerToken), connect(calleeToken)])
      pairs.push({ habit, callerId, calleeId, callerToken, calleeToken, caller, callee })
    }),
  )
}, 240_000)
afterAll(() => service.dispose())

async function connect(token: string): Promise<Client> {
  const client = new Client({ url: service.url, token })
  await client.next('auth.ok')
  return client
}

/** The next message about a call, as long as the socket lives. */
async function hear(client: Client, event: string, callUuid: string): Promise<Received> {
  const heard = client.next(event, (message) => message.data.call_uuid === callUuid)
  const first = await Promise.race([heard, client.closed])
  if ('code' in first) throw new Dead()
  return first
}

/** Sends a request and waits until somebody sees its effect. */
async function ask(pair: Pair, from: Client, event: string, data: { call_uuid: string }, seenBy: Client, seen: string) {
  const request = { pair, event, callUuid: data.call_uuid }
  inFlight.add(request)
  from.send(event, data)
  if (inFlight.size >= leastInFlight && counts.acknowledged >= killAfter) kill?.()
  const message = await hear(seenBy, seen, data.call_uuid)
  inFlight.delete(request)
  counts.acknowledged++
  return message
}

function noteOver(callUuid: string, { data }: Received): void {
  const call = told.get(callUuid)
  if (call !== undefined) call.over = { status: data.status, reason: data.reason, endedAt: data.ended_at }
}

async function oneCall(pair: Pair): Promise<void> {
  const { habit, caller, callee } = pair
  const callUuid = crypto.randomUUID()
  const data = { call_uuid: callUuid }
  const invite = {
    ...data,
    callee_user_id: pair.calleeId,
    callee_role: 'agent',
    ...(habit === 'unanswered' ? { ring_timeout_ms: shortRingMs } : {}),
  }
  await ask(pair, caller, 'call.invite', invite, caller, 'call.invited')
  told.set(callUuid, { pair, accepted: false, over: undefined })
  await hear(callee, 'call.ringing', callUuid)
  const choice = habit === 'busy' ? Math.random() : 1
  if (habit === 'unanswered') {
    noteOver(callUuid, await hear(caller, 'call.missed', callUuid))
  } else if (choice < 0.15) {
    noteOver(callUuid, await ask(pair, callee, 'call.reject', data, caller, 'call.rejected'))
  } else if (choice < 0.3) {
    noteOver(callUuid, await ask(pair, caller, 'call.cancel', data, callee, 'call.cancelled'))
  } else {
    await ask(pair, callee, 'call.accept', data, caller, 'call.accepted')
    told.get(callUuid)!.accepted = true
    if (choice > 0.6) caller.send('call.connected', data)
    if (habit === 'talking') await caller.closed
    else if (choice > 0.5) noteOver(callUuid, await ask(pair, caller, 'call.end', data, callee, 'call.ended'))
    else noteOver(callUuid, await ask(pair, callee, 'call.end', data, caller, 'call.ended'))
  }
}

async function keepCalling(pair: Pair): Promise<void> {
  try {
    while (kill !== killed) await oneCall(pair)
  } catch (error) {
    if (!(error instanceof Dead)) throw error
  }
}

function killed(): void {}

/** From the first answers to the middle of second calls, however fast the machine is. */
const acknowledgedAtKill = { least: 20, most: 700 } as const

/** Everybody calls until the service dies, at a random request with enough transitions in flight. */
async function callUntilKilled(): Promise<void> {
  const { promise: dying, resolve } = Promise.withResolvers<void>()
  const { least, most } = acknowledgedAtKill
  killAfter = counts.acknowledged + least + Math.random() * (most - least)
  kill = () => {
    service.signal('SIGKILL')
    counts.inFlight.push(inFlight.size)
    kill = killed
    resolve()
  }
  await Promise.all([dying, ...pairs.map(keepCalling)])
  await service.kill()
  kill = undefined
}

/** Taking over what was live is interrupted too, or does not even begin. */
async function killWhileStarting(): Promise<void> {
  const starting = service.start({ RINGWIRE_PORT: '0' }).catch(() => {})
  await Bun.sleep(50 + Math.random() * 250)
  await service.kill()
  await starting
}

async function comeBack(): Promise<void> {
  await service.start({ RINGWIRE_PORT: '0' })
  await Promise.all(
    pairs.map(async (pair) => {
      ;[pair.caller, pair.callee] = await Promise.all([connect(pair.callerToken), connect(pair.calleeToken)])
    }),
  )
}

async function recordsOf(pair: Pair): Promise<Map<string, CallRecord>> {
  const { data } = (await service.history(pair.callerToken, '?limit=100')) as { data: CallRecord[] }
  return new Map(data.map((record) => [record.call_uuid, record]))
}

/** Everything that this pair heard since the last time is in the history: that state or a later one. */
function verify(callUuid: string, call: Told, record: CallRecord | undefined): void {
  if (record === undefined) throw new Error(`${callUuid} was acknowledged and is not in the history`)
  if (call.accepted) expect(record.accepted_at).not.toBeNull()
  if (call.over !== undefined) {
    const { status, end_reason: reason, ended_at: endedAt } = record
    expect<unknown>({ status, reason, endedAt }).toEqual(call.over)
  }
  counts.verified++
}

/** [RES3] Everybody who was in a call is still in it: relays pass, and it ends as calls end. */
async function goOn(pair: Pair, record: CallRecord): Promise<void> {
  const { caller, callee } = pair
  const data = { call_uuid: record.call_uuid }
  if (record.status === 'ringing') {
    await ask(pair, caller, 'call.cancel', data, callee, 'call.cancelled')
    const { status, end_reason: reason } = await recordNow(pair, record)
    expect({ status, reason }).toEqual({ status: 'cancelled', reason: 'caller_cancelled' })
    return
  }
  caller.send('webrtc.ice_candidate', candidate(record.call_uuid, 1))
  expect((await hear(callee, 'webrtc.ice_candidate', record.call_uuid)).data.from_user_id).toBe(pair.callerId)
  callee.send('webrtc.ice_candidate', candidate(record.call_uuid, 2))
  expect((await hear(caller, 'webrtc.ice_candidate', record.call_uuid)).data.from_user_id).toBe(pair.calleeId)
  await ask(pair, callee, 'call.end', data, caller, 'call.ended')
  const { status, end_reason, started_at, accepted_at } = await recordNow(pair, record)
  expect({ status, end_reason, started_at, accepted_at }).toEqual({
    status: 'ended',
    end_reason: 'hangup',
    started_at: record.started_at,
    accepted_at: record.accepted_at,
  })
  counts.wentOn++
}

async function recordNow(pair: Pair, record: CallRecord): Promise<CallRecord> {
  const now = (await recordsOf(pair)).get(record.call_uuid)
  if (now === undefined) throw new Error(`${record.call_uuid} is gone`)
  return now
}

/** [RING1] What should have been missed while the service was away is missed within a second of its return. */
async function becomesMissed(pair: Pair, record: CallRecord, back: number): Promise<void> {
  let now = record
  while (now.status === 'ringing' && performance.now() - back < soon(1_000)) {
    await Bun.sleep(20)
    now = await recordNow(pair, record)
  }
  expect({ status: now.status, reason: now.end_reason }).toEqual({ status: 'missed', reason: 'no_answer' })
  counts.missed++
}

async function verifyPair(pair: Pair, news: [string, Told][], asked: Request[], back: number): Promise<void> {
  const records = await recordsOf(pair)
  for (const [callUuid, call] of news) verify(callUuid, call, records.get(callUuid))
  for (const request of asked) if (isWritten(request, records.get(request.callUuid))) counts.inFlightWritten++
  const open = new Set(news.filter(([, call]) => call.over === undefined).map(([callUuid]) => callUuid))
  for (const record of records.values()) {
    const isLive = record.ended_at === null
    if (pair.habit !== 'unanswered' && isLive) await goOn(pair, record)
    if (pair.habit === 'unanswered' && (isLive || open.has(record.call_uuid))) await becomesMissed(pair, record, back)
  }
}

/** Whether a request took effect although its client got no answer. */
function isWritten({ event }: Request, record: CallRecord | undefined): boolean {
  if (record === undefined || event === 'call.invite') return record !== undefined
  return (event === 'call.accept' ? record.accepted_at : record.ended_at) !== null
}

test(`[RES3] killed ${rounds} times with ${leastInFlight} transitions in flight: nothing acknowledged is lost`, async () => {
  for (let round = 0; round < rounds; round++) {
    const before = told.size
    await callUntilKilled()
    if (round % 3 === 2) await killWhileStarting()
    await comeBack()
    const back = performance.now()
    const news = Map.groupBy([...told].slice(before), ([, call]) => call.pair)
    const asked = Map.groupBy(inFlight, (request) => request.pair)
    inFlight.clear()
    await Promise.all(pairs.map((pair) => verifyPair(pair, news.get(pair) ?? [], asked.get(pair) ?? [], back)))
  }
  await service.kill()
  const calls = checkDatabase()
  const unseen = counts.inFlight.reduce((sum, count) => sum + count, 0)
  console.log(
    `kills: ${rounds}; transitions in flight at each: ${counts.inFlight.join(' ')}\n` +
      `of these ${unseen} were written, though no client had seen it: ${counts.inFlightWritten}\n` +
      `calls: ${calls}; acknowledged transitions: ${counts.acknowledged}; ` +
      `acknowledged calls verified in the history: ${counts.verified}\n` +
      `live calls that went on: ${counts.wentOn}; overdue calls that were missed: ${counts.missed}`,
  )
  expect(counts.inFlight.length).toBe(rounds)
  expect(Math.min(...counts.inFlight)).toBeGreaterThanOrEqual(leastInFlight)
  expect(counts.verified).toBe(told.size)
  expect(counts.wentOn).toBeGreaterThan(rounds)
  expect(counts.missed).toBeGreaterThan(0)
}, 240_000)

/** The file itself: sound, every version once and without gaps, one end for every call. Answers how many calls. */
function checkDatabase(): number {
  const db = new Database(join(service.dataDir, 'ringwire.db'), { readwrite: true })
  try {
    const rows = (sql: string) => db.query<Record<string, unknown>, []>(sql).all()
    expect(rows('PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
    expect(
      rows(`SELECT call_uuid, calls.version, group_concat(call_events.version) AS events
            FROM calls LEFT JOIN call_events ON call_id = id GROUP BY id
            HAVING count(*) <> calls.version OR min(call_events.version) <> 1 OR max(call_events.version) <> calls.version`),
    ).toEqual([])
    const ends = "type IN ('ended', 'rejected', 'cancelled', 'missed', 'busy')"
    expect(
      rows(`SELECT call_uuid, status, sum(${ends}) AS ends FROM calls JOIN call_events ON call_id = id
            GROUP BY id HAVING ends <> (ended_at IS NOT NULL)`),
    ).toEqual([])
    const find = db.query<{ status: string; endedAt: number; reason: string }, [string]>(
      'SELECT status, ended_at AS endedAt, end_reason AS reason FROM calls WHERE call_uuid = ?',
    )
    for (const [callUuid, { over }] of told) {
      const [row, ...more] = find.all(callUuid)
      if (row === undefined || more.length > 0) throw new Error(`${callUuid} is there ${more.length} times too often`)
      if (over !== undefined) expect({ ...row, endedAt: new Date(row.endedAt).toISOString() }).toEqual(over)
    }
    return db.query<{ n: number }, []>('SELECT count(*) AS n FROM calls').get()?.n ?? 0
  } finally {
    db.close()
  }
}
