import { describe, expect, test } from 'bun:test'
import { somebody } from '../../test/contracts/session-parts.ts'
import { answered, connectPeer, eventsOf, openDomains, type Peer } from '../../test/support/domain.ts'
import type { Call } from '../call/call.ts'

describe('a holder that goes while another session asks for its place', () => {
  const openDomain = openDomains()

  /** An answered call, and what is done at the next load of it. */
  async function setUpCall() {
    const atLoad: (() => Promise<void>)[] = []
    const domain = await openDomain({
      store: (real) => ({
        async load(ref) {
          await atLoad.shift()?.()
          return real.load(ref)
        },
      }),
    })
    const caller = await connectPeer(domain, { ...somebody(), role: 'customer' })
    const holder = await connectPeer(domain, somebody())
    const call = await answered(domain, caller, holder)
    /** The close of its socket is observed. */
    async function loseHolder(): Promise<void> {
      await domain.sessions.detach(holder.id, holder.socket, false, Date.now())
      await domain.calls.run(call, { type: 'lose', sessionId: holder.id, node: holder.actor.node })
    }
    const end = ({ actor }: Peer) => domain.calls.verb(actor, 'end', call.callUuid, null)
    const connect = (deviceId: string) => connectPeer(domain, holder.actor.participant, deviceId)
    return { domain, caller, holder, call, atLoad, loseHolder, end, connect }
  }

  test('[PLACE2] its place is taken by its device at once, and not by another one', async () => {
    for (const device of ['phone', 'tablet']) {
      const { caller, atLoad, loseHolder, end, connect } = await setUpCall()
      const other = await connect(device)
      // After it was refused, and before anybody looks why.
      atLoad.push(loseHolder)
      const ends = device === 'phone'
      expect(await end(other)).toMatchObject(
        ends
          ? { ok: true, value: { status: 'ended', endReason: 'hangup' } }
          : { ok: false, error: { code: 'CALL_NOT_PARTICIPANT' } },
      )
      expect(atLoad).toEqual([])
      expect(eventsOf(caller)).toEqual(['call.accepted', 'call.peer_away', ...(ends ? ['call.ended'] : [])])
    }
  })

  test('[PLACE2] [PLACE4] its place is taken where somebody else has noted the loss while it was pinged', async () => {
    const { domain, caller, holder, call, loseHolder, end, connect } = await setUpCall()
    const phone = await connect('phone')
    let seen: Call | undefined
    holder.socket.probe = async () => {
      await loseHolder()
      seen = await domain.store.load(call)
      return false
    }
    expect(await end(phone)).toMatchObject({ ok: true, value: { status: 'ended', endReason: 'hangup' } })
    expect(seen).toMatchObject({ status: 'accepted', calleePlace: { state: 'vacant', sessionId: holder.id } })
    expect(eventsOf(caller)).toEqual(['call.accepted', 'call.peer_away', 'call.ended'])
  })
})
