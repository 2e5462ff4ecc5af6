import { expect, test } from 'bun:test'
import type { Call, CallClient, CallState } from '@ringwire/client/types'
import { createLine } from './line.ts'

type Listener = (payload: never) => void

/** The events of a stand-in: a listener that is added twice hears twice, as in the client. */
function events() {
  let all: { event: string; listener: Listener }[] = []
  return {
    on(event: string, listener: Listener) {
      const added = { event, listener }
      all.push(added)
      return () => {
        all = all.filter((each) => each !== added)
      }
    },
    emit(event: string, payload: unknown) {
      for (const each of all) if (each.event === event) each.listener(payload as never)
    },
  }
}

/** A call that the test moves; `asked` has what the line asked of it. */
function standInCall(direction: 'incoming' | 'outgoing' = 'incoming', callType = 'video') {
  const { on, emit } = events()
  const asked: string[] = []
  const ask = (name: string) => async (reason?: string) => void asked.push(reason ? `${name} ${reason}` : name)
  const state = { name: 'ringing', direction, answering: false, alerting: false } as unknown as CallState
  const call = {
    ...{ callUuid: crypto.randomUUID(), direction, callType, state, on, invited: Promise.resolve() },
    peer: { userId: 'ben', role: 'agent', displayName: null },
    ...{ accept: ask('accept'), reject: ask('reject'), alerting: ask('alerting'), end: ask('end') },
    ...{ sendMedia: async () => {}, sendStats: async () => {}, claimSignals: () => () => {} },
  }
  return {
    call: call as unknown as Call,
    asked,
    become(next: object) {
      call.state = { ...call.state, ...next } as CallState
      emit('state', call.state)
    },
  }
}

function standInClient() {
  const { on, emit } = events()
  const calls: Call[] = []
  const outgoing = standInCall('outgoing')
  return {
    client: { calls, on, call: () => outgoing.call, state: { name: 'online' } } as unknown as CallClient,
    outgoing,
    rings(callType = 'video') {
      const it = standInCall('incoming', callType)
      calls.push(it.call)
      emit('incoming', it.call)
      return it
    },
  }
}

test('two providers of one client: a call that comes rings once, and one of them may go', () => {
  const { client, rings } = standInClient()
  const line = createLine(client)
  const ends = [line.attach(), line.attach()]
  const first = rings()
  expect([first.asked, line.get().phase]).toEqual([['alerting'], 'incoming'])
  const second = rings()
  expect(second.asked).toEqual(['reject busy'])
  ends[0]?.()
  expect(rings().asked).toEqual(['reject busy'])
  ends[1]?.()
  expect(rings().asked).toEqual([])
})
