import { expect, test } from 'bun:test'
import type { Push } from '../ports/push.ts'
import { createSocket, identityOf } from '../ports/sessions.fixture.ts'
import { branchOff } from './branches.ts'
import { readSession, writeEntry, writeState } from './copy.ts'
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

test('[RES2] a client may have seen more than its owner saved, also where two nodes have taken the session over since', () => {
  const identity = identityOf()
  const { sessionId: id } = identity
  const table = createSessionTable(optionsOf('unused'))
  /** The session as the next node finds it, after something came that its client has not seen. */
  const takenOver = (from: typeof table, epoch: string) => {
    const left = from.get(id)!
    const session = readSession(writeState(left), left.log!.all().map(writeEntry), 0)!
    branchOff(session, epoch)
    const next = createSessionTable(optionsOf('unused'))
    next.adopt(session)
    next.append(id, relay)
    return next
  }
  const first = createSessionTable(optionsOf('first'))
  first.open(identity, createSocket(), 0)
  first.append(id, relay)
  const second = takenOver(first, 'second')
  const third = takenOver(second, 'third')
  const socket = createSocket()
  // The first owner had told its client number 2, and not saved it.
  expect(third.resume({ sessionId: id, epoch: 'first', seq: 2 }, identity, socket, 0)?.epoch).toBe('third')
  third.ready(id)
  expect(socket.pushedSeqs).toEqual([3, 4])

  // Nobody had a socket at the second owner, so nobody has seen a number there that was not saved.
  const fourth = takenOver(takenOver(first, 'second'), 'fourth')
  expect(fourth.resume({ sessionId: id, epoch: 'second', seq: 3 }, identity, createSocket(), 0)).toBeUndefined()
})

test('[MEDIA1] a client that saw more than was saved is not told an older word of its peer about its media again', () => {
  const identity = identityOf()
  const { sessionId: id } = identity
  const media = (n: number): Push => ({ kind: 'media', call: 'call', version: undefined, text: `{"data":{"n":${n}}}` })
  /** What a client hears that saw everything up to `seq`; the copy has the first word, and `since` came to its next owner. */
  const heardAgain = (seq: number, ...since: number[]) => {
    const before = createSessionTable(optionsOf('first'))
    before.open(identity, createSocket(), 0)
    before.append(id, media(1))
    const left = before.get(id)!
    const table = createSessionTable(optionsOf('unused'))
    table.adopt(readSession(writeState(left), left.log!.all().map(writeEntry), 0)!)
    for (const n of since) table.append(id, media(n))
    const [socket, again] = [createSocket(), createSocket()]
    table.resume({ sessionId: id, epoch: 'first', seq }, identity, socket, 0)
    table.ready(id)
    const last = table.get(id)!.log!.last
    table.detach(id, socket, false, 0)
    table.resume({ sessionId: id, epoch: 'first', seq: last }, identity, again, 0)
    table.ready(id)
    return [socket, again].map(({ told }) => told.map(({ data }) => data.n))
  }
  expect(heardAgain(1)).toEqual([[1], [1]])
  expect(heardAgain(2)).toEqual([[], []])
  expect(heardAgain(2, 3)).toEqual([[3], [3]])
})
