import { checkAwaited } from './awaited-check.ts'
import { checkBusy, checkExpiry, checkOver, checkStrangers, checkVerbs } from './command-check.ts'
import { checkGroups } from './group-check.ts'
import { checkInviteRights, checkInvites } from './invite-check.ts'
import { checkJoins } from './join-check.ts'
import type { Machine } from './machine.ts'
import {
  checkArrivals,
  checkLosses,
  checkOutages,
  checkRestarts,
  checkServiceOnOver,
  checkShifts,
  checkStops,
  checkTime,
} from './service-check.ts'
import { checkTakes } from './take-check.ts'
import { checkLinkedCalls, checkTransfers } from './transfer-check.ts'
import { checkTurns } from './turn-check.ts'
import { checkVerdicts } from './verdict-check.ts'

/** The one that takes as long as all the others. */
export const everyInvite = '[INV3] [INV5] [INV6] [INV7] [INV8] every invite in every situation'

/** Part A: every state, command, side and session against the tables. Each check gives the number of its cases. */
export const partA: readonly { readonly name: string; readonly check: (machine: Machine) => number }[] = [
  {
    name: '[PLACE1] [PLACE2] [PLACE3] [END1] [END2] every verb of every session, from everywhere, in every live state',
    check: checkVerbs,
  },
  { name: '[END1] every verb on a call that is over, early and late', check: checkOver },
  { name: '[ENV5] [ID1] strangers, the other role and the other product find no call', check: checkStrangers },
  { name: '[WS5] a session whose token is over enters no call that began later', check: checkExpiry },
  { name: '[TAKE1] every session takes the place of its side in every state', check: checkTakes },
  { name: '[END2] busy rejects of several sessions', check: checkBusy },
  { name: '[PLACE2] [RES2] arrivals take what they, who they name, or their device left', check: checkArrivals },
  { name: '[END3] [END6] a loss counts on the node where its session has the place', check: checkLosses },
  { name: '[END3] restarts and absences start the lost clocks of who is nowhere', check: checkRestarts },
  { name: '[END3] a jump of the wall clock changes no time that remains', check: checkShifts },
  { name: '[RING1] [END3] time limits fire at their instant', check: checkTime },
  { name: '[PEER1] a client that was told to come back counts as away when its time is over', check: checkAwaited },
  { name: '[SRV2] a backend ends a call in every state, and both sides hear of it', check: checkStops },
  { name: '[END3] lost clocks stand still in an outage', check: checkOutages },
  { name: '[END1] the service changes nothing of a call that is over', check: checkServiceOnOver },
  { name: everyInvite, check: (rules) => checkInvites(rules).cases },
  { name: '[HOOK5] the verdict of a backend, in every situation', check: checkVerdicts },
  { name: '[GROUP1] calls to groups: every verb of every member, and invites', check: checkGroups },
  { name: '[GROUP1] calls that ring at one member after another', check: checkTurns },
  { name: '[XFER1] a transfer, in every situation', check: checkTransfers },
  { name: '[XFER1] two answered calls become one, in every situation', check: checkJoins },
  { name: '[XFER1] what becomes of one call of a transfer decides about the other', check: checkLinkedCalls },
  { name: '[INV1] action, role, self and type, in this order', check: checkInviteRights },
]
