import { expect, test } from 'bun:test'
import { type Call, callKey } from '../call/call.ts'
import { somebody } from '../ports/sessions.fixture.ts'
import { StoreError } from '../ports/store-error.ts'
import { answered, connectPeer, done, eventsOf, openDomains } from './domain.fixture.ts'

const openDomain = openDomains()

test('[XFER1] who is transferred hears of the new call before it hears that nobody answered there, also where that could not be told', async () => {
  /** No session can be told of another call than this one. */
  let only: string | undefined
  const domain = await openDomain({
    sessions: (real) => ({
      apply: (id, step) =>
        only === undefined || step.call === only
          ? real.apply(id, step)
          : Promise.reject(new StoreError('unavailable', 'away')),
    }),
  })
  const come = () => connectPeer(domain, { ...somebody(), role: 'customer' }, 'phone', ['transfer'])
  const [ann, ben, dee] = [await come(), await come(), await come()]
  const first = await answered(domain, ann, ben)
  const [heard, asked] = [eventsOf(ann).length, eventsOf(ben).length]
  const { userId, role } = dee.actor.participant
  only = callKey(first)
  const begun = await domain.calls.transfer(ben.actor, { call_uuid: first.callUuid, to_user_id: userId, to_role: role })
  const { new_call_uuid: callUuid } = done(begun)
  if (begun.ok) await begun.handedOn
  done(await domain.calls.verb(dee.actor, 'reject', callUuid, null))
  expect([eventsOf(ann).slice(heard), eventsOf(ben).slice(asked)]).toEqual([[], []])
  only = undefined
  expect(await domain.delivery.catchUp((await domain.store.load(first)) as Call)).toBe('done')
  expect(eventsOf(ann).slice(heard)).toEqual(['call.transferring', 'call.rejected', 'call.transfer_failed'])
  expect(eventsOf(ben).slice(asked)).toEqual(['call.transfer_failed'])
})

test('[XFER1] a target that cannot be told holds up neither the news that its call failed nor the end of the first one', async () => {
  let silent: string | undefined
  const domain = await openDomain({
    sessions: (real) => ({
      appendRung: (participant, ...how) =>
        participant.userId === silent
          ? Promise.reject(new StoreError('unavailable', 'away'))
          : real.appendRung(participant, ...how),
    }),
  })
  const come = () => connectPeer(domain, { ...somebody(), role: 'customer' }, 'phone', ['transfer'])
  const [ann, ben, dee] = [await come(), await come(), await come()]
  const first = await answered(domain, ann, ben)
  const heard = eventsOf(ann).length
  const { userId, role } = dee.actor.participant
  const begun = await domain.calls.transfer(ben.actor, { call_uuid: first.callUuid, to_user_id: userId, to_role: role })
  if (begun.ok) await begun.handedOn
  silent = userId
  done(await domain.calls.verb(ann.actor, 'cancel', done(begun).new_call_uuid, null))
  done(await domain.calls.verb(ben.actor, 'end', first.callUuid, null))
  expect(eventsOf(ann).slice(heard)).toEqual(['call.transferring', 'call.transfer_failed', 'call.ended'])
})
