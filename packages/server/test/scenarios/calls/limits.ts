import { describe, expect, test } from 'bun:test'
import type { Received } from '@ringwire/testkit/client'
import { connectPair, someone } from '@ringwire/testkit/flows'
import type { Service } from '@ringwire/testkit/service'
import { inviteOf, quiet, received, request } from '../../support/sessions.ts'
import { type Start, serviceFor } from './composition.ts'

type Client = Awaited<ReturnType<Service['connect']>>

/** How often one may call [INV8]. The windows are so long that no test sees one end. */
export function registerLimits(name: string, start: Start): void {
  describe(`limits of invites, ${name}`, () => {
    registerRinging(serviceFor(start))
    registerRates(serviceFor(start, { RINGWIRE_INVITE_RATE: '6/600', RINGWIRE_PAIR_INVITE_RATE: '3/600' }))
    registerDefaults(serviceFor(start, { RINGWIRE_INVITE_RATE: '', RINGWIRE_PAIR_INVITE_RATE: '' }))
  })
}

/** Invites and hangs up again. */
async function ringOnce(client: Client, calleeId: string): Promise<string> {
  const reply = await request(client, 'call.invite', inviteOf(calleeId))
  if (reply?.event !== 'call.invited') return limitOf(reply, 600_000)
  await request(client, 'call.cancel', { call_uuid: reply.data.call_uuid })
  return 'invited'
}

/** The limit that refuses, and says when it is worth trying again. */
function limitOf(reply: Received | undefined, windowMs: number): string {
  const { limit, message, retry_after_ms: ms } = reply?.error ?? {}
  expect(reply?.error).toEqual({ code: 'RATE_LIMITED', message, retryable: true, retry_after_ms: ms, limit })
  expect(Number.isInteger(ms)).toBe(true)
  expect(ms).toBeGreaterThanOrEqual(1)
  expect(ms).toBeLessThanOrEqual(windowMs)
  return limit
}

function registerRinging(service: () => Service): void {
  test('[INV8] at most 5 calls of one caller ring at once', async () => {
    const { caller, callee, calleeId } = await connectPair(service())
    const tab = await service().connect({ user_id: caller.all[0]?.data.user_id, role: 'customer' })
    const first = await request(caller, 'call.invite', inviteOf(calleeId))
    for (let n = 0; n < 4; n++) await request(n % 2 === 0 ? caller : tab, 'call.invite', inviteOf(someone('x')))
    const reply = await request(caller, 'call.invite', inviteOf(someone('x')))
    expect(limitOf(reply, 45_000)).toBe('ringing')
    // Other sessions are the same caller, other callers are not.
    expect((await request(tab, 'call.invite', inviteOf(someone('x'))))?.error?.code).toBe('RATE_LIMITED')
    const other = await connectPair(service())
    expect((await request(other.caller, 'call.invite', inviteOf(calleeId)))?.event).toBe('call.invited')

    callee.send('call.accept', { call_uuid: first?.data.call_uuid })
    await caller.next('call.accepted')
    expect((await request(caller, 'call.invite', inviteOf(someone('x'))))?.event).toBe('call.invited')
  })

  test('[INV8] two tabs that send twenty invites at once get five calls', async () => {
    const callerId = someone('caller')
    const tabs = await Promise.all([0, 1].map(() => service().connect({ user_id: callerId, role: 'customer' })))
    for (let n = 0; n < 10; n++) for (const tab of tabs) tab.send('call.invite', inviteOf(someone('callee')), `r-${n}`)
    await quiet(...tabs)
    const outcomes = tabs.flatMap((tab) => received(tab).slice(1)).map(({ event, error }) => error?.code ?? event)
    expect(outcomes.toSorted()).toEqual([...Array(15).fill('RATE_LIMITED'), ...Array(5).fill('call.invited')])
  })

  test('[INV8] [INV3] [INV7] repeats and redials are no new calls: they pass where five ring', async () => {
    const { caller, callee, calleeId } = await connectPair(service())
    const tab = await service().connect({ user_id: caller.all[0]?.data.user_id, role: 'customer' })
    const first = await request(caller, 'call.invite', inviteOf(calleeId))
    for (let n = 0; n < 4; n++) await request(caller, 'call.invite', inviteOf(someone('x')))
    const repeat = await request(tab, 'call.invite', inviteOf(calleeId, { call_uuid: first?.data.call_uuid }))
    expect(repeat?.data).toEqual(first?.data)
    // Another tab's redial ends the old call, so that there are never six.
    const redial = await request(tab, 'call.invite', inviteOf(calleeId))
    expect(redial?.event).toBe('call.invited')
    await callee.next('call.cancelled')
  })
}

function registerRates(service: () => Service): void {
  test('[INV8] per pair', async () => {
    const { caller, callerId, calleeId } = await connectPair(service())
    const outcomes: string[] = []
    for (let n = 0; n < 4; n++) outcomes.push(await ringOnce(caller, calleeId))
    expect(outcomes).toEqual(['invited', 'invited', 'invited', 'pair_invites'])
    // From another session too; to somebody else it is free.
    const tab = await service().connect({ user_id: callerId, role: 'customer' })
    expect(await ringOnce(tab, calleeId)).toBe('pair_invites')
    expect(await ringOnce(caller, someone('else'))).toBe('invited')
    // The other way round is another pair.
    const callee = await service().connect({ user_id: calleeId, role: 'agent' })
    const back = await request(callee, 'call.invite', { callee_user_id: callerId, callee_role: 'customer' })
    expect(back?.event).toBe('call.invited')
  })

  test('[INV8] per caller', async () => {
    const { caller } = await connectPair(service())
    const outcomes: string[] = []
    for (let n = 0; n < 7; n++) outcomes.push(await ringOnce(caller, someone('callee')))
    expect(outcomes).toEqual([...Array(6).fill('invited'), 'invites'])
    const { caller: other } = await connectPair(service())
    expect(await ringOnce(other, someone('callee'))).toBe('invited')
  })

  test('[INV8] what starts no call does not count: repeats, refusals, glare', async () => {
    const { caller, callee, callerId, calleeId } = await connectPair(service())
    const first = await request(caller, 'call.invite', inviteOf(calleeId))
    for (let n = 0; n < 10; n++) {
      const repeat = await request(caller, 'call.invite', inviteOf(calleeId, { call_uuid: first?.data.call_uuid }))
      expect(repeat?.event).toBe('call.invited')
      await request(caller, 'call.invite', inviteOf(calleeId, { call_type: '?' }))
      await request(caller, 'call.invite', inviteOf(someone('x'), { call_uuid: first?.data.call_uuid }))
      const crossing = await request(callee, 'call.invite', { callee_user_id: callerId, callee_role: 'customer' })
      expect(crossing?.error.code).toBe('CALL_GLARE')
    }
    caller.send('call.cancel', { call_uuid: first?.data.call_uuid })
    await callee.next('call.cancelled')
    const outcomes: string[] = []
    for (let n = 0; n < 3; n++) outcomes.push(await ringOnce(caller, calleeId))
    expect(outcomes).toEqual(['invited', 'invited', 'pair_invites'])
    const back = await request(callee, 'call.invite', { callee_user_id: callerId, callee_role: 'customer' })
    expect(back?.event).toBe('call.invited')
  })
}

function registerDefaults(service: () => Service): void {
  test('[INV8] by default 30 a minute per pair and 30 a minute per caller', async () => {
    const { caller, calleeId } = await connectPair(service())
    const since = performance.now()
    const invitesTill = async (limit: string, callee: () => string) => {
      let invites = 0
      let outcome = await ringOnce(caller, callee())
      for (; outcome === 'invited'; outcome = await ringOnce(caller, callee())) invites++
      expect(outcome).toBe(limit)
      return invites
    }
    const toOne = await invitesTill('pair_invites', () => calleeId)
    const toOthers = await invitesTill('invites', () => someone('callee'))
    // One more comes every two seconds; the clocks of two nodes may differ a little.
    const more = Math.ceil((performance.now() - since) / 2_000) + 1
    expect(toOne).toBeWithin(30, 30 + more)
    expect(toOne + toOthers).toBeWithin(30, 30 + more)
  })
}
