import { expect, test } from 'bun:test'
import { expectMedia, hangUp, restart, withPrograms } from './support/engine-stage.ts'

/* Another WebRTC engine than a browser's: the SDK in Node, each phone in a process of its own, and the real service. */

const { call } = withPrograms()

test('Node calls Node: sound and picture arrive, also after a restart of ICE; the end closes both', async () => {
  const { caller, callee, both } = await call(['Node', 'Node'])
  await expectMedia(both)
  expect(await caller.ask('securityCode')).toBe((await callee.ask('securityCode')) ?? '')
  await restart([callee])
  await expectMedia(both)
  await hangUp(callee, both)
}, 240_000)

test('two offers that cross are settled: the callee gives way, and media goes on', async () => {
  const { caller, both } = await call(['Node', 'Node'])
  await restart(both)
  await expectMedia(both)
  await hangUp(caller, both)
}, 240_000)
