import { expect, test } from 'bun:test'
import { createSocket, identityOf, stepsOf } from '../ports/sessions.fixture.ts'
import { createSessionTable } from '../session/table.ts'
import { notHere } from './frames.ts'
import { createOwner, type OwnerOptions } from './owner.ts'
import { createResumes } from './resumes.ts'

test('[INV4] a session that is being given away gets no socket here, whatever of the two comes first', async () => {
  const outcomes: string[] = []
  for (let turns = -12; turns <= 12; turns++) {
    const table = createSessionTable({
      windowMs: 1_000,
      resumeWindowMs: 1_000,
      newEpoch: () => 'epoch',
      isShared: true,
    })
    const { promise: saved, resolve: save } = Promise.withResolvers<void>()
    // All but the save that it waits for is out of the way: the moment is one between two steps of one turn.
    const owner = createOwner({
      ...{ node: 'one', table },
      saves: { settle: () => undefined, give: () => saved },
      directory: { row: async () => undefined },
    } as unknown as OwnerOptions)
    const resumes = createResumes({ table, owner, registered: async () => {}, settle: () => undefined })
    const identity = identityOf()
    const id = identity.sessionId
    stepsOf(table).openDetached(identity, 0)
    const socket = createSocket()
    const comeBack = async () => resumes.resume({ sessionId: id, epoch: 'epoch', seq: 0 }, identity, socket, 0)
    const giveAway = () => owner.handOff('two', id, '1.0', { identity, turn: 0, seq: 0 })
    const first: Promise<unknown> = turns < 0 ? comeBack() : giveAway()
    for (let i = 0; i < Math.abs(turns); i++) await Promise.resolve()
    const second: Promise<unknown> = turns < 0 ? giveAway() : comeBack()
    for (let i = 0; i < 40; i++) await Promise.resolve()
    const isGoing = !owner.isHere(id)
    if (isGoing) expect(table.sinkOf(id)).toBeUndefined()
    save()
    const [back, given] = turns < 0 ? [await first, await second] : [await second, await first]
    expect(given).toEqual(isGoing ? expect.objectContaining({ fence: '1' }) : notHere)
    expect(table.get(id) === undefined).toBe(isGoing)
    expect(table.sinkOf(id)).toBe(isGoing ? undefined : socket)
    outcomes.push(
      `${isGoing ? 'given' : 'stays'}, ${back === undefined ? 'came too late' : `retired ${socket.retirements}`}`,
    )
  }
  expect([...new Set(outcomes)].sort()).toEqual(['given, came too late', 'given, retired 1', 'stays, retired 0'])
})
