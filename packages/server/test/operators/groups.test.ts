import { afterAll, beforeAll, expect, test } from 'bun:test'
import { groupLimits } from '@ringwire/protocol/groups'
import { openBrowser } from '@ringwire/testkit/browser'
import { someone } from '@ringwire/testkit/flows'
import type { Service } from '@ringwire/testkit/service'
import type { Browser } from 'playwright-core'
import { bounds, draftOf, readDraft } from '../../page/group-draft.ts'
import { startObserved } from '../admin/observed.ts'
import { finish } from '../scenarios/calls/composition.ts'
import { type Operator, signIn, token } from './operator.ts'

const stage = {} as { service: Service; browser: Browser }
beforeAll(async () => {
  const [service, browser] = await Promise.all([startObserved({ RINGWIRE_ADMIN_TOKEN: token }), openBrowser()])
  Object.assign(stage, { service, browser })
}, 120_000)
afterAll(async () => {
  await stage.browser?.close()
  if (stage.service) await finish(stage.service)
})

const dialog = 'dialog[open]'
const confirm = `${dialog} [data-testid=confirm]`
const field = (name: string) => `${dialog} [data-testid=group-${name}]`
const rowOf = (name: string) => `[data-testid=groups] li:has-text(${JSON.stringify(name)})`

async function openProducts(): Promise<Operator> {
  const operator = await signIn(stage.browser, stage.service)
  await operator.go('products/shop')
  await operator.page.waitForSelector('[data-testid=new-group]')
  return operator
}

/** What a backend reads. */
const groupOf = async ({ page }: Operator, role: string, group: string) =>
  page.evaluate(async (path) => (await fetch(path)).json(), `api/products/shop/groups/${role}/${group}`)

test('[GROUP1] every user_id survives the form: one that no line can hold is a JSON string there', () => {
  const members = ['ann', ' ben', 'a "quoted" one', '"eve"', 'two\nlines', '\u2028', '<script>alert(1)</script>', '/']
  const shown = {
    role: 'agent',
    group: 'x',
    members,
    strategy: 'all',
    member_ring_ms: 5_500,
    ring_ms: 600_000,
  } as const
  const read = readDraft(draftOf(shown))
  expect(read.ok && read.group).toEqual({ ...shown, members })
  expect(readDraft({ ...draftOf(shown), members: '"eve' })).toMatchObject({ ok: false })
  expect(groupLimits).toMatchObject(bounds)
})

test('[ADM2] [GROUP1] with the keyboard: a group is made, renamed and removed, and the audit log says by whom', async () => {
  const operator = await openProducts()
  const { page } = operator
  await page.focus('[data-testid=new-group]')
  await page.keyboard.press('Enter')
  await page.waitForSelector(`${field('role')}:focus`)
  expect(await page.isDisabled(confirm)).toBe(true)
  await page.waitForSelector(`${dialog} [data-testid=group-says]:has-text("needs a role and a name")`)
  for (const text of ['agent', 'support', 'ben\neve\nben']) {
    await page.keyboard.type(text)
    await page.keyboard.press('Tab')
  }
  expect(await operator.look('group-form')).toEqual([])
  expect(await page.isDisabled(confirm)).toBe(true)
  await page.waitForSelector(`${dialog} [data-testid=group-says]:has-text("ben is in the list twice.")`)
  await page.fill(field('members'), 'ben\neve')
  await page.focus(field('strategy'))
  await page.keyboard.type('one')
  await page.waitForSelector(field('memberRing'))
  await page.fill(field('memberRing'), '4')
  expect(await page.isDisabled(confirm)).toBe(true)
  await page.waitForSelector(`${dialog} [data-testid=group-says]:has-text("A member rings for 5 to 60 s")`)
  await page.fill(field('memberRing'), '7.5')
  await page.focus(confirm)
  await page.keyboard.press('Enter')
  await page.waitForSelector(`${rowOf('agent/support')}:has-text("2 members, in turn")`)
  const made = { members: ['ben', 'eve'], strategy: 'in_turn', member_ring_ms: 7_500, ring_ms: 45_000 }
  expect(await groupOf(operator, 'agent', 'support')).toEqual({ role: 'agent', group: 'support', ...made })

  const press = async (button: string) => {
    await page.focus(button)
    await page.keyboard.press('Enter')
  }
  await press(`${rowOf('agent/support')} [data-testid=edit-group]`)
  await page.fill(field('group'), 'second line')
  await page.waitForSelector(`${dialog} :text("It gets another name.")`)
  await press(confirm)
  await page.waitForSelector(rowOf('agent/second line'))
  await page.waitForSelector(rowOf('agent/support'), { state: 'detached' })
  expect(await groupOf(operator, 'agent', 'second%20line')).toMatchObject(made)
  await press(`${rowOf('agent/second line')} button:text-is("Remove")`)
  await press(confirm)
  await page.waitForSelector(rowOf('agent/second line'), { state: 'detached' })
  expect((await groupOf(operator, 'agent', 'second%20line')).error.code).toBe('NOT_FOUND')

  await page.keyboard.press('5')
  await page.waitForSelector('[data-testid=audit] tbody tr')
  const rows = await page.locator('[data-testid=audit] tbody tr').allTextContents()
  expect(rows.map((row) => /Olga.*?(group\.(?:put|remove)shopagent\/(?:support|second line))/.exec(row)?.[1])).toEqual([
    ...['group.removeshopagent/second line', 'group.removeshopagent/support'],
    ...['group.putshopagent/second line', 'group.putshopagent/support'],
  ])
  // That a name is free, or a group gone, is no fault of the page.
  expect(operator.faults.filter((fault) => !/404/.test(fault))).toEqual([])
  await page.close()
}, 120_000)

test('[ADM2] [GROUP1] names that are scripts are text; nobody replaces a group that they have not seen', async () => {
  const operator = await openProducts()
  const { page } = operator
  const script = '<img src=x onerror=alert(1)><script>alert(2)</script>'
  const name = `"><svg onload=alert(3)> ${someone('g')}`
  const make = async () => {
    await page.click('[data-testid=new-group]')
    await page.fill(field('role'), 'agent')
    await page.fill(field('group'), name)
    await page.fill(field('members'), `${script}\n"two\\nlines"`)
    await page.click(confirm)
  }
  await make()
  await page.waitForSelector(rowOf(name))
  expect(await page.locator(rowOf(name)).textContent()).toContain(`agent/${name}`)
  expect(await operator.look('groups')).toEqual([])
  await make()
  await page.waitForSelector(`${dialog} [role=alert]:has-text("already. Edit that one.")`)
  await page.keyboard.press('Escape')

  await page.click(`${rowOf(name)} [data-testid=edit-group]`)
  expect(await page.inputValue(field('members'))).toBe(`${script}\n"two\\nlines"`)
  const path = `api/products/shop/groups/agent/${encodeURIComponent(name)}`
  const other = { members: ['max'], strategy: 'all' }
  await page.evaluate(([path, body]) => fetch(path, { method: 'PUT', headers: { 'X-Ringwire-Admin': '1' }, body }), [
    path,
    JSON.stringify(other),
  ] as const)
  await page.fill(field('members'), 'ben')
  await page.click(confirm)
  await page.waitForSelector(`${dialog} [role=alert]:has-text("changed this group meanwhile")`)
  expect(await operator.look('group-refused')).toEqual([])
  await page.keyboard.press('Escape')
  expect(await groupOf(operator, 'agent', encodeURIComponent(name))).toMatchObject({ members: ['max'] })
  expect(operator.faults.filter((fault) => !/404/.test(fault))).toEqual([])
  await page.close()
}, 120_000)
