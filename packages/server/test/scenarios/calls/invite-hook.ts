import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Client } from '@ringwire/testkit/client'
import { type Answer, Decider } from '@ringwire/testkit/decider'
import { candidate, someone } from '@ringwire/testkit/flows'
import { inTime, soon } from '@ringwire/testkit/patience'
import { productKey, type Service } from '@ringwire/testkit/service'
import { Webhook } from 'standardwebhooks'
import {
  about,
  candidatesOf,
  connectExtended,
  connectExtendedPair,
  answeredCall as extendedCall,
} from '../../support/extended-flows.ts'
import { runBeside } from '../../support/products.ts'
import { inviteOf, quiet, recordOf, request } from '../../support/sessions.ts'
import { type Env, type Start, serviceFor } from './composition.ts'

const env: Env = {
  RINGWIRE_BOOTSTRAP_KEYS: `${productKey.id}:${productKey.secret}:decided,easy,shop`,
  RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1',
  RINGWIRE_INVITE_RATE: '40/60',
}

interface Changed {
  readonly invite_secret: string
}

/** The backend of a product decides on invites before they ring [HOOK5]. */
export function registerInviteHook(name: string, start: Start): void {
  describe(`a backend that decides on invites, ${name}`, () => {
    const service = serviceFor(start, env)
    let decider: Decider
    let secret = ''
    beforeAll(async () => {
      decider = await Decider.open()
      secret = (await change(service(), 'decided', { invite_url: decider.url })).invite_secret
      await change(service(), 'easy', { invite_url: decider.url, invite_failure: 'allow' })
    })
    afterAll(() => decider?.close())

    async function pair(product = 'decided', answer?: () => Answer | Promise<Answer>) {
      const [callerId, calleeId] = [someone('caller'), someone('callee')]
      if (answer !== undefined) decider.about(calleeId, answer)
      const caller = await service().connect({ product, user_id: callerId, role: 'customer', display_name: 'Ann' })
      const callee = await service().connect({ product, user_id: calleeId, role: 'agent' })
      return { product, callerId, calleeId, caller, callee }
    }
    // The backend answers in time, unless the machine stands still for the 2 s that it has.
    const scenario = (name: string, work: () => Promise<void>) => test(name, () => inTime(work), 120_000)
    const asCaller = ({ product, callerId }: { product: string; callerId: string }) => ({
      ...{ product, user_id: callerId, role: 'customer' },
    })

    scenario('[HOOK5] it is asked in a signed question, and its metadata and ring time count', async () => {
      const answer = { decision: 'allow', metadata: { vip: true }, ring_timeout_ms: 20_000 }
      const { caller, callee, callerId, calleeId } = await pair('decided', () => answer)
      const callUuid = crypto.randomUUID()
      const more = { call_uuid: callUuid, metadata: { order: 7 }, ring_timeout_ms: 30_000, context_id: '42' }
      caller.send('call.invite', inviteOf(calleeId, more))
      expect((await callee.next('call.ringing')).data).toMatchObject({ metadata: { vip: true } })
      expect((await caller.next('call.invited')).data).toMatchObject({ status: 'ringing', ring_timeout_ms: 20_000 })
      const [question, ...others] = decider.of(calleeId)
      expect(others).toEqual([])
      const { text = '', headers = {} } = question ?? {}
      expect(new Webhook(secret).verify(text, headers as Record<string, string>)).toMatchObject({
        type: 'call.invite',
        data: {
          call_uuid: callUuid,
          caller: { user_id: callerId, role: 'customer', display_name: 'Ann' },
          callee: { user_id: calleeId, role: 'agent' },
          ...{ call_type: 'audio', context_id: '42', metadata: { order: 7 } },
        },
      })
      expect(headers['webhook-id']).toBe(`inv_${callUuid.replaceAll('-', '')}`)
    })

    scenario('[HOOK5] what it refuses rings nobody: the caller hears why, and the record says rejected', async () => {
      const people = await pair('decided', () => ({ decision: 'refuse', reason: 'blocked' }))
      const { caller, callee, calleeId } = people
      const callUuid = crypto.randomUUID()
      caller.send('call.invite', inviteOf(calleeId, { call_uuid: callUuid }))
      expect((await caller.next('call.error')).error).toMatchObject({ code: 'CALL_REFUSED', reason: 'blocked' })
      await quiet(caller, callee)
      expect(callee.events()).toEqual(['auth.ok'])
      const record = await recordOf(service(), asCaller(people), callUuid)
      expect(record).toMatchObject({ status: 'rejected', end_reason: 'blocked', accepted_at: null })
      // A repeat is answered by the record: the backend gets no second question.
      const repeat = await request(caller, 'call.invite', inviteOf(calleeId, { call_uuid: callUuid }))
      expect(repeat?.data).toMatchObject({ call_uuid: callUuid, status: 'rejected' })
      expect(decider.of(calleeId)).toHaveLength(1)
    })

    const invalid: readonly Answer[] = [500, 204, 'allow', { decision: 'maybe' }, '{"decision":"allow"', 'hang']
    for (const answer of [...invalid, { decision: 'redirect', callee: { role: 'nobody', user_id: 'x' } }]) {
      const what = typeof answer === 'object' ? JSON.stringify(answer) : String(answer)
      scenario(`[HOOK5] no valid answer, ${what}: the product says what becomes of the invite`, async () => {
        const [strict, easy] = await Promise.all([pair('decided', () => answer), pair('easy', () => answer)])
        strict.caller.send('call.invite', inviteOf(strict.calleeId))
        easy.caller.send('call.invite', inviteOf(easy.calleeId))
        const { error } = await strict.caller.next('call.error')
        expect(error).toMatchObject({ code: 'CALL_REFUSED', reason: 'unavailable' })
        await easy.callee.next('call.ringing')
        expect((await easy.caller.next('call.invited')).data).toMatchObject({ status: 'ringing', delivered: true })
        await quiet(strict.caller, strict.callee)
        expect(strict.callee.events()).toEqual(['auth.ok'])
      })
    }

    scenario('[HOOK5] an answer of 10 MB is no answer', async () => {
      const { caller, calleeId } = await pair('decided', () => `{"decision":"allow"${' '.repeat(10_000_000)}}`)
      caller.send('call.invite', inviteOf(calleeId))
      expect((await caller.next('call.error')).error).toMatchObject({ code: 'CALL_REFUSED', reason: 'unavailable' })
    })

    scenario('[HOOK5] a redirected call rings somebody else, once, and a repeat of the invite finds it', async () => {
      const other = await pair('decided', () => ({ decision: 'refuse', reason: 'never_asked' }))
      const callee = { role: 'agent', user_id: other.calleeId }
      const people = await pair('decided', () => ({ decision: 'redirect', callee }))
      const callUuid = crypto.randomUUID()
      const invite = inviteOf(people.calleeId, { call_uuid: callUuid })
      people.caller.send('call.invite', invite)
      expect((await other.callee.next('call.ringing')).data).toMatchObject({ call_uuid: callUuid })
      expect((await people.caller.next('call.invited')).data).toMatchObject({ call_uuid: callUuid, status: 'ringing' })
      const repeat = await request(people.caller, 'call.invite', invite)
      expect(repeat?.data).toMatchObject({ call_uuid: callUuid, status: 'ringing' })
      expect([decider.of(people.calleeId).length, decider.of(other.calleeId).length]).toEqual([1, 0])
      other.callee.send('call.accept', { call_uuid: callUuid })
      await people.caller.next('call.accepted')
      await quiet(people.callee)
      expect(people.callee.events()).toEqual(['auth.ok'])
      const record = await recordOf(service(), asCaller(people), callUuid)
      expect(record).toMatchObject({ status: 'accepted', peer: { user_id: other.calleeId } })
    })

    scenario(
      '[HOOK5] [GROUP1] a call is redirected to a group, which rings as it is set, for its own time',
      async () => {
        const [ben, eve] = [await pair(), await pair()]
        const members = [ben.calleeId, eve.calleeId]
        for (const strategy of ['all', 'in_turn']) {
          const group = someone('group')
          await putGroup(service(), group, { members, strategy, ring_ms: 300_000 })
          const people = await pair('decided', () => ({ decision: 'redirect', callee: { role: 'agent', group } }))
          const callUuid = crypto.randomUUID()
          const invite = inviteOf(people.calleeId, { call_uuid: callUuid })
          people.caller.send('call.invite', invite)
          const { data } = await ben.callee.next('call.ringing', ({ data }) => data.call_uuid === callUuid)
          expect(data).toMatchObject({ callee_group: group })
          const invited = await people.caller.next('call.invited')
          expect(invited.data).toMatchObject({ status: 'ringing', ring_timeout_ms: 300_000, delivered: true })
          const repeat = await request(people.caller, 'call.invite', invite)
          expect(repeat?.data).toMatchObject({ call_uuid: callUuid, status: 'ringing' })
          expect(decider.of(people.calleeId)).toHaveLength(1)
          ben.callee.send('call.reject', { call_uuid: callUuid })
          await eve.callee.next('call.ringing', ({ data }) => data.call_uuid === callUuid)
          eve.callee.send('call.accept', { call_uuid: callUuid })
          await people.caller.next('call.accepted')
          await quiet(people.callee, ben.callee, eve.callee)
          expect(people.callee.events()).toEqual(['auth.ok'])
          const record = await recordOf(service(), asCaller(people), callUuid)
          expect(record).toMatchObject({ status: 'accepted', peer: { user_id: eve.calleeId, group } })
          eve.callee.send('call.end', { call_uuid: callUuid })
          await people.caller.next('call.ended')
        }
      },
    )

    scenario('[HOOK5] [GROUP1] members who leave while the backend decides stop ringing', async () => {
      const [ben, eve] = [await pair(), await pair()]
      const group = someone('group')
      const put = (...members: string[]) => putGroup(service(), group, { members, strategy: 'all' })
      await put(ben.calleeId, eve.calleeId)
      const people = await pair()
      let next = [eve.calleeId]
      decider.about(group, async () => {
        await put(...next)
        return { decision: 'allow' }
      })
      const invite = () => people.caller.send('call.invite', { callee_role: 'agent', callee_group: group })
      invite()
      const { data } = await ben.callee.next('call.cancelled')
      expect(data).toMatchObject({ reason: 'left_group', status: 'ringing' })
      const { call_uuid } = (await eve.callee.next('call.ringing')).data
      expect((await request(ben.callee, 'call.accept', { call_uuid }))?.error?.code).toBe('CALL_NOT_FOUND')
      eve.callee.send('call.accept', { call_uuid })
      await people.caller.next('call.accepted')
      people.caller.send('call.end', { call_uuid })
      await eve.callee.next('call.ended')
      // Nobody is left.
      next = []
      invite()
      expect((await people.caller.next('call.cancelled')).data).toMatchObject({ reason: 'ended_by_server' })
      expect((await eve.callee.next('call.cancelled')).data).toMatchObject({ reason: 'left_group' })
      expect(ben.callee.events()).toEqual(['auth.ok', 'call.ringing', 'call.cancelled', 'call.error'])
    })

    scenario(
      '[HOOK5] [XFER1] [GROUP1] a transfer is redirected to a group: whoever of it answers goes on with the call',
      async () => {
        const [annId, benId, group] = [someone('ann'), someone('ben'), someone('group')]
        const [eve, dan] = [await pair(), await pair()]
        await putGroup(service(), group, { members: [benId, eve.calleeId, dan.calleeId], strategy: 'all' })
        const connect = (user_id: string, role: string) =>
          connectExtended(
            service(),
            { product: 'decided', user_id, role, allowed_peer_role: 'agent' },
            { can: 'transfer' },
          )
        const [ann, ben] = [await connect(annId, 'customer'), await connect(benId, 'agent')]
        const first = await extendedCall({ caller: ann, callee: ben, callerId: annId, calleeId: benId })
        const { calleeId: named } = await pair('decided', () => ({
          decision: 'redirect',
          callee: { role: 'agent', group },
        }))
        const started = await ben.request('call.transfer', { call_uuid: first, to_role: 'agent', to_user_id: named })
        const next = started.data.new_call_uuid
        expect((await ann.next('call.transferring', about(first))).data).toMatchObject({
          ...{ new_call_uuid: next, to: { user_id: null, role: 'agent', group } },
        })
        for (const { callee } of [eve, dan])
          expect((await callee.next('call.ringing')).data).toMatchObject({
            ...{ call_uuid: next, callee_group: group, caller_user_id: annId },
          })
        eve.callee.send('call.accept', { call_uuid: next })
        await Promise.all([ann.next('call.accepted', about(next)), ben.next('call.ended', about(first))])
        expect((await dan.callee.next('call.cancelled')).data).toMatchObject({ reason: 'answered_elsewhere' })
        // The transferring side is a member, and in a call.
        expect(ben.pushes.filter(({ data }) => data.call_uuid === next)).toEqual([])
        const record = await recordOf(service(), { product: 'decided', user_id: annId, role: 'customer' }, next)
        expect(record).toMatchObject({
          ...{ status: 'accepted', peer: { user_id: eve.calleeId, group }, transferred_from: first },
        })
      },
    )

    scenario('[HOOK5] [GROUP1] who is called instead of a group rings for the time of the product', async () => {
      const group = someone('group')
      await putGroup(service(), group, { members: [], strategy: 'all', ring_ms: 300_000 })
      const people = await pair()
      const callee = { role: 'agent', user_id: people.calleeId }
      decider.about(group, () => ({ decision: 'redirect', callee }))
      people.caller.send('call.invite', { callee_role: 'agent', callee_group: group })
      const { data } = await people.callee.next('call.ringing')
      expect(data.callee_group).toBeUndefined()
      expect((await people.caller.next('call.invited')).data).toMatchObject({ ring_timeout_ms: 45_000 })
    })

    scenario(
      '[HOOK5] [GROUP1] a redirection to a group that there is not, or may not be called, is no answer',
      async () => {
        const group = someone('group')
        await putGroup(service(), group, { members: [], strategy: 'all' }, 'doctor')
        for (const callee of [
          { role: 'agent', group },
          { role: 'doctor', group },
          { role: 'agent', group, user_id: 'ben' },
        ]) {
          const answer = () => ({ decision: 'redirect', callee })
          const [strict, easy] = await Promise.all([pair('decided', answer), pair('easy', answer)])
          strict.caller.send('call.invite', inviteOf(strict.calleeId))
          expect((await strict.caller.next('call.error')).error).toMatchObject({ reason: 'unavailable' })
          easy.caller.send('call.invite', inviteOf(easy.calleeId))
          await easy.callee.next('call.ringing')
        }
      },
    )

    scenario('[HOOK5] a repeat while it decides joins the open question, also on another socket', async () => {
      const { promise, resolve } = Promise.withResolvers<Answer>()
      const people = await pair('decided', () => promise)
      const { caller, callee, calleeId } = people
      const again = await service().connect(asCaller(people))
      const callUuid = crypto.randomUUID()
      const invite = inviteOf(calleeId, { call_uuid: callUuid })
      caller.send('call.invite', invite)
      await decider.asked(calleeId)
      again.send('call.invite', invite)
      // A request about something else is answered once the invite waits for the backend.
      again.send('call.end', { call_uuid: crypto.randomUUID() })
      expect((await again.next('call.error')).error?.code).toBe('CALL_NOT_FOUND')
      resolve({ decision: 'allow' })
      for (const client of [caller, again]) {
        expect((await client.next('call.invited')).data).toMatchObject({ call_uuid: callUuid, status: 'ringing' })
      }
      await callee.next('call.ringing')
      await quiet(callee)
      expect(callee.events()).toEqual(['auth.ok', 'call.ringing'])
      // Nodes ask each for itself, under the same webhook-id.
      expect(new Set(decider.of(calleeId).map(({ headers }) => headers['webhook-id'])).size).toBe(1)
    })

    scenario('[HOOK5] a cancel withdraws the question at once, and nothing rings', async () => {
      const people = await pair('decided', () => 'hang')
      const { caller, callee, calleeId } = people
      const callUuid = crypto.randomUUID()
      caller.send('call.invite', inviteOf(calleeId, { call_uuid: callUuid }))
      await decider.asked(calleeId)
      const before = performance.now()
      caller.send('call.cancel', { call_uuid: callUuid })
      expect((await caller.next('call.invited')).data).toMatchObject({ call_uuid: callUuid, status: 'cancelled' })
      expect(performance.now() - before).toBeLessThan(soon(1_900))
      await quiet(caller, callee)
      expect(callee.events()).toEqual(['auth.ok'])
      const record = await recordOf(service(), asCaller(people), callUuid)
      expect(record).toMatchObject({ status: 'cancelled', end_reason: 'caller_cancelled' })
    })

    scenario('[HOOK5] other requests of the session overtake the question', async () => {
      const { caller, calleeId } = await pair('decided', () => 'hang')
      const free = await pair()
      caller.send('call.invite', inviteOf(calleeId))
      await decider.asked(calleeId)
      caller.send('call.invite', inviteOf(free.calleeId))
      await free.callee.next('call.ringing')
      expect(caller.events()).not.toContain('call.error')
      await caller.next('call.error')
    })

    scenario('[HOOK5] relays of an extended session overtake it, too, in order and once', async () => {
      const talking = await connectExtendedPair(service(), { product: 'decided' })
      const callUuid = await extendedCall(talking)
      const { calleeId } = await pair('decided', () => 'hang')
      const refused = talking.caller.request('call.invite', inviteOf(calleeId))
      await decider.asked(calleeId)
      const acks = [0, 1, 2, 3].map((n) => talking.caller.request('webrtc.ice_candidate', candidate(callUuid, n)))
      await talking.callee.next('webrtc.ice_candidate', ({ data }) => data.candidate.candidate === 'candidate:3')
      expect((await refused).error).toMatchObject({ code: 'CALL_REFUSED', reason: 'unavailable' })
      expect((await Promise.all(acks)).map(({ event }) => event)).toEqual(Array(4).fill('call.ack'))
      await talking.callee.settle()
      expect(candidatesOf(talking.callee, callUuid)).toEqual([0, 1, 2, 3])
    })

    scenario('[HOOK5] a caller that goes for good withdraws it', async () => {
      const { caller, callee, calleeId } = await pair('decided', () => 'hang')
      caller.send('call.invite', inviteOf(calleeId))
      await decider.asked(calleeId)
      await caller.close()
      await quiet(callee)
      expect(callee.events()).toEqual(['auth.ok'])
    })

    scenario('[HOOK5] glare is looked for after it has decided', async () => {
      const { promise, resolve } = Promise.withResolvers<Answer>()
      const { caller, callee, callerId, calleeId } = await pair('decided', () => promise)
      caller.send('call.invite', inviteOf(calleeId))
      await decider.asked(calleeId)
      const back = await request(callee, 'call.invite', { callee_user_id: callerId, callee_role: 'customer' })
      resolve({ decision: 'allow' })
      const { error } = await caller.next('call.error')
      expect([error?.code, error?.call_uuid]).toEqual(['CALL_GLARE', back?.data.call_uuid ?? (await invitedTo(callee))])
    })

    scenario('[HOOK5] who is not asked any more decides nothing; a new start has a new secret', async () => {
      const set = (body: object) => change(service(), 'shop', body)
      const first = await set({ invite_url: decider.url })
      expect((await set({ invite_url: decider.url })).invite_secret).toBe(first.invite_secret)
      expect(await set({ invite_failure: 'allow' })).not.toHaveProperty('invite_secret')
      await set({ invite_url: null })
      const { caller, callee, calleeId } = await pair('shop', () => ({ decision: 'refuse' }))
      caller.send('call.invite', inviteOf(calleeId))
      await callee.next('call.ringing')
      expect(decider.of(calleeId)).toEqual([])
      expect((await set({ invite_url: decider.url })).invite_secret).not.toBe(first.invite_secret)
      await set({ invite_url: null })
    })

    scenario('[HOOK5] [TRACE1] the timeline and the command line say what was decided', async () => {
      const { caller, calleeId } = await pair('decided', () => ({ decision: 'refuse', reason: 'blocked' }))
      const callUuid = crypto.randomUUID()
      caller.send('call.invite', inviteOf(calleeId, { call_uuid: callUuid }))
      await caller.next('call.error')
      const response = await fetch(`${service().url}/v1/server/calls/${callUuid}/timeline?product=decided`, {
        headers: { 'X-SVC-Product-Key-ID': productKey.id, 'X-SVC-Product-Secret': productKey.secret },
      })
      const { entries, summary } = await response.json()
      expect(summary).toBe('The backend refused the call (blocked), so it did not ring.')
      expect(entries).toContainEqual(
        expect.objectContaining({ what: 'invite_hook', detail: { result: 'refuse', after_ms: expect.any(Number) } }),
      )
      expect(await runBeside(service(), 'products', 'list')).toContain(decider.url)
    })
  })
}

async function invitedTo(client: Client): Promise<string> {
  return (await client.next('call.invited')).data.call_uuid
}

/** As the backend of the product. */
async function putGroup(service: Service, group: string, body: object, role = 'agent'): Promise<void> {
  const response = await fetch(`${service.url}/v1/server/groups/${role}/${group}?product=decided`, {
    method: 'PUT',
    headers: { 'X-SVC-Product-Key-ID': productKey.id, 'X-SVC-Product-Secret': productKey.secret },
    body: JSON.stringify(body),
  })
  expect(response.status).toBe(200)
}

async function change(service: Service, product: string, body: object): Promise<Changed> {
  const response = await fetch(`${service.url}/v1/server/product?product=${product}`, {
    method: 'PATCH',
    headers: { 'X-SVC-Product-Key-ID': productKey.id, 'X-SVC-Product-Secret': productKey.secret },
    body: JSON.stringify(body),
  })
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`)
  return (await response.json()) as Changed
}
