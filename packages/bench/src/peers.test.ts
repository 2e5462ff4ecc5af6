import { expect, test } from 'bun:test'
import { findPeers, PEERS } from './peers.ts'

test('peers whose programs are missing are left out, with the command that brings them', () => {
  const { here, notes } = findPeers((name) => (name === 'nats' ? undefined : `/usr/bin/${name}`))
  expect(here).toEqual(PEERS.filter((peer) => peer !== 'nats'))
  expect(notes).toEqual(['NATS is left out. To bring it: node scripts/system.mjs nats'])
})

test('where all are installed nothing is left out', () => {
  expect(findPeers(() => '/usr/bin/program')).toEqual({ here: [...PEERS], notes: [] })
})
