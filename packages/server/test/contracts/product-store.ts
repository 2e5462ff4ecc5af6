import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { defaultProductSettings, type ProductSettings, type ProductStore } from '../../src/ports/product-store.ts'

export interface ProductStoreHarness {
  readonly store: ProductStore
  /** The same data, opened by another process or as if by one. */
  readonly other: ProductStore
  close(): Promise<void>
}

const hash = (fill: number) => new Uint8Array(32).fill(fill)

/** What every adapter of ProductStore guarantees. */
export function registerProductStoreContract(name: string, open: () => Promise<ProductStoreHarness>): void {
  describe(`${name}: ProductStore`, () => {
    let harness: ProductStoreHarness
    const store = () => harness.store
    beforeAll(async () => {
      harness = await open()
    })
    afterAll(() => harness.close())

    const put = (keyId: string, secret = 1, now = 1000, products = ['clinic']) =>
      store().putKey({ keyId, secretHash: hash(secret), products, origin: 'cli' }, now)

    test('[TOK4] a key reads back as it was put', async () => {
      await store().putKey({ keyId: 'k1', secretHash: hash(7), products: ['a', 'ä "b"'], origin: 'bootstrap' }, 1234)
      expect(await store().findKey('k1', 2000)).toEqual({
        keyId: 'k1',
        secretHashes: [hash(7)],
        products: ['a', 'ä "b"'],
        disabled: false,
        origin: 'bootstrap',
        createdAt: 1234,
      })
      expect(await store().findKey('K1', 2000)).toBeUndefined()
      expect(await store().findKey('', 2000)).toBeUndefined()
    })

    test('[TOK4] putting a key again replaces its secrets, products and origin, and enables it', async () => {
      await put('k2', 1, 1000)
      await store().rotateKey('k2', hash(2), 9_000, 1500)
      await store().setDisabled('k2', true, 1600)
      await store().putKey({ keyId: 'k2', secretHash: hash(3), products: ['other'], origin: 'demo' }, 2000)
      expect(await store().findKey('k2', 2000)).toEqual({
        keyId: 'k2',
        secretHashes: [hash(3)],
        products: ['other'],
        disabled: false,
        origin: 'demo',
        createdAt: 1000,
      })
    })

    test('[TOK4] a key that is put again with a new secret may keep the old one for a while', async () => {
      const again = (secret: number, now: number) =>
        store().putKey({ keyId: 'k2b', secretHash: hash(secret), products: ['p'], origin: 'bootstrap' }, now, now + 500)
      const secrets = async (now: number) => (await store().findKey('k2b', now))?.secretHashes
      await again(1, 1000)
      await again(2, 2000)
      expect(await secrets(2499)).toEqual([hash(2), hash(1)])
      expect(await secrets(2500)).toEqual([hash(2)])
      // The same again changes nothing, and the old one comes back as the current one.
      await again(2, 2100)
      expect(await secrets(2499)).toEqual([hash(2), hash(1)])
      await again(1, 2200)
      expect(await secrets(2699)).toEqual([hash(1), hash(2)])
      expect(await secrets(2700)).toEqual([hash(1)])
    })

    test('[TOK4] a rotated secret stays valid until its time, the current one comes first', async () => {
      await put('k3', 1)
      expect(await store().rotateKey('k3', hash(2), 5000, 2000)).toBe(true)
      const secrets = async (now: number) => (await store().findKey('k3', now))?.secretHashes
      expect(await secrets(4999)).toEqual([hash(2), hash(1)])
      expect(await secrets(5000)).toEqual([hash(2)])
      expect(await store().rotateKey('k3', hash(3), 4000, 3000)).toBe(true)
      expect(await secrets(3500)).toEqual([hash(3), hash(1), hash(2)])
      expect(await secrets(4500)).toEqual([hash(3), hash(1)])
      expect(await secrets(6000)).toEqual([hash(3)])
    })

    test('[TOK4] rotating back to a secret that still runs makes it the current one', async () => {
      await put('k4', 1)
      await store().rotateKey('k4', hash(2), 5000, 2000)
      await store().rotateKey('k4', hash(1), 6000, 3000)
      expect((await store().findKey('k4', 4000))?.secretHashes).toEqual([hash(1), hash(2)])
      expect((await store().findKey('k4', 9000))?.secretHashes).toEqual([hash(1)])
    })

    test('rotating or disabling a key that is not there says so and makes none', async () => {
      expect(await store().rotateKey('none', hash(1), 5000, 1000)).toBe(false)
      expect(await store().setDisabled('none', true, 1000)).toBe(false)
      expect(await store().findKey('none', 1000)).toBeUndefined()
    })

    test('a key is disabled and enabled', async () => {
      await put('k5')
      expect(await store().setDisabled('k5', true, 1000)).toBe(true)
      expect((await store().findKey('k5', 1000))?.disabled).toBe(true)
      expect(await store().setDisabled('k5', false, 1000)).toBe(true)
      expect((await store().findKey('k5', 1000))?.disabled).toBe(false)
    })

    test('the list has every key once, with the secrets that are valid then', async () => {
      await put('k6', 1)
      await store().rotateKey('k6', hash(2), 5000, 2000)
      const listed = (await store().listKeys(3000)).filter((key) => key.keyId === 'k6')
      expect(listed.map((key) => key.secretHashes)).toEqual([[hash(2), hash(1)]])
      const ids = (await store().listKeys(3000)).map((key) => key.keyId)
      expect(ids).toEqual([...new Set(ids)].sort())
    })

    test('a product without settings has the default ones', async () => {
      expect(await store().settings('unheard of')).toEqual(defaultProductSettings)
    })

    test('settings read back, and what is not given stays as it is', async () => {
      const settings: ProductSettings = {
        busy: 'reject',
        revealBusy: true,
        ringTimeoutMs: 5000,
        media: 'relay',
        presence: 'peers',
        take: false,
        inviteUrl: 'https://shop.example/invites?of="ä"',
        inviteSecret: 'whsec_one',
        inviteFailure: 'allow',
      }
      expect(await store().changeSettings('p1', settings)).toEqual(settings)
      expect(await store().settings('p1')).toEqual(settings)
      const changes = {
        revealBusy: false,
        ringTimeoutMs: null,
        media: 'all',
        take: true,
        inviteFailure: 'refuse',
      } as const
      const after = { ...settings, ...changes }
      expect(await store().changeSettings('p1', changes)).toEqual(after)
      expect(await store().settings('p1')).toEqual(after)
      expect(await store().listSettings()).toContainEqual({ product: 'p1', settings: after })
      expect(await store().changeSettings('p1', {})).toEqual(after)
      expect(await store().changeSettings('p2', {})).toEqual(defaultProductSettings)
      expect(await store().changeSettings('p3', { busy: 'reject' })).toEqual({
        ...defaultProductSettings,
        busy: 'reject',
      })
    })

    test('[HOOK5] the first secret stays until it is removed; two that set one at once are answered the same', async () => {
      const { other } = harness
      const set = (at: ProductStore, inviteSecret: string | null) => at.changeSettings('p4', { inviteSecret })
      const [one, two] = await Promise.all([set(store(), 'whsec_1'), set(other, 'whsec_2')])
      expect(two?.inviteSecret).toBe(one?.inviteSecret as string)
      expect((await set(store(), 'whsec_3')).inviteSecret).toBe(one?.inviteSecret as string)
      expect((await other.changeSettings('p4', { busy: 'reject' })).inviteSecret).toBe(one?.inviteSecret as string)
      expect((await set(other, null)).inviteSecret).toBeNull()
      expect((await set(store(), 'whsec_4')).inviteSecret).toBe('whsec_4')
    })

    test('settings that are changed at once are all changed', async () => {
      const { other } = harness
      await Promise.all([
        store().changeSettings('p5', { busy: 'reject' }),
        other.changeSettings('p5', { revealBusy: true }),
        store().changeSettings('p5', { ringTimeoutMs: 9_000 }),
      ])
      expect(await other.settings('p5')).toMatchObject({ busy: 'reject', revealBusy: true, ringTimeoutMs: 9_000 })
    })

    test('[PRIV1] [KEY1] who asks for policies hears of products that relay alone and of keys that are disabled', async () => {
      const { other } = harness
      await put('k8')
      await put('k9')
      await store().changeSettings('p8', { media: 'relay', presence: 'peers', take: false })
      await store().changeSettings('p9', {})
      await store().setDisabled('k8', true, 1000)
      const policies = async () => {
        const { relayOnly, presence, fixed, disabledKeys } = await other.policies()
        const ours = [relayOnly, presence, fixed].map((all) => all.filter((name) => /^p[89]$/.test(name)))
        return [...ours, disabledKeys.filter((id) => /^k[89]$/.test(id))]
      }
      expect(await policies()).toEqual([['p8'], ['p8'], ['p8'], ['k8']])
      await store().changeSettings('p8', { media: 'all', presence: 'off', take: true })
      await store().setDisabled('k8', false, 1000)
      expect(await policies()).toEqual([[], [], [], []])
    })

    test('[SRV2] tokens that were taken back: the latest instant stays, and what is written later is found later', async () => {
      const since = async (mark: number) => {
        const found = await harness.other.revocations(mark)
        return new Map(found.map(({ participant, before }) => [participant, before]))
      }
      await store().revoke('ann', 5000, 1)
      await store().revoke('ben', 6000, 2)
      expect(await since(0)).toEqual(
        new Map([
          ['ann', 5000],
          ['ben', 6000],
        ]),
      )
      await harness.other.revoke('ann', 4000, 3)
      await store().revoke('ben', 7000, 4)
      expect(await since(0)).toEqual(
        new Map([
          ['ann', 5000],
          ['ben', 7000],
        ]),
      )
      const last = Math.max(...(await store().revocations(0)).map(({ changedAt }) => changedAt))
      expect(await since(last + 1)).toEqual(new Map())
      // Also by a clock that went back.
      await store().revoke('eve', 1, -1_000_000)
      expect((await since(last)).get('eve')).toBe(1)
    })

    test('[SRV2] what no token can be of any more is removed, but for what was written last', async () => {
      const left = async () => {
        const found = await harness.other.revocations(0)
        return found.map(({ participant }) => participant).filter((name) => name.startsWith('old-'))
      }
      for (const [name, before] of [
        ['old-1', 1000],
        ['old-2', 2000],
        ['old-3', 3000],
        ['old-4', 1000],
      ] as const) {
        await store().revoke(name, before, 10)
      }
      // A revocation from the same millisecond as the last one stays, too.
      await Bun.sleep(2)
      await store().revoke('old-5', 1500, 1_000_000)
      await store().pruneRevocations(2000)
      expect((await left()).sort()).toEqual(['old-2', 'old-3', 'old-5'])
      await Bun.sleep(2)
      await store().revoke('old-6', 9000, 2_000_000)
      expect(await store().pruneRevocations(3001)).toBe(3)
      expect(await left()).toEqual(['old-6'])
    })

    test('what another process changes is seen by the next read', async () => {
      const { other } = harness
      expect(await store().findKey('k7', 1000)).toBeUndefined()
      await other.putKey({ keyId: 'k7', secretHash: hash(1), products: ['p'], origin: 'cli' }, 1000)
      expect((await store().findKey('k7', 1000))?.disabled).toBe(false)
      await other.setDisabled('k7', true, 1000)
      expect((await store().findKey('k7', 1000))?.disabled).toBe(true)
      await other.rotateKey('k7', hash(2), 0, 1000)
      expect((await store().findKey('k7', 1000))?.secretHashes).toEqual([hash(2)])
      await other.changeSettings('p7', { busy: 'reject' })
      expect((await store().settings('p7')).busy).toBe('reject')
    })
  })
}
