import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Device } from '../../ports/devices.ts'
import { openSqlite } from './open.ts'

const participant = { product: 'shop', role: 'agent', userId: 'ann' }
const now = 1_000_000

test('[PUSH1] what is registered while an earlier write of the device is under way counts', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'ringwire-devices-'))
  const stores = await openSqlite({ dataDir, synchronous: 'FULL', exclusive: true })
  const { devices } = stores
  const device = (token: string): Device => ({
    ...{ participant, deviceId: 'phone', registeredAt: now },
    address: { platform: 'fcm', token },
  })
  const tokens = async () => (await devices.of(participant, now)).map(({ address }) => address)
  try {
    await devices.put(device('a'))
    await Promise.all([devices.forget(participant, 'phone'), devices.put(device('a'))])
    expect(await tokens()).toEqual([device('a').address])
    await Promise.all([devices.put(device('b')), devices.put(device('a'))])
    expect(await tokens()).toEqual([device('a').address])
    await Promise.all([devices.put(device('b')), devices.forget(participant, 'phone')])
    expect(await tokens()).toEqual([])
  } finally {
    await stores.close()
    rmSync(dataDir, { recursive: true })
  }
})
