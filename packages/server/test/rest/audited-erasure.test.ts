import { afterAll, beforeAll, expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import { createSeenCalls } from '../../src/history/seen-calls.ts'
import { createParticipants } from '../../src/participants/participants.ts'
import { createMemorySessions } from '../../src/stores/memory/sessions.ts'
import { asker, openStores, type RestService, startRest } from './rest-service.ts'

const written = Promise.withResolvers<void>()
let shared: Awaited<ReturnType<typeof openStores>>
let rest: RestService
beforeAll(async () => {
  shared = await openStores()
  const { stores } = shared
  const participants = createParticipants({
    ...stores,
    sessions: createMemorySessions({ windowMs: 120_000, resumeWindowMs: 120_000 }),
    seenCalls: createSeenCalls(stores),
    revoked: { revoke: async () => {} },
    endCall: async () => {},
    forgetMember: async () => {},
    // An erasure waits for this.
    flush: () => written.promise,
    hasOthers: () => false,
    now: Date.now,
    jumpedMs: () => 0,
    answerMs: 500,
  })
  rest = startRest({ stores, participants })
})
afterAll(async () => {
  await rest.stop()
  await shared.close()
})

test('[ADM3] [SRV2] an erasure that outlasts its request is in the audit log once as begun, and once as done', async () => {
  const ask = asker(() => rest, '/v1/server/participants')
  const erase = async () => (await ask('DELETE', '/customer/ann')).status
  const logged = async () => {
    const entries = await shared.stores.audit.list({ product: 'shop', before: undefined, limit: 10 })
    return entries.map(({ action, participant, detail }) => ({ action, participant, detail }))
  }
  const erased = { action: 'participant.erase', participant: { role: 'customer', userId: '' } }
  expect([await erase(), await erase()]).toEqual([503, 503])
  expect(await logged()).toEqual([{ ...erased, detail: { outcome: 'begun' } }])
  written.resolve()
  await until('it is done', async () => {
    // Entries of one instant have no order.
    rest.clock.at++
    return (await erase()) === 200
  })
  expect((await logged())[0]).toEqual({ ...erased, detail: {} })
})
