import { expect, test } from 'bun:test'
import { checkBusy, checkOver, checkStrangers, checkVerbs } from './command-check.ts'
import { checkInviteRights, checkInvites } from './invite-check.ts'
import { inviteRowCount } from './invite-table.ts'
import { source } from './machine.ts'
import { checkArrivals, checkLosses, checkServiceOnOver, checkShifts, checkTime } from './service-check.ts'

const checks = [
  {
    name: '[PLACE1] [PLACE2] [PLACE3] [END1] [END2] every verb of every session in every live state',
    check: checkVerbs,
  },
  { name: '[END1] every verb on a call that is over, early and late', check: checkOver },
  { name: '[ENV5] [ID1] strangers, the other role and the other product find no call', check: checkStrangers },
  { name: '[END2] busy rejects of several sessions', check: checkBusy },
  { name: '[PLACE2] arrivals take what their device left', check: checkArrivals },
  { name: '[END3] losses and restarts start the lost clocks', check: checkLosses },
  { name: '[END3] a jump of the wall clock changes no time that remains', check: checkShifts },
  { name: '[RING1] [END3] time limits fire at their instant', check: checkTime },
  { name: '[END1] the service changes nothing of a call that is over', check: checkServiceOnOver },
]

for (const { name, check } of checks) {
  test(name, () => {
    const cases = check(source)
    console.log(`${name}: ${cases} cases`)
    expect(cases).toBeGreaterThan(0)
  })
}

test('[INV1] action, role, self and type, in this order', () => {
  expect(checkInviteRights(source)).toBeGreaterThan(0)
})

test('[INV3] [INV5] [INV6] [INV7] [INV8] every invite in every situation between two people', () => {
  const { cases, rowsUsed } = checkInvites(source)
  console.log(`invites: ${cases} cases`)
  expect(rowsUsed).toBe(inviteRowCount)
})
