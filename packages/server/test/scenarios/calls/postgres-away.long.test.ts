import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Client } from '@ringwire/testkit/client'
import { acceptedCall, candidate, connectPair, invite } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { Service } from '@ringwire/testkit/service'
import { Postgres } from '../../support/postgres.ts'
import { received, request } from '../../support/sessions.ts'

/** The database goes away under a running service, and comes back. */
let server: Postgres
beforeAll(async () => {
  server = await Postgres.start()
})
afterAll(() => server.dispose())

async function onPostgres(run: (service: Service, database: string) => Promise<void>): Promise<void> {
  const url = await server.database()
  const service = new Service({ DATABASE_URL: url, RINGWIRE_WS_RATE: 'off' })
  try {
    await service.start()
    await run(service, new URL(url).pathname.slice(1))
  } finally {
    await service.dispose()
  }
}

async function isReady(service: Service): Promise<boolean> {
  return (await fetch(`${service.url}/readyz`)).ok
}

test('[END3] [HEALTH1] killed and started again: calls go on, requests are refused meanwhile, nobody is lost', () =>
  onPostgres(async (service) => {
    const pair = await connectPair(service)
    const callUuid = await acceptedCall(pair)
    const data = { call_uuid: callUuid }
    // Both have settled their places: what they relay now needs no database.
    await request(pair.caller, 'webrtc.ice_candidate', candidate(callUuid, 1))
    await request(pair.callee, 'webrtc.ice_candidate', candidate(callUuid, 2))
    await server.kill()
    pair.caller.send('webrtc.ice_candidate', candidate(callUuid, 3))
    await pair.callee.next('webrtc.ice_candidate', (message) => message.data.candidate.candidate === 'candidate:3')
    const refused = await request(pair.callee, 'call.end', data)
    expect(refused?.error).toMatchObject({ code: 'SERVICE_UNAVAILABLE', retryable: true })
    expect(await isReady(service)).toBe(false)
    await server.up()
    await until('the service is ready', () => isReady(service))
    pair.callee.send('call.end', data)
    const ended = await pair.caller.next('call.ended')
    expect(ended.data).toMatchObject({ call_uuid: callUuid, reason: 'hangup' })
    expect(received(pair.caller).filter(({ event }) => event === 'call.ended').length).toBe(1)
  }))

/** This many requests have to meet the end of a connection. */
const enoughRefusals = 8

/** Asks until the answer is one of the call and not of the store. */
async function insist(client: Client, event: string, data: object): Promise<number> {
  for (let refusals = 0; ; refusals++) {
    if ((await request(client, event, data))?.error?.code !== 'SERVICE_UNAVAILABLE') return refusals
    await Bun.sleep(20)
  }
}

test(
  '[INV3] [END1] its connections are ended again and again: who asks again is through, each is told once',
  () =>
    onPostgres(async (service, database) => {
      const callers = await Promise.all(Array.from({ length: 20 }, () => connectPair(service)))
      let storming = true
      let refusals = 0
      const storm = server.storm(database, () => storming)
      const made = await Promise.all(
        callers.map(async (pair) => {
          const calls: string[] = []
          while (refusals < enoughRefusals && calls.length < 100) {
            const callUuid = crypto.randomUUID()
            const data = { call_uuid: callUuid }
            const isIt = (message: { data: { call_uuid: string } }) => message.data.call_uuid === callUuid
            refusals += await insist(pair.caller, 'call.invite', {
              ...data,
              callee_user_id: pair.calleeId,
              callee_role: 'agent',
            })
            await pair.callee.next('call.ringing', isIt)
            refusals += await insist(pair.callee, 'call.accept', data)
            await pair.caller.next('call.accepted', isIt)
            refusals += await insist(pair.caller, 'call.end', data)
            await pair.callee.next('call.ended', isIt)
            calls.push(callUuid)
          }
          return calls
        }),
      )
      storming = false
      await storm
      expect(refusals).toBeGreaterThanOrEqual(enoughRefusals)
      for (const [index, { caller, callee, callerId }] of callers.entries()) {
        const calls = made[index] ?? []
        for (const [client, event] of [
          [callee, 'call.ringing'],
          [caller, 'call.accepted'],
          [callee, 'call.ended'],
        ] as const) {
          const heard = received(client).flatMap((it) => (it.event === event ? [it.data.call_uuid] : []))
          expect(heard).toEqual(calls)
        }
        const { data } = await service.history(
          await service.token({ user_id: callerId, role: 'customer' }),
          '?limit=100',
        )
        expect(data.map((it: { call_uuid: string }) => it.call_uuid)).toEqual(calls.toReversed())
        expect(new Set(data.map((it: { status: string }) => it.status))).toEqual(new Set(['ended']))
      }
      expect(await invite((callers[0] as (typeof callers)[0]).caller, 'somebody')).toBeString()
    }),
  240_000,
)
