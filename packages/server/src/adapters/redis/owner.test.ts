import { expect, test } from 'bun:test'
import { createSocket, identityOf } from '../../../test/contracts/session-parts.ts'
import { createSessionTable } from '../../session/table.ts'
import { notHere } from './frames.ts'
import { createOwner, type OwnerOptions } from './owner.ts'

test('[INV4] a session stays where its client came back while it was being given away', async () => {
  const table = createSessionTable({ windowMs: 1_000, resumeWindowMs: 1_000, newEpoch: () => 'epoch', isShared: true })
  const { promise: saved, resolve: save } = Promise.withResolvers<void>()
  // All but the save that it waits for is out of the way: the moment is one between two steps of one turn.
  const owner = createOwner({ node: 'one', table, saves: { settle: () => saved } } as unknown as OwnerOptions)
  const identity = identityOf()
  const id = identity.sessionId
  table.openDetached(identity, 0)
  const yielded = owner.yieldTo('two', id, { identity, turn: 0, seq: 0 })
  await Promise.resolve()
  await Promise.resolve()
  expect(owner.isHere(id)).toBe(false)
  const socket = createSocket()
  expect(table.resume({ sessionId: id, epoch: 'epoch', seq: 0 }, identity, socket, 0)).toBeDefined()
  table.changes.take()
  save()
  expect(await yielded).toBe(notHere)
  expect(owner.isHere(id)).toBe(true)
  expect(table.sinkOf(id)).toBe(socket)
})
