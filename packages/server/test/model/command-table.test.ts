import { expect, test } from 'bun:test'
import { checkInvites } from './invite-check.ts'
import { inviteRowCount } from './invite-table.ts'
import { source } from './machine.ts'
import { partA } from './part-a.ts'

for (const { name, check } of partA) {
  test(name, () => {
    const cases = check(source)
    console.log(`${cases} cases: ${name}`)
    expect(cases).toBeGreaterThan(0)
  })
}

test('[INV1] every row of the invite table is used', () => {
  expect(checkInvites(source).rowsUsed).toBe(inviteRowCount)
})
