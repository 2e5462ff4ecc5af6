import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Group, Groups } from '../../src/ports/groups.ts'

export interface GroupsHarness {
  readonly groups: Groups
  /** The same groups, as another process has them. */
  readonly other: Groups
  close(): Promise<void>
}

/** What every store of groups guarantees [GROUP1]. */
export function registerGroupsContract(name: string, open: () => Promise<GroupsHarness>): void {
  describe(`Groups: ${name}`, () => {
    let harness: GroupsHarness
    beforeAll(async () => {
      harness = await open()
    }, 60_000)
    afterAll(() => harness.close())
    const groups = () => harness.groups
    let last = 0
    const product = () => `groups-${++last}`
    const support = (of: string, change: Partial<Group> = {}): Group => ({
      ...{ product: of, role: 'agent', name: 'support', members: ['ben', 'eve', 'ann'] },
      ...{ strategy: 'all', memberRingMs: 15_000, ringMs: 45_000, ...change },
    })
    const namesOf = async (of: string, limit = 100) =>
      (await harness.other.list({ product: of, role: '', name: '' }, limit)).map(({ role, name }) => `${role}/${name}`)

    test('[GROUP1] a group reads back whole, with its members in their order; another process sees it', async () => {
      const shop = product()
      expect(await groups().get(support(shop))).toBeUndefined()
      await groups().put(support(shop))
      expect(await harness.other.get(support(shop))).toEqual(support(shop))
      const next = support(shop, {
        members: ['zoë 😀', 'ben'],
        strategy: 'in_turn',
        memberRingMs: 5_000,
        ringMs: 600_000,
      })
      await harness.other.put(next)
      expect(await groups().get(next)).toEqual(next)
      await groups().put({ ...next, members: [] })
      expect(await groups().get(next)).toEqual({ ...next, members: [] })
      for (const other of [{ role: 'customer' }, { name: 'sales' }, { product: 'clinic' }])
        expect(await groups().get({ ...next, ...other })).toBeUndefined()
    })

    test('[GROUP1] 500 members fit, in their order', async () => {
      const members = Array.from({ length: 500 }, (_, n) => `${(n * 7919) % 500}-${'ä'.repeat(100)}`)
      const group = support(product(), { members })
      await groups().put(group)
      expect((await groups().get(group))?.members).toEqual(members)
    })

    test('[GROUP1] of two that are put at once one counts, with no member of the other', async () => {
      const shop = product()
      const [one, two] = [
        support(shop, { members: ['a', 'b'] }),
        support(shop, { members: ['c', 'd', 'e'], ringMs: 9_000 }),
      ]
      for (let round = 0; round < 10; round++) {
        await Promise.all([groups().put(one), harness.other.put(two)])
        const found = await groups().get(one)
        expect(found).toEqual(found?.ringMs === one.ringMs ? one : two)
      }
    })

    test('[GROUP1] a removed group is gone with its members', async () => {
      const group = support(product())
      await groups().put(group)
      expect(await harness.other.remove(group)).toBe(true)
      expect(await groups().remove(group)).toBe(false)
      expect(await groups().get(group)).toBeUndefined()
      expect(await groups().of({ ...group, userId: 'ben' })).toEqual([])
      await groups().put({ ...group, members: ['eve'] })
      expect((await groups().get(group))?.members).toEqual(['eve'])
    })

    test('[GROUP1] lists are by role and name, page after page, and count members', async () => {
      const shop = product()
      const all = ['agent/Zürich', 'agent/b', 'agent/ö', 'customer/a']
      for (const text of all.toReversed()) {
        const [role = '', name = ''] = text.split('/')
        await groups().put(support(shop, { role, name, members: name === 'b' ? [] : ['x', 'y'] }))
      }
      await groups().put(support(product()))
      expect(await namesOf(shop)).toEqual(all)
      expect(await namesOf(shop, 2)).toEqual(all.slice(0, 2))
      const rest = await groups().list({ product: shop, role: 'agent', name: 'b' }, 100)
      expect(rest.map(({ name, memberCount }) => [name, memberCount])).toEqual([
        ['ö', 2],
        ['a', 2],
      ])
      expect((await groups().list({ product: shop, role: 'agent', name: 'Zürich' }, 1))[0]?.memberCount).toBe(0)
    })

    test('[GROUP1] [SRV2] who is forgotten leaves all groups of the role; the others stay', async () => {
      const shop = product()
      const ben = { product: shop, role: 'agent', userId: 'ben' }
      await groups().put(support(shop, { name: 'b' }))
      await groups().put(support(shop, { name: 'a' }))
      await groups().put(support(shop, { name: 'c', members: ['eve'] }))
      await groups().put(support(shop, { role: 'customer', name: 'd' }))
      expect(await groups().of(ben)).toEqual(['a', 'b'])
      expect(await harness.other.forget(ben)).toBe(2)
      expect(await groups().of(ben)).toEqual([])
      expect((await groups().get(support(shop, { name: 'a' })))?.members).toEqual(['eve', 'ann'])
      expect((await groups().get(support(shop, { role: 'customer', name: 'd' })))?.members).toEqual([
        'ben',
        'eve',
        'ann',
      ])
      expect(await groups().forget(ben)).toBe(0)
    })

    test('somebody may be in many groups', async () => {
      const shop = product()
      const names = Array.from({ length: 450 }, (_, n) => String(n).padStart(4, '0'))
      await Promise.all(names.map((name) => groups().put(support(shop, { name, members: ['ben'] }))))
      expect(await groups().of({ product: shop, role: 'agent', userId: 'ben' })).toEqual(names)
    })
  })
}
