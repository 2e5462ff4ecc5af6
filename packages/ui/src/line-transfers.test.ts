import { expect, test } from 'bun:test'
import type { Transfers } from '@ringwire/client/transfer'
import type { Call } from '@ringwire/client/types'
import { events, machine, standInCall, standInClient } from './line.fixture.ts'
import { createLine } from './line.ts'

/** Transfers that the test moves. */
function standInTransfers() {
  const { on, emit } = events()
  const asked: unknown[] = []
  const origins = new Set<Call>()
  let refused = false
  const transfers = {
    on,
    of: () => undefined,
    origin: (call: Call) => (origins.has(call) ? { callUuid: 'first', by: call.peer } : undefined),
    async transfer(call: Call, target: unknown) {
      asked.push([call, target])
      if (refused) throw new Error('refused')
    },
    close() {},
  } as unknown as Transfers
  const refuse = () => {
    refused = true
  }
  return { transfers, asked, origins, refuse, moves: (from: Call, call: Call) => emit('moved', { from, call }) }
}

/** In an answered call, with transfers. */
async function transferable() {
  const it = standInTransfers()
  const there = machine()
  const { client, outgoing, rings } = standInClient('audio')
  const line = createLine(client)
  line.configure({ media: { environment: there.environment, storage: null }, transfers: it.transfers })
  line.attach()
  line.place({ userId: 'ben', role: 'agent' })
  outgoing.become({ name: 'accepted' })
  ;(client.calls as Call[]).push(outgoing.call)
  return { ...it, ...there, client, line, outgoing, rings }
}

test('[XFER1] a call that is transferred goes on in its place, and what was muted stays muted', async () => {
  const { line, outgoing, moves, attempts } = await transferable()
  await line.get().media?.setMuted('audio', true)
  const next = standInCall('outgoing', 'audio')
  next.become({ name: 'accepted' })
  const before = line.get().media
  moves(outgoing.call, next.call)
  expect(line.get()).toMatchObject({ call: next.call, phase: 'connecting', since: undefined, other: undefined })
  expect(line.get().media).not.toBe(before)
  expect(line.get().media?.state.muted.audio).toBe(true)
  outgoing.become({ name: 'over', status: 'ended', reason: 'transferred', by: null })
  expect(line.get()).toMatchObject({ call: next.call, phase: 'connecting', ended: undefined })
  // A call that does not belong to the line changes nothing.
  moves(outgoing.call, standInCall('outgoing', 'audio').call)
  expect(line.get().call).toBe(next.call)
  expect(attempts.length).toBe(2)
})

test('[XFER1] a call on hold that is transferred stays behind', async () => {
  const { line, outgoing, moves } = await transferable()
  const second = standInCall('outgoing', 'audio')
  second.become({ name: 'accepted' })
  line.resume(second.call)
  expect([line.get().call, line.get().other?.call, outgoing.call.held]).toEqual([second.call, outgoing.call, true])
  const next = standInCall('outgoing', 'audio')
  next.become({ name: 'accepted' })
  moves(outgoing.call, next.call)
  expect([line.get().call, line.get().other?.call]).toEqual([second.call, next.call])
})

test('[XFER1] the new call of a transfer is left alone until the target answers', async () => {
  const { line, outgoing, origins } = await transferable()
  const promised = standInCall('outgoing', 'audio')
  origins.add(promised.call)
  line.resume(promised.call)
  expect([line.get().call, line.get().other]).toEqual([outgoing.call, undefined])
  // At the target it rings as any other.
  const { call } = standInCall('incoming', 'audio')
  origins.add(call)
  line.resume(call)
  expect(line.get().other?.call).toBe(call)
})

test('[XFER1] somebody is asked first: the call is on hold, and comes back if they decline', async () => {
  const { client, line, outgoing } = await transferable()
  const second = standInCall('outgoing', 'audio')
  Object.assign(client, { call: () => second.call })
  line.consult({ userId: 'eva', role: 'agent' })
  expect([line.get().call, line.get().phase, line.get().other?.call]).toEqual([second.call, 'calling', outgoing.call])
  expect(outgoing.asked).toContain('hold')
  line.connectBoth()
  second.become({ name: 'over', status: 'rejected', reason: 'declined', by: null })
  expect([line.get().call, line.get().other, outgoing.call.held]).toEqual([outgoing.call, undefined, false])
})

test('[XFER1] two calls become one: the older one is transferred, and neither goes on here', async () => {
  for (const isRefused of [false, true]) {
    const { client, line, outgoing, asked, refuse } = await transferable()
    if (isRefused) refuse()
    const second = standInCall('outgoing', 'audio')
    Object.assign(client, { call: () => second.call })
    line.consult({ userId: 'eva', role: 'agent' })
    second.become({ name: 'accepted' })
    ;(client.calls as Call[]).push(second.call)
    line.connectBoth()
    expect(asked).toEqual([[outgoing.call, { to: second.call }]])
    await turns()
    second.become({ name: 'over', status: 'ended', reason: isRefused ? 'hangup' : 'transferred', by: null })
    // After a refusal it is a call as any other.
    expect([isRefused, outgoing.call.held]).toEqual([isRefused, !isRefused])
    outgoing.become({ name: 'over', status: 'ended', reason: 'transferred', by: null })
    expect(line.get().phase).toBe('over')
  }
})

test('[XFER1] one of two calls ends before they become one: the call that is left comes back from its hold', async () => {
  const { client, line, outgoing, refuse } = await transferable()
  refuse()
  const second = standInCall('outgoing', 'audio')
  Object.assign(client, { call: () => second.call })
  line.consult({ userId: 'eva', role: 'agent' })
  second.become({ name: 'accepted' })
  ;(client.calls as Call[]).push(second.call)
  line.connectBoth()
  second.become({ name: 'over', status: 'ended', reason: 'hangup', by: null })
  expect([line.get().call, outgoing.call.held]).toEqual([outgoing.call, true])
  await turns()
  expect([line.get().call, outgoing.call.held]).toEqual([outgoing.call, false])
})

test('[XFER1] only a call that was made to ask is connected without a question', async () => {
  const { client, line, outgoing, rings, origins, environment, transfers } = await transferable()
  const options = { media: { environment, storage: null }, busy: 'wait' } as const
  line.configure(options)
  const calls = client.calls as Call[]
  const second = standInCall('outgoing', 'audio')
  Object.assign(client, { call: () => second.call })
  line.consult({ userId: 'eva', role: 'agent' })
  calls.push(second.call)
  second.become({ name: 'accepted' })
  // Nothing can be connected without transfers.
  expect(line.isConsulted()).toBe(false)
  line.configure({ ...options, transfers })
  expect(line.isConsulted()).toBe(true)
  line.swap()
  expect(line.isConsulted()).toBe(true)
  // It was transferred here meanwhile.
  origins.add(second.call)
  expect(line.isConsulted()).toBe(false)
  second.become({ name: 'over', status: 'ended', reason: 'hangup', by: null })
  expect(line.isConsulted()).toBe(false)
  calls.splice(0, 2, outgoing.call)
  const customer = rings('audio')
  line.holdAndAnswer()
  customer.become({ name: 'accepted' })
  expect([line.get().call, line.get().other?.call]).toEqual([customer.call, outgoing.call])
  expect(line.isConsulted()).toBe(false)
})

test('[XFER1] while the line is guarded, hanging up asks', async () => {
  const { line, outgoing } = await transferable()
  let asked = 0
  line.guard(() => asked++)
  line.hangUp()
  expect([asked, outgoing.asked.includes('end')]).toEqual([1, false])
  line.guard(undefined)
  line.hangUp()
  expect([asked, outgoing.asked.includes('end')]).toEqual([1, true])
})

test('[XFER1] a transfer is asked of the call in front, and of none', async () => {
  const { line, outgoing, asked } = await transferable()
  line.transfer({ userId: 'eva', role: 'agent' })
  expect(asked).toEqual([[outgoing.call, { userId: 'eva', role: 'agent' }]])
  const idle = createLine(standInClient().client)
  idle.transfer({ userId: 'eva', role: 'agent' })
  idle.connectBoth()
  idle.consult({ userId: 'eva', role: 'agent' })
  expect(idle.get().phase).toBe('idle')
})

async function turns(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
}
