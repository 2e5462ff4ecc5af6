import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Participant } from '../../src/call/call.ts'
import { type Device, type Devices, deviceKeptMs, mostDevices, type PushAddress } from '../../src/ports/devices.ts'

export interface DevicesHarness {
  readonly devices: Devices
  /** The same data, opened by another process or as if by one. */
  readonly other: Devices
  close(): Promise<void>
}

const dayMs = 86_400_000
const start = Date.UTC(2026, 0, 1)

/** What every adapter of Devices guarantees. */
export function registerDevicesContract(name: string, open: () => Promise<DevicesHarness>): void {
  describe(`${name}: Devices`, () => {
    let harness: DevicesHarness
    const devices = () => harness.devices
    beforeAll(async () => {
      harness = await open()
    })
    afterAll(() => harness.close())

    let people = 0
    const someone = (): Participant => ({ product: 'shop', role: 'agent', userId: `ben ${people++} 😀` })
    const fcm = (token: string = crypto.randomUUID()): PushAddress => ({ platform: 'fcm', token })
    const put = (participant: Participant, deviceId: string, address = fcm(), registeredAt = start): Device => ({
      participant,
      deviceId,
      address,
      registeredAt,
    })
    const idsOf = async (participant: Participant, now = start) =>
      (await devices().of(participant, now)).map(({ deviceId }) => deviceId)

    test('[PUSH1] each kind of address reads back as it was put, the last one first', async () => {
      const ben = someone()
      const all: PushAddress[] = [
        { platform: 'webpush', endpoint: 'https://push.example.com/ä?x=1', p256dh: 'BA-_', auth: 'x_' },
        fcm('a:b-c'),
        { platform: 'apns', token: 'ab'.repeat(32), voip: true, environment: 'production' },
        { platform: 'apns', token: 'cd'.repeat(32), voip: false, environment: 'sandbox' },
      ]
      const put = all.map((address, i) => ({
        participant: ben,
        deviceId: `d${i} 😀`,
        address,
        registeredAt: start + i,
      }))
      for (const device of put) await devices().put(device)
      expect(await devices().of(ben, start)).toEqual(put.toReversed())
    })

    test('[PUSH1] a device has one address, the last one; another role, product or user is another participant', async () => {
      const ben = someone()
      await devices().put(put(ben, 'phone', fcm('first'), start))
      await devices().put(put(ben, 'phone', fcm('second'), start + 1))
      expect(await devices().of(ben, start)).toEqual([put(ben, 'phone', fcm('second'), start + 1)])
      for (const other of [{ ...ben, role: 'customer' }, { ...ben, product: 'clinic' }, someone()]) {
        expect(await idsOf(other)).toEqual([])
      }
    })

    test('[PUSH1] a phone that was handed on is no longer of whoever had it; one person may have it in two roles', async () => {
      const [ann, ben] = [someone(), someone()]
      const phone = fcm()
      await devices().put(put(ann, 'phone', phone))
      await devices().put(put({ ...ann, role: 'customer' }, 'phone', phone))
      await devices().put(put({ ...ann, product: 'clinic' }, 'phone', phone))
      expect([await idsOf(ann), await idsOf({ ...ann, role: 'customer' })]).toEqual([['phone'], ['phone']])
      await devices().put(put(ben, 'phone', phone))
      expect([await idsOf(ann), await idsOf({ ...ann, role: 'customer' }), await idsOf(ben)]).toEqual([
        [],
        [],
        ['phone'],
      ])
      expect(await idsOf({ ...ann, product: 'clinic' })).toEqual(['phone'])
      // Installed again: the same address under another device_id.
      await devices().put(put(ben, 'phone, again', phone))
      expect(await idsOf(ben)).toEqual(['phone, again'])
    })

    test('[PUSH1] a phone that two people register at once in two processes is of one of them', async () => {
      for (let round = 0; round < 20; round++) {
        const [ann, ben] = [someone(), someone()]
        const phone = fcm()
        await Promise.all([
          devices().put(put(ann, 'phone', phone, start + 1)),
          harness.other.put(put(ben, 'phone', phone, start)),
        ])
        expect([...(await idsOf(ann)), ...(await idsOf(ben))]).toEqual(['phone'])
      }
    })

    test('[PUSH1] of many the last ones stay', async () => {
      const [ann, ben] = [someone(), someone()]
      await devices().put(put(ann, 'hers', fcm(), start - dayMs))
      for (let i = 0; i < mostDevices + 15; i++) await devices().put(put(ben, `d${i}`, fcm(), start + i))
      const last = Array.from({ length: mostDevices }, (_, i) => `d${mostDevices + 14 - i}`)
      expect(await idsOf(ben)).toEqual(last)
      for (const deviceId of last) expect(await devices().forget(ben, deviceId)).toBe(true)
      // None of the others was kept behind them.
      expect(await idsOf(ben)).toEqual([])
      expect(await idsOf(ann)).toEqual(['hers'])
    })

    test('[PUSH1] many at once: never more to read than that', async () => {
      const ben = someone()
      await Promise.all(Array.from({ length: 100 }, async (_, i) => devices().put(put(ben, `d${i}`, fcm(), start + i))))
      expect((await idsOf(ben)).length).toBe(mostDevices)
    })

    test('[PUSH1] one that has long not registered is not read, and goes when another comes', async () => {
      const ben = someone()
      await devices().put(put(ben, 'old'))
      expect(await idsOf(ben, start + deviceKeptMs - 1)).toEqual(['old'])
      expect(await idsOf(ben, start + deviceKeptMs)).toEqual([])
      // It takes some along each time, whosever they are.
      for (let i = 0; i < 60; i++) await devices().put(put(someone(), 'new', fcm(), start + deviceKeptMs))
      expect(await devices().forget(ben, 'old')).toBe(false)
    })

    test('[PUSH1] who registers again in time stays', async () => {
      const ben = someone()
      const address = fcm()
      await devices().put(put(ben, 'phone', address, start))
      await devices().put(put(ben, 'phone', address, start + dayMs / 2))
      expect(await devices().of(ben, start)).toEqual([put(ben, 'phone', address, start)])
      await devices().put(put(ben, 'phone', address, start + 2 * dayMs))
      expect(await idsOf(ben, start + dayMs + deviceKeptMs)).toEqual(['phone'])
    })

    test('[PUSH1] [PUSH2] forgotten: by its device_id, or only as long as it has that address', async () => {
      const ben = someone()
      const [before, now] = [fcm(), fcm()]
      await devices().put(put(ben, 'phone', before))
      await devices().put(put(ben, 'phone', now, start + 1))
      // The answer of a push service about an address that was replaced meanwhile is about that address.
      expect(await devices().forget(ben, 'phone', before)).toBe(false)
      expect(await idsOf(ben)).toEqual(['phone'])
      expect(await devices().forget(ben, 'phone', now)).toBe(true)
      expect(await devices().forget(ben, 'phone')).toBe(false)
      await devices().put(put(ben, 'phone', now, start))
      expect(await devices().forget({ ...ben, role: 'customer' }, 'phone')).toBe(false)
      expect(await devices().forget(ben, 'phone')).toBe(true)
      expect(await idsOf(ben)).toEqual([])
    })

    test('all of a participant are forgotten, and nobody else', async () => {
      const [ann, ben] = [someone(), someone()]
      for (const who of [ann, ben]) for (const id of ['phone', 'desk']) await devices().put(put(who, id))
      expect(await devices().forgetAll(ben)).toBe(2)
      expect(await devices().forgetAll(ben)).toBe(0)
      expect([await idsOf(ben), (await idsOf(ann)).length]).toEqual([[], 2])
    })

    test('[GROUP1] [PUSH1] devices of many people of a role are read at once, of each the last one first', async () => {
      const people = Array.from({ length: 45 }, someone)
      const strangers = { ...(people[0] as Participant), role: 'customer' }
      for (const [i, who] of people.entries()) {
        if (i % 3 === 0) continue
        await devices().put(put(who, 'older', fcm(), start))
        await devices().put(put(who, 'newer', fcm(), start + 1))
        await devices().put(put(who, 'given up', fcm(), start - deviceKeptMs))
      }
      for (let i = 0; i < mostDevices + 5; i++)
        await devices().put(put(people[1] as Participant, `d${i}`, fcm(), start + 2 + i))
      await devices().put(put(strangers, 'of another role'))
      const names = people.map(({ userId }) => userId)
      const found = await devices().ofMembers({ product: 'shop', role: 'agent' }, [...names, 'nobody'], start)
      const alone = await Promise.all(people.map(async (who) => devices().of(who, start)))
      expect(found).toEqual(alone.flat())
      expect(found.length).toBe(mostDevices + 29 * 2)
      expect(await devices().ofMembers({ product: 'shop', role: 'agent' }, [], start)).toEqual([])
    })

    test('what another process writes is seen by the next read', async () => {
      const ben = someone()
      await harness.other.put(put(ben, 'phone'))
      expect(await idsOf(ben)).toEqual(['phone'])
      await harness.other.forget(ben, 'phone')
      expect(await idsOf(ben)).toEqual([])
    })
  })
}
