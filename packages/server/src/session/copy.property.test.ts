import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { participantKey } from '../call/call.ts'
import type { Push } from '../ports/push.ts'
import { stepsOf } from '../ports/sessions.fixture.ts'
import type { Sink } from '../ports/sessions.ts'
import { readSession, writeEntry, writeState } from './copy.ts'
import { type LostSocket, lostOf } from './session.ts'
import { createSessionTable, type SessionTable } from './table.ts'

/** A table and its copy, which have to do the same whatever comes. */

const participant = { product: 'shop', role: 'agent', userId: 'ann' }
const ids = ['a', 'b', 'c'] as const
const calls = ['x', 'y'] as const
const kinds = ['ringing', 'stop', 'state', 'relay', 'media', 'final', 'notice', 'peer'] as const

interface Sent {
  readonly text: string
}

/** What a table told its sockets. */
interface World {
  readonly table: SessionTable
  readonly sockets: Map<string, Sink & { readonly sent: Sent[] }>
}

type Op = { readonly name: string; run(world: World): unknown }

const id = fc.constantFrom(...ids)
const call = fc.constantFrom(...calls)
const version = fc.integer({ min: 1, max: 6 })
const source = fc.option(fc.record({ sessionId: fc.constantFrom('s', 't'), n: fc.integer({ min: 1, max: 9 }) }), {
  nil: undefined,
})

const push: fc.Arbitrary<Push> = fc
  .record({ kind: fc.constantFrom(...kinds), call, version, source, n: fc.nat({ max: 999 }), forPlace: fc.boolean() })
  .map(({ kind, call, version, source, n, forPlace }) => {
    const relay = kind === 'relay' || kind === 'media'
    const text = JSON.stringify({ event: `call.${kind}`, data: { n, text: 'two\nlines' } })
    return {
      kind,
      call,
      version: relay ? undefined : version,
      text,
      ...(relay && source !== undefined && { source }),
      ...(relay && forPlace && { forPlace, parcel: `${n}-2-a%20b` }),
      ...(kind === 'notice' && forPlace && { needs: n % 2 === 0 ? ('take' as const) : ('group' as const) }),
      ...(kind === 'stop' && forPlace && { device: n % 2 === 0 ? 'phone' : 'a\nphone\u2028 of mine' }),
    }
  })

const op: fc.Arbitrary<Op> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.tuple(id, push).map(([id, push]) => named('append', ({ table }) => table.append(id, push))),
  },
  { weight: 2, arbitrary: fc.tuple(id, push).map(([id, push]) => named('keep', ({ table }) => table.keep(id, push))) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(push, fc.subarray([...ids]))
      .map(([push, except]) => named('rung', ({ table }) => table.appendRung(participant, push, except))),
  },
  {
    weight: 4,
    arbitrary: fc
      .tuple(id, call, fc.boolean(), fc.boolean(), version)
      .map(([id, call, settled, gate, version]) =>
        named('hold', ({ table }) => stepsOf(table).hold(id, call, settled, gate, version)),
      ),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(call, id, id, fc.boolean(), version, fc.boolean())
      .map((how) => named('move', ({ table }) => table.move(...how))),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(id, call, fc.boolean(), version)
      .map((how) => named('answer', ({ table }) => stepsOf(table).answer(...how))),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(id, call, fc.array(push, { maxLength: 2 }))
      .map((how) => named('gate', ({ table }) => stepsOf(table).openGate(...how))),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(id, call).map((how) => named('release', ({ table }) => stepsOf(table).release(...how))),
  },
  {
    weight: 3,
    arbitrary: fc.tuple(id, fc.nat({ max: 12 })).map((how) => named('prove', ({ table }) => table.prove(...how))),
  },
  { weight: 1, arbitrary: fc.tuple(id, call).map((how) => named('ring', ({ table }) => stepsOf(table).ring(...how))) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(id, fc.boolean(), fc.constantFrom(undefined, 1_100))
      .map(([id, clean, awaitedMs]) => named('detach', (world) => detach(world, id, clean, awaitedMs))),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(id, fc.nat({ max: 12 })).map(([id, seq]) => named('resume', (world) => resume(world, id, seq))),
  },
  { weight: 1, arbitrary: id.map((id) => named('collect', ({ table }) => collect(table, id))) },
)

const named = (name: string, run: Op['run']): Op => ({ name, run })

function newTable(): SessionTable {
  return createSessionTable({ windowMs: 1_000, resumeWindowMs: 1_000, newEpoch: () => 'epoch', isShared: true })
}

function socket(): Sink & { readonly sent: Sent[] } {
  const sent: Sent[] = []
  let writtenSeq = 0
  return {
    sent,
    send: (text) => void sent.push({ text }),
    pushed(seq) {
      writtenSeq = seq
    },
    get writtenSeq() {
      return writtenSeq
    },
    probe: async () => true,
    close() {},
    retire: async () => {},
    isBusy: false,
    isClosed: false,
  }
}

function connect({ table, sockets }: World, sessionId: string, extended: boolean): void {
  const sink = socket()
  sockets.set(sessionId, sink)
  table.open({ sessionId, participant, deviceId: 'phone', extended }, sink, 5)
  table.ready(sessionId)
}

function detach({ table, sockets }: World, sessionId: string, clean: boolean, awaitedMs?: number): unknown {
  const sink = sockets.get(sessionId)
  return sink && table.detach(sessionId, sink, clean, 10, { awaitedMs })
}

function resume({ table, sockets }: World, sessionId: string, seq: number): unknown {
  const identity = table.get(sessionId)?.identity
  if (identity === undefined || table.sinkOf(sessionId) !== undefined) return undefined
  const sink = socket()
  const open = table.resume({ sessionId, epoch: 'epoch', seq }, identity, sink, 20)
  if (open === undefined) return undefined
  sockets.set(sessionId, sink)
  table.ready(sessionId)
  return open
}

function collect(table: SessionTable, sessionId: string): void {
  const identity = table.heldHere(sessionId)
  if (identity !== undefined) table.collectFinals(identity)
}

/** Everything that can be seen of a world from outside. */
function seen({ table, sockets }: World): unknown {
  return ids.map((id) => {
    const session = table.get(id)
    return session === undefined
      ? undefined
      : [writeState(session), session.log?.all().map(writeEntry) ?? [], sockets.get(id)?.sent]
  })
}

function loseAll(world: World): void {
  for (const id of ids) detach(world, id, false)
}

const kindsOf = fc.tuple(fc.boolean(), fc.boolean(), fc.boolean())
const ops = fc.array(op, { maxLength: 60 })

test('a session that was read from its copy does what the one that was copied does', () => {
  fc.assert(
    fc.property(kindsOf, ops, ops, (extended, before, after) => {
      const one: World = { table: newTable(), sockets: new Map() }
      for (const [i, id] of ids.entries()) connect(one, id, extended[i]!)
      for (const { run } of before) run(one)
      const copyOf = (id: string) => {
        const session = one.table.get(id)
        return session && ([writeState(session), session.log?.all().map(writeEntry) ?? []] as const)
      }
      const copies = new Map<string, ReturnType<typeof copyOf>>(ids.map((id) => [id, copyOf(id)]))
      loseAll(one)
      one.table.sweep(10)
      const other: World = { table: newTable(), sockets: new Map() }
      other.table.sweep(10)
      // In the order in which they lost their sockets; one with nothing in it is forgotten.
      for (const { identity } of one.table.ofParticipant(participantKey(participant))) {
        const [state, entries] = copies.get(identity.sessionId)!
        // This one was seen to lose its socket, the other one's owner died.
        const session = readSession(state, entries, 10)!
        session.socket = { ...session.socket, isUnseen: false } as LostSocket
        other.table.adopt(session)
      }
      for (const world of [one, other]) for (const { sent } of world.sockets.values()) sent.length = 0
      const forget = (world: World) => world.sockets.clear()
      forget(one)
      for (const { run } of after) {
        expect(run(other)).toEqual(run(one) as never)
        expect(seen(other)).toEqual(seen(one) as never)
      }
    }),
    { numRuns: 300 },
  )
})

test('[PEER1] a copy says when the client is awaited', () => {
  const world: World = { table: newTable(), sockets: new Map() }
  connect(world, 'a', true)
  detach(world, 'a', false, 1_100)
  const session = world.table.get('a')!
  expect(readSession(writeState(session), [], 20)?.socket).toEqual({ ...session.socket })
  expect(lostOf(session)?.awaitedMs).toBe(1_100)
})

/** A copy as a store has it: what the save script does to it. */
interface Copy {
  state: string
  entries: string[]
}

function save({ table }: World, copies: Map<string, Copy>): void {
  for (const { session, isGone, isChanged, log } of table.changes.take()) {
    const id = session.identity.sessionId
    if (isGone) {
      copies.delete(id)
      continue
    }
    const copy = copies.get(id) ?? { state: '', entries: [] }
    copies.set(id, copy)
    if (isChanged) copy.state = writeState(session)
    if (log === undefined) continue
    if (log.whole) copy.entries = []
    copy.entries.splice(0, log.dropped)
    copy.entries.push(...log.added.map(writeEntry))
    expect(copy.entries.length).toBe(log.size)
  }
}

test('a copy that was given each change is the session, whenever the changes were taken', () => {
  const batches = fc.array(fc.array(op, { maxLength: 12 }), { maxLength: 12 })
  fc.assert(
    fc.property(kindsOf, batches, (extended, all) => {
      const world: World = { table: newTable(), sockets: new Map() }
      const copies = new Map<string, Copy>()
      for (const [i, id] of ids.entries()) connect(world, id, extended[i]!)
      for (const batch of all) {
        for (const { run } of batch) run(world)
        save(world, copies)
        for (const id of ids) {
          const session = world.table.get(id)
          const copy = copies.get(id)
          if (session === undefined || copy === undefined) {
            expect([copy, session?.saving.isSaved ?? false]).toEqual([undefined, false])
            continue
          }
          const read = readSession(copy.state, copy.entries, 10)
          const whole = readSession(writeState(session), session.log?.all().map(writeEntry) ?? [], 10)
          // The oldest may be there a little longer.
          const own = read?.log?.all().slice(-(whole?.log?.size ?? 0))
          expect((whole?.log?.size ?? 0) === 0 ? [] : own?.map(writeEntry)).toEqual(
            whole?.log?.all().map(writeEntry) ?? [],
          )
          expect(read && writeState(read)).toEqual(whole && writeState(whole))
        }
      }
    }),
    { numRuns: 300 },
  )
})
