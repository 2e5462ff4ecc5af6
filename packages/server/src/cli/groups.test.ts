import { expect, test } from 'bun:test'
import { openSqlite } from '../stores/sqlite/open.ts'
import { dataDir, json, run, useDataDirs } from './program.fixture.ts'

useDataDirs()

const of = { product: 'shop', role: 'agent', name: 'support' }

/** As a backend does it by a PUT. */
async function empty(): Promise<void> {
  const { groups, close } = await openSqlite({ dataDir, synchronous: 'NORMAL', exclusive: false })
  await groups.put({ ...of, members: [], strategy: 'all', memberRingMs: 15_000, ringMs: 45_000 })
  await close()
}

test('[GROUP1] set makes a group, and keeps what is not given', async () => {
  await run('keys create --product shop')
  const made = await run('groups set agent support --product shop --member ben --member eve')
  expect([made.code, made.err]).toEqual([0, ''])
  expect(made.out).toContain('ben, eve')
  const changed = await json('groups set agent support --product shop --strategy in_turn')
  expect(changed).toEqual({
    ...{ role: 'agent', group: 'support', members: ['ben', 'eve'], strategy: 'in_turn' },
    ...{ member_ring_ms: 15_000, ring_ms: 45_000 },
  } as never)
})

test('[GROUP1] a new group needs members: nothing is made, and the message says why', async () => {
  await run('keys create --product shop')
  expect(await run('groups set agent support --product shop --ring-ms 30000')).toMatchObject({
    ...{ code: 2, out: '' },
    err: 'There is no group support of role agent yet, and a call to one without members rings at nobody. Give --member.\n',
  })
  expect((await run('groups show agent support --product shop')).code).toBe(3)
})

test('[GROUP1] a group that has been emptied: set and show say that nobody is rung', async () => {
  await run('keys create --product shop')
  await run('groups set agent support --product shop --member ben')
  await empty()
  const said = 'The group support of role agent has no members: a call to it rings at nobody, and is missed.\n'
  const set = await run('groups set agent support --product shop --ring-ms 30000')
  expect(set).toMatchObject({ code: 0, err: said })
  expect(await run('groups show agent support --product shop')).toMatchObject({ code: 0, err: said })
  // What a program reads says that by itself.
  expect(await json<{ members: string[] }>('groups show agent support --product shop')).toMatchObject({ members: [] })
  expect((await run('groups set agent support --product shop --member eve')).err).toBe('')
})
