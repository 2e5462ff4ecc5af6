import { describe, expect, test } from 'bun:test'
import { someone } from '@ringwire/testkit/flows'
import type { RingwireErrorShape } from '../src/types.ts'
import { next, online, ringing, stateOf, talk, until } from './support/people.ts'
import { candidate, createStage, memory } from './support/stage.ts'

/** The SDK against the service as its own process: a page that is loaded again. */
const stage = createStage()

describe('a page that is loaded again', () => {
  test('[RES1] finds its session in the storage, and its live call in the session', async () => {
    const storage = memory()
    const { caller, callee } = await stage.two({ storage })
    const calls = await talk(caller, callee)
    const before = await online(callee)
    const kept = new Map(storage.items)

    // The page goes without a word, and the next one has what it left in the storage.
    stage.network.refuse()
    await until('a loss', callee.client, () => callee.client.state.name === 'waiting')
    const left = callee.client
    const missed = calls.out.sendCandidate(candidate('meanwhile'))
    await missed
    left.close()
    for (const [key, value] of kept) storage.items.set(key, value)
    stage.network.mend()

    const page = stage.add(callee.userId, 'agent', { storage, url: stage.network.wsUrl })
    const heard: string[] = []
    page.client.on('calls', ([call]) => {
      call?.on('candidate', ({ candidate }) => heard.push(candidate))
      call?.on('resynced', ({ restored }) => heard.push(`restored ${restored}`))
    })
    const after = await online(page)
    expect(after).toMatchObject({ recovered: true, sessionId: before.sessionId })
    const [call] = page.client.calls
    expect(page.restored).toEqual([call!])
    expect(call).toMatchObject({ callUuid: calls.out.callUuid, direction: 'incoming', callType: 'audio' })
    expect(call!.peer).toEqual({ userId: caller.userId, role: 'customer', displayName: caller.userId })
    expect(call!.state.name).toBe('accepted')
    const answer = next(calls.out, 'answer')
    await call!.sendAnswer({ type: 'answer', sdp: 'v=0 new page' })
    await answer
    expect(heard).toEqual(['restored true', 'meanwhile'])
    await call!.end()
    expect(await stateOf(calls.out, 'over')).toMatchObject({ reason: 'hangup' })
  })

  test('a call that rings for it rings for the next page, too', async () => {
    const storage = memory()
    const { caller, callee } = await stage.two({ storage })
    const out = caller.client.call({ userId: callee.userId, role: 'agent' })
    await ringing(callee)
    const kept = new Map(storage.items)
    stage.network.refuse()
    await until('a loss', callee.client, () => callee.client.state.name === 'waiting')
    callee.client.close()
    for (const [key, value] of kept) storage.items.set(key, value)
    stage.network.mend()
    const page = stage.add(callee.userId, 'agent', { storage, url: stage.network.wsUrl })
    await online(page)
    const incoming = await ringing(page, out.callUuid)
    await incoming.accept()
    await stateOf(out, 'accepted')
  })

  test('4409: the newest page has the session, the older one stays away', async () => {
    const storage = memory()
    const { callee } = await stage.two({ storage })
    const twin = stage.add(callee.userId, 'agent', { storage, url: stage.network.wsUrl })
    expect((await online(twin)).recovered).toBe(true)
    const closed = await until(
      'closed',
      callee.client,
      () => callee.client.state.name === 'closed' && callee.client.state,
    )
    expect(closed.why).toMatchObject({ code: 'replaced', closeCode: 4409 })
    expect(twin.client.state.name).toBe('online')
  })

  test('close ends the session: nobody goes on with it', async () => {
    const storage = memory()
    const { callee } = await stage.two({ storage })
    const kept = new Map(storage.items)
    expect(kept.size).toBe(1)
    const left = stage.network.last
    callee.client.close()
    expect(storage.items.size).toBe(0)
    // Another connection may overtake what ends this one.
    await left.serverGone
    for (const [key, value] of kept) storage.items.set(key, value)
    const page = stage.add(callee.userId, 'agent', { storage, url: stage.network.wsUrl })
    expect((await online(page)).recovered).toBe(false)
    expect(storage.items.size).toBe(1)
  })

  test('a storage that refuses, or holds something else, is no reason to stay away', async () => {
    const errors: RingwireErrorShape[] = []
    const refusing = stage.add(someone('one'), 'customer', {
      storage: {
        getItem: () => Promise.reject(new Error('no')),
        setItem: () => {
          throw new Error('full')
        },
        removeItem: () => Promise.reject(new Error('no')),
      },
    })
    refusing.client.on('error', (error) => errors.push(error))
    await online(refusing)
    expect(errors[0]).toMatchObject({ code: 'REQUEST_FAILED' })
    const storage = memory()
    storage.items.set('ringwire', '{"id":7}')
    const other = stage.add(someone('one'), 'customer', { storage })
    expect((await online(other)).recovered).toBe(false)
  })
})
