import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { CallShown } from '@ringwire/protocol/backend'
import { createValidator } from '@ringwire/protocol/validate'
import { acceptedCall, connectPair } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { openReceiver, type Receiver } from '@ringwire/testkit/receiver'
import type { Service } from '@ringwire/testkit/service'
import { answeredCall, connectExtendedPair, type ExtendedPair, ringingCall } from '../../support/extended-flows.ts'
import { finish, type Start } from '../calls/composition.ts'
import { ask } from './calls.ts'

const isCall = createValidator(CallShown)
const stats = {
  ...{ rtt_ms: 40, jitter_ms: 3, loss: 0.01, bitrate: 32_000, frames_dropped: 0, codec: 'audio/opus' },
  candidate_pair: { local: 'srflx', remote: 'relay' },
}
/** Of one report. */
const range = (value: number) => ({ min: value, avg: value, max: value })
const reported = {
  reports: 1,
  ...{ rtt_ms: range(40), jitter_ms: range(3), loss: range(0.01), bitrate: range(32_000), frames_dropped: range(0) },
  ...{ candidate_pair: stats.candidate_pair, codec: stats.codec },
}

/** How the media of a call was, as its sides report it [STAT1]. */
export function registerQuality(name: string, start: Start): void {
  describe(`media quality, ${name}`, () => {
    let service: Service
    let receiver: Receiver
    beforeAll(async () => {
      receiver = await openReceiver()
      service = await start({ RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1' })
      await ask(service, 'POST', 'webhooks', { url: receiver.url, events: ['call.ended'] })
    }, 240_000)
    afterAll(async () => {
      await finish(service)
      await receiver.close()
    })

    const codeOf = ({ error }: { error?: { code: string } }) => error?.code
    const hookOf = (callUuid: string) => receiver.received.find(({ data }) => data.call_uuid === callUuid)

    /** Another node knows an endpoint a moment later: it gets the ends that come then. */
    async function heardEnd(pair: ExtendedPair, event: 'call.end', by: 'caller' | 'callee'): Promise<boolean> {
      const callUuid = await answeredCall(pair)
      await pair[by].request(event, { call_uuid: callUuid })
      const begin = performance.now()
      while (hookOf(callUuid) === undefined && performance.now() - begin < 2_000) await Bun.sleep(10)
      return hookOf(callUuid) !== undefined
    }

    test('[STAT1] [HOOK2] what both sides report is in the end of the call, in the call, and in its timeline', async () => {
      const pair = await connectExtendedPair(service)
      for (const by of ['caller', 'callee'] as const)
        await until('the endpoint is known', () => heardEnd(pair, 'call.end', by))
      const call_uuid = await answeredCall(pair)
      expect((await ask(service, 'GET', `calls/${call_uuid}`)).body.call.quality).toBeNull()
      const ack = await pair.caller.request('call.stats', { call_uuid: call_uuid.toUpperCase(), stats })
      expect([ack.event, ack.data]).toEqual(['call.ack', { call_uuid, status: 'accepted' }])
      await pair.callee.request('call.stats', { call_uuid, stats: { rtt_ms: 200, more: 'is ignored' } })
      const expected = { caller: reported, callee: { reports: 1, rtt_ms: range(200) } }
      const quality = async () => (await ask(service, 'GET', `calls/${call_uuid}`)).body
      // What another node heard is stored within seconds.
      await until('both reports are stored', async () => (await quality()).call.quality?.callee?.rtt_ms !== undefined)
      await until('the other one, too', async () => (await quality()).call.quality?.caller?.rtt_ms !== undefined)
      const live = await quality()
      expect([isCall(live).ok, live.call.quality]).toEqual([true, expected])
      await pair.callee.request('call.end', { call_uuid })
      await until('the end is told', () => hookOf(call_uuid) !== undefined)
      expect(hookOf(call_uuid)?.data).toMatchObject({ status: 'ended', quality: expected })
      // The last word comes after the end.
      const last = await pair.caller.request('call.stats', { call_uuid, stats: { rtt_ms: 80 } })
      expect(last.data.status).toBe('ended')
      await until('it is stored', async () => (await quality()).call.quality?.caller?.reports === 2)
      expect((await quality()).call.quality.caller.rtt_ms).toEqual({ min: 40, avg: 60, max: 80 })
      const { entries } = (await ask(service, 'GET', `calls/${call_uuid}/timeline`)).body
      const shown = entries.filter(({ what }: { what: string }) => what === 'quality')
      expect(shown).toHaveLength(2)
      expect(JSON.stringify(shown)).not.toContain('"n"')
    })

    test('[STAT1] a call of which nobody reports has no quality', async () => {
      const pair = await connectExtendedPair(service)
      const call_uuid = await answeredCall(pair)
      await pair.caller.request('call.end', { call_uuid })
      await until('the end is told', () => hookOf(call_uuid) !== undefined)
      expect(hookOf(call_uuid)?.data).toMatchObject({ quality: null })
      expect((await ask(service, 'GET', `calls/${call_uuid}`)).body.call.quality).toBeNull()
    })

    test('[STAT1] who may report, when, and what', async () => {
      const pair = await connectExtendedPair(service)
      const ringing = await ringingCall(pair)
      const report = async (call_uuid: string, given: object = stats, by: 'caller' | 'callee' = 'caller') =>
        codeOf(await pair[by].request('call.stats', { call_uuid, stats: given }))
      expect(await report(ringing)).toBe('CALL_INVALID_STATE')
      await pair.callee.request('call.reject', { call_uuid: ringing })
      const call_uuid = await answeredCall(pair)
      expect(await report(crypto.randomUUID())).toBe('CALL_NOT_FOUND')
      for (const wrong of [{ rtt_ms: -1 }, { loss: 1.1 }, { bitrate: 1e11 }, { rtt_ms: '1' }, { codec: 'a b' }, null]) {
        expect([wrong, await report(call_uuid, wrong as object)]).toEqual([wrong, 'INVALID_PAYLOAD'])
      }
      const address = { candidate_pair: { local: '192.0.2.1', remote: 'host' } }
      expect(await report(call_uuid, address)).toBe('INVALID_PAYLOAD')
      expect(await report(call_uuid)).toBeUndefined()
      const again = await pair.caller.request('call.stats', { call_uuid, stats })
      expect(again.error).toMatchObject({ code: 'RATE_LIMITED', limit: 'messages' })
      expect(again.error.retry_after_ms).toBeWithin(1, 25_001)
      expect(await report(call_uuid, stats, 'callee')).toBeUndefined()
      await pair.caller.request('call.end', { call_uuid })
      expect(await report(call_uuid)).toBeUndefined()
      expect(await report(call_uuid)).toBe('RATE_LIMITED')
    })

    test('[STAT1] a base session has no such event', async () => {
      const pair = await connectPair(service)
      const call_uuid = await acceptedCall(pair)
      pair.caller.send('call.stats', { call_uuid, stats })
      expect((await pair.caller.next('call.error')).error.code).toBe('UNKNOWN_EVENT')
    })
  })
}
