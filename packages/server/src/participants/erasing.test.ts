import { expect, test } from 'bun:test'
import { StoreError } from '../ports/store-error.ts'
import { createErasing } from './erasing.ts'
import { type ErasedCounts, type Erasures, noneErased } from './erasures.port.ts'

const ann = { product: 'shop', role: 'customer', userId: 'ann' }

/** A store that refuses to write while `refusal` says why. */
function openErasures() {
  let stored = noneErased
  const store = {
    refusal: undefined as StoreError | undefined,
    add(_participant: string, counts: ErasedCounts) {
      if (store.refusal !== undefined) throw store.refusal
      stored = { ...stored, calls: stored.calls + counts.calls, devices: stored.devices + counts.devices }
    },
    counted: () => stored,
    forget() {
      if (store.refusal !== undefined) throw store.refusal
      stored = noneErased
    },
  } satisfies Erasures & { refusal: StoreError | undefined }
  return store
}

test('[SRV2] counts that the store refused are stored by the erasure that goes on', async () => {
  const erasures = openErasures()
  let left = 3
  const erasing = createErasing({
    erasures,
    async work(_participant, count) {
      const calls = left
      left = 0
      await count('calls', calls)
      return 1
    },
  })
  erasures.refusal = new StoreError('unavailable', 'away')
  expect(await erasing.erase(ann).catch((error) => error)).toBe(erasures.refusal)
  erasures.refusal = undefined
  expect((await erasing.erase(ann))?.calls).toBe(3)
})

test('[SRV2] counts whose write has an unknown outcome are not written twice', async () => {
  const erasures = openErasures()
  const erasing = createErasing({
    erasures,
    async work(_participant, count) {
      await count('calls', erasures.refusal === undefined ? 0 : 2)
      return 1
    },
  })
  erasures.refusal = new StoreError('unknown', 'the connection was lost')
  expect(await erasing.erase(ann).catch((error) => error)).toBe(erasures.refusal)
  erasures.refusal = undefined
  expect((await erasing.erase(ann))?.calls).toBe(0)
})

test('[SRV2] an erasure begins after the counts of the one before are forgotten, also where they could not be', async () => {
  const erasures = openErasures()
  const erasing = createErasing({
    erasures,
    async work(_participant, count) {
      await count('devices', 1)
      return 1
    },
  })
  expect((await erasing.erase(ann))?.devices).toBe(1)
  erasures.refusal = new StoreError('unavailable', 'away')
  expect(await erasing.heard(ann).catch((error) => error)).toBe(erasures.refusal)
  erasures.refusal = undefined
  expect((await erasing.erase(ann))?.devices).toBe(2)
  const heard = erasing.heard(ann)
  expect((await erasing.erase(ann))?.devices).toBe(1)
  await heard
})
