import { expect, test } from 'bun:test'
import type { Push } from '../ports/push.ts'
import { createSocket, identityOf, stepsOf } from '../ports/sessions.fixture.ts'
import { branchOff, hasAllOf } from './branches.ts'
import { readSession, writeEntry, writeState } from './copy.ts'
import type { Session } from './session.ts'
import { createSessionTable, type SessionTable } from './table.ts'

const relay: Push = { kind: 'relay', call: 'call', version: undefined, text: '{"data":{"n":1}}' }
const createTable = () =>
  createSessionTable({ windowMs: 1_000, resumeWindowMs: 1_000, isShared: true, newEpoch: () => 'first' })

/** A session as another process finds it. */
const copyOf = (session: Session) => readSession(writeState(session), session.log?.all().map(writeEntry) ?? [], 0)!

/** A session of an earlier owner, and what later owners made of it, one after the other. */
function twoOwners(...epochs: readonly string[]) {
  const identity = identityOf()
  const { sessionId: id } = identity
  const earlier = createTable()
  earlier.open(identity, createSocket(), 0)
  stepsOf(earlier).hold(id, 'call', true)
  earlier.append(id, relay)
  const owners = epochs.map((epoch) => ({ epoch, table: createTable() }))
  let from: SessionTable = earlier
  for (const { epoch, table } of owners) {
    const session = copyOf(from.get(id)!)
    branchOff(session, epoch)
    table.adopt(session)
    table.append(id, relay)
    from = table
  }
  const isShown = (table: SessionTable) => hasAllOf(from.get(id)!, copyOf(table.get(id)!))
  return { id, identity, earlier, owners, later: from, isShown }
}

test('[RES2] a later owner has everything of an earlier one that added nothing, however many there were', () => {
  const { earlier, owners, isShown } = twoOwners('second', 'third')
  expect(isShown(earlier)).toBe(true)
  // The third one went on where the second one was.
  expect(isShown(owners[0]!.table)).toBe(true)
})

const additions: Record<string, (earlier: SessionTable, id: string) => unknown> = {
  'a push': (earlier, id) => earlier.append(id, relay),
  'a relay that waits for the accept': (earlier, id) => earlier.keep(id, { ...relay, call: 'other' }),
  'a place': (earlier, id) => stepsOf(earlier).hold(id, 'other', true),
}
for (const [what, add] of Object.entries(additions)) {
  test(`[RES2] a later owner lacks what an earlier one added: ${what}`, () => {
    const { id, earlier, isShown } = twoOwners('second', 'third')
    add(earlier, id)
    expect(isShown(earlier)).toBe(false)
  })
}

test('[RES2] a later owner knows nothing of a log whose name it never heard', () => {
  const { later, id } = twoOwners('second')
  const stranger = copyOf(later.get(id)!)
  branchOff(stranger, 'stranger')
  expect(hasAllOf(later.get(id)!, stranger)).toBe(false)
})

test('[RES2] [EXT3] what a client has seen of an earlier owner, though it was not saved, is not lost', () => {
  const { id, identity, earlier, later, isShown } = twoOwners('second')
  earlier.append(id, relay)
  expect(isShown(earlier)).toBe(false)
  expect(later.resume({ sessionId: id, epoch: 'first', seq: 2 }, identity, createSocket(), 0)).toBeDefined()
  expect(isShown(earlier)).toBe(true)
})
