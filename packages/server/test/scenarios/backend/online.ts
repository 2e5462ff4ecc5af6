import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { someone } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { openReceiver, type Receiver } from '@ringwire/testkit/receiver'
import type { Service } from '@ringwire/testkit/service'
import { finish, type Start } from '../calls/composition.ts'
import { ask } from './calls.ts'

/** The events of somebody at a receiver, in order: true is online. */
export function toldOf({ received }: Receiver, userId: string): boolean[] {
  const about = received.filter(({ type, data }) => {
    return type.startsWith('participant.') && (data as unknown as { user_id: string }).user_id === userId
  })
  return about.map(({ type }) => type === 'participant.online')
}

export const presenceTypes = ['participant.online', 'participant.offline']

/** Backends hear who comes online, and who goes [HOOK2]. */
export function registerBackendOnline(name: string, start: Start): void {
  describe(`who is online, ${name}`, () => {
    let receiver: Receiver
    let plain: Receiver
    let service: Service
    /** Somebody who was there before anybody asked to hear of it. */
    const early = someone('early')
    beforeAll(async () => {
      ;[receiver, plain] = [await openReceiver(), await openReceiver()]
      service = await start({ RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1' })
      await ask(service, 'POST', 'webhooks', { url: plain.url })
      await connect(early)
      const made = await ask(service, 'POST', 'webhooks', { url: receiver.url, events: presenceTypes })
      expect([made.status, made.body.events]).toEqual([201, presenceTypes])
    }, 240_000)
    afterAll(async () => {
      await finish(service)
      await receiver.close()
      await plain.close()
    })

    const connect = (user_id: string) => service.connect({ user_id, role: 'agent' })
    const isTold = (userId: string, ...states: boolean[]) =>
      until(`${userId} is told as ${states}`, () => toldOf(receiver, userId).join() === states.join())

    test('[HOOK2] who is there is told to the first endpoint that names it; then who comes and goes, and no reload', async () => {
      const [reloads, leaves, twice] = ['reloads', 'leaves', 'twice'].map(someone) as [string, string, string]
      await isTold(early, true)
      // On a pair each socket is at the other node.
      const [page, last] = [await connect(reloads), await connect(leaves)]
      const [one] = [await connect(twice), await connect(twice)]
      await Promise.all([reloads, leaves, twice].map((userId) => isTold(userId, true)))
      page.close()
      await page.closed
      await connect(reloads)
      one?.close()
      await one?.closed
      const begin = performance.now()
      last.close()
      await isTold(leaves, true, false)
      expect(performance.now() - begin).toBeGreaterThan(4_900)
      // Both of them closed before: their events have come.
      expect([reloads, twice, early].map((userId) => toldOf(receiver, userId))).toEqual([[true], [true], [true]])
      const told = receiver.received.find(({ type }) => type === 'participant.offline')
      expect(told?.data as object).toEqual({ user_id: leaves, role: 'agent' })
      await connect(leaves)
      await isTold(leaves, true, false, true)
      expect(plain.received.filter(({ type }) => type.startsWith('participant.'))).toEqual([])
    })

    test('[HOOK2] [SRV2] who is sent away goes offline', async () => {
      const userId = someone('away')
      await connect(userId)
      await isTold(userId, true)
      await ask(service, 'POST', `participants/agent/${userId}/disconnect`)
      await isTold(userId, true, false)
    })

    test('[HOOK2] after a stop, or kill -9 of all: who comes back was never away, who does not is offline', async () => {
      const [back, gone] = [someone('back'), someone('gone')]
      await Promise.all([connect(back), connect(gone)])
      await Promise.all([back, gone].map((userId) => isTold(userId, true)))
      // A delivery that was taken and is not stored as taken would come again, under the same id.
      await until('it is stored what was told', async () => {
        const hooks: { id: string }[] = (await ask(service, 'GET', 'webhooks')).body.data
        const pending = hooks.map(({ id }) => ask(service, 'GET', `webhooks/${id}/deliveries?status=pending`))
        return (await Promise.all(pending)).every(({ body }) => body.data.length === 0)
      })
      await service.kill()
      await service.start()
      await connect(back)
      await isTold(gone, true, false)
      expect(toldOf(receiver, back)).toEqual([true])
    }, 120_000)
  })
}
