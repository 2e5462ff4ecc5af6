import { expect, test } from 'bun:test'
import { checkInvites } from './invite-check.ts'
import { inviteRowCount } from './invite-table.ts'
import { source } from './machine.ts'
import { everyInvite, partA } from './part-a.ts'

for (const { name, check } of partA) {
  if (name === everyInvite) continue
  test(name, () => {
    const cases = check(source)
    console.log(`${cases} cases: ${name}`)
    expect(cases).toBeGreaterThan(0)
  })
}

test(`${everyInvite}; [INV1] every row of the table is used`, () => {
  const { cases, rowsUsed } = checkInvites(source)
  console.log(`${cases} cases: ${everyInvite}`)
  expect(cases).toBeGreaterThan(0)
  expect(rowsUsed).toBe(inviteRowCount)
})
