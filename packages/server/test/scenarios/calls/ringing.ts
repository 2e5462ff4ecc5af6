import { describe, expect, test } from 'bun:test'
import { acceptedCall, connectPair, invite } from '@ringwire/testkit/flows'
import { soon } from '@ringwire/testkit/patience'
import type { Service } from '@ringwire/testkit/service'
import { connectFour, inviteOf, quiet, recordOf, request, sessionNames } from '../../support/sessions.ts'
import { callIn } from './call-states.ts'
import { type Start, serviceFor } from './composition.ts'

/** Long enough for what has to happen before it, on a machine that is slow as well. */
const ringTimeoutMs = 5_000
/** If nothing has to happen before it. */
const briefMs = 2_000
/** A rule says "within 1 s"; the rest is room for a machine that has other things to do. */
const latestMs = 1_000 + 3_000
/** Clocks are read in whole milliseconds on both sides. */
const readingMs = 2

/** The ring timeout [RING1], and the messages to a session that comes late [RING2]. */
export function registerRinging(name: string, start: Start): void {
  describe(`ringing, ${name}`, () => {
    const service = serviceFor(start, { RINGWIRE_RING_TIMEOUT_MS: String(ringTimeoutMs) })
    registerTimeout(service)
    registerNoTimeout(service)
  })
  describe(`remaining time, ${name}`, () => {
    registerRemaining(serviceFor(start))
  })
}

function registerTimeout(service: () => Service): void {
  test.concurrent('[RING1] nobody answers: missed at its time, to the caller and to every session of the callee', async () => {
    const four = await connectFour(service())
    const began = performance.now()
    const callUuid = await callIn('ringing', four)
    await Promise.all([four.caller, four.callee, four.calleeTab].map((client) => client.next('call.missed')))
    const took = performance.now() - began
    expect(took).toBeGreaterThanOrEqual(ringTimeoutMs - readingMs)
    expect(took).toBeLessThan(soon(ringTimeoutMs + latestMs))
    await quiet(...sessionNames.map((who) => four[who]))
    expect(four.caller.events()).toEqual(['auth.ok', 'call.invited', 'call.missed'])
    expect(four.callerTab.events()).toEqual(['auth.ok'])
    for (const client of [four.callee, four.calleeTab]) {
      expect(client.events()).toEqual(['auth.ok', 'call.ringing', 'call.missed'])
    }
    const record = await recordOf(service(), { user_id: four.callerId, role: 'customer' }, callUuid)
    expect(record).toMatchObject({ status: 'missed', end_reason: 'no_answer', accepted_at: null, duration_ms: null })
    const lasted = Date.parse(record.ended_at) - Date.parse(record.started_at)
    expect(lasted).toBeGreaterThanOrEqual(ringTimeoutMs)
    expect(lasted).toBeLessThan(soon(ringTimeoutMs + latestMs))
  })

  test.concurrent('[RING1] a hundred calls that ring at once are missed once each', async () => {
    const pairs = await Promise.all(Array.from({ length: 100 }, () => connectPair(service())))
    const uuids = await Promise.all(pairs.map(({ caller, calleeId }) => invite(caller, calleeId)))
    await Promise.all(pairs.flatMap(({ caller, callee }) => [caller.next('call.missed'), callee.next('call.missed')]))
    // A whole ring timeout later: more than one sweep, and nobody heard it twice.
    const sentinel = await connectPair(service())
    await invite(sentinel.caller, sentinel.calleeId)
    await sentinel.caller.next('call.missed')
    await quiet(...pairs.flatMap(({ caller, callee }) => [caller, callee]))
    pairs.forEach(({ caller, callee }, index) => {
      expect(caller.events()).toEqual(['auth.ok', 'call.invited', 'call.missed'])
      expect(callee.events()).toEqual(['auth.ok', 'call.ringing', 'call.missed'])
      expect(caller.all.find(({ event }) => event === 'call.missed')?.data.call_uuid).toBe(uuids[index] as string)
    })
  })

  test.concurrent('[RING1] a session that said it is busy is silent at the timeout, too', async () => {
    const four = await connectFour(service())
    const callUuid = await callIn('ringing', four)
    four.callee.send('call.reject', { call_uuid: callUuid, reason: 'busy' })
    await Promise.all([four.caller.next('call.missed'), four.calleeTab.next('call.missed')])
    await quiet(four.callee)
    expect(four.callee.events()).toEqual(['auth.ok', 'call.ringing'])
  })
}

function registerNoTimeout(service: () => Service): void {
  test.concurrent('[RING1] what was answered, rejected or cancelled is not missed later', async () => {
    const answered = await connectPair(service())
    const rejected = await connectPair(service())
    const cancelled = await connectPair(service())
    await acceptedCall(answered)
    rejected.callee.send('call.reject', { call_uuid: await invite(rejected.caller, rejected.calleeId) })
    cancelled.caller.send('call.cancel', { call_uuid: await invite(cancelled.caller, cancelled.calleeId) })
    await Promise.all([rejected.caller.next('call.rejected'), cancelled.callee.next('call.cancelled')])
    const sentinel = await connectPair(service())
    await invite(sentinel.caller, sentinel.calleeId)
    await sentinel.callee.next('call.missed')
    for (const { caller, callee } of [answered, rejected, cancelled]) {
      await quiet(caller, callee)
      expect([...caller.events(), ...callee.events()]).not.toContain('call.missed')
    }
  })

  test.concurrent('[INV3] [RING1] repeating the invite does not ring longer', async () => {
    const { caller, callee, calleeId } = await connectPair(service())
    const began = performance.now()
    const brief = { ring_timeout_ms: briefMs }
    const first = await request(caller, 'call.invite', inviteOf(calleeId, brief))
    const missed = caller.next('call.missed')
    let over = false
    void missed.then(() => {
      over = true
    })
    while (!over) {
      const again = inviteOf(calleeId, { ...brief, call_uuid: first?.data.call_uuid })
      const repeat = await request(caller, 'call.invite', again)
      expect(repeat?.data.expires_at).toBe(first?.data.expires_at)
    }
    expect(performance.now() - began).toBeLessThan(soon(briefMs + latestMs))
    await callee.next('call.missed')
  })
}

function registerRemaining(service: () => Service): void {
  test.concurrent('[RING2] a session that connects while it rings gets the same call with the time that remains', async () => {
    const { caller, callee, callerId, calleeId } = await connectPair(service())
    const metadata = { topic: 'invoice' }
    const reply = await request(caller, 'call.invite', inviteOf(calleeId, { metadata, call_type: 'video' }))
    const first = await callee.next('call.ringing')
    const known = performance.now()
    for (const [role, device] of [
      ['agent', undefined],
      ['agent', 'phone'],
    ] as const) {
      const wish = { user_id: calleeId, role, ...(device === undefined ? {} : { device_id: device }) }
      const token = await service().token(wish)
      const passed = performance.now() - known
      const late = await service().connect(wish, { token })
      const { data } = await late.next('call.ringing')
      expect(data).toEqual({ ...first.data, ring_timeout_ms: expect.any(Number), metadata })
      expect(data).toMatchObject({ caller_user_id: callerId, expires_at: reply?.data.expires_at })
      expect(data.ring_timeout_ms).toBeLessThanOrEqual(45_000 - Math.floor(passed) + readingMs)
      expect(data.ring_timeout_ms).toBeGreaterThan(0)
    }
  })

  test.concurrent('[RING2] metadata is absent where there is none; nothing rings for who connects after the end', async () => {
    const { caller, callee, calleeId } = await connectPair(service())
    const callUuid = await invite(caller, calleeId)
    expect((await callee.next('call.ringing')).data).not.toHaveProperty('metadata')
    callee.send('call.accept', { call_uuid: callUuid })
    await caller.next('call.accepted')
    const late = await service().connect({ user_id: calleeId, role: 'agent' })
    await late.settle()
    expect(late.events()).toEqual(['auth.ok'])
  })

  test.concurrent('[PLACE1] every session of the callee rings, ten of them, and nine hear that it was answered elsewhere', async () => {
    const { caller, callerId, calleeId } = await connectPair(service())
    const wish = { user_id: calleeId, role: 'agent' }
    const tabs = await Promise.all(Array.from({ length: 10 }, () => service().connect(wish)))
    const callUuid = await invite(caller, calleeId)
    await Promise.all(tabs.map((tab) => tab.next('call.ringing')))
    tabs[7]?.send('call.accept', { call_uuid: callUuid })
    await caller.next('call.accepted')
    await quiet(...tabs)
    tabs.forEach((tab, index) => {
      const after = index === 7 ? [] : ['call.cancelled']
      expect(tab.events()).toEqual(['auth.ok', 'call.ringing', ...after])
    })
    const record = await recordOf(service(), { user_id: callerId, role: 'customer' }, callUuid)
    expect(record.status).toBe('accepted')
  })
}
