import { expect, test } from 'bun:test'
import type { Push } from '../ports/push.ts'
import { createSocket, identityOf } from '../ports/sessions.fixture.ts'
import { readSession, writeEntry, writeState } from './copy.ts'
import { branchOff } from './session.ts'
import { createSessionTable } from './table.ts'

const optionsOf = (epoch: string) => ({
  ...{ windowMs: 1_000, resumeWindowMs: 1_000, isShared: true },
  newEpoch: () => epoch,
})
const relay: Push = { kind: 'relay', call: 'call', version: undefined, text: '{"data":{"n":1}}' }

test('[RES2] under an earlier epoch a client goes on from where the log was the same, or from what it saw of the last owner', () => {
  const identity = identityOf()
  const { sessionId: id } = identity
  const table = createSessionTable(optionsOf('unused'))
  const takeOver = () => {
    const before = createSessionTable(optionsOf('first'))
    before.open(identity, createSocket(), 0)
    before.append(id, relay)
    const left = before.get(id)!
    const session = readSession(writeState(left), left.log!.all().map(writeEntry), 0)!
    branchOff(session, 'second')
    table.drop(id)
    table.adopt(session)
  }
  const comeBack = (epoch: string, seq: number) =>
    table.resume({ sessionId: id, epoch, seq }, identity, createSocket(), 0)?.epoch
  const lose = () => table.detach(id, table.sinkOf(id)!, false, 0)

  takeOver()
  expect(comeBack('first', 1)).toBe('second')
  table.append(id, relay)
  lose()
  // It never got the new epoch: its number 2 belongs to the other log.
  expect(comeBack('first', 2)).toBeUndefined()

  takeOver()
  expect(comeBack('first', 3)).toBe('second')
  table.append(id, relay)
  lose()
  expect(comeBack('first', 3)).toBe('second')
  lose()
  expect(comeBack('second', 4)).toBe('second')
})
