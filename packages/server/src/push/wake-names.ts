import type { Call, Participant } from '../call/call.ts'
import type { Devices } from '../ports/devices.ts'

/** The number of people whose devices are read at once. */
export const peopleAtOnce = 100

/**
 * The name of a device among those that were woken for a call. A `device_id` belongs to one person only, so a call to a
 * group also says whose it is. If the members are rung in turn, the name has the number of the turn: each turn wakes anew
 * [GROUP1].
 */
export function wakeName({ group }: Pick<Call, 'group'>, { userId }: Participant, deviceId: string): string {
  if (group === undefined) return deviceId
  return JSON.stringify(group.turns === undefined ? [userId, deviceId] : [userId, deviceId, group.turns.count])
}

/** The name of a device in any turn: its name without the turn. */
export function nameInAnyTurn({ group }: Pick<Call, 'group'>, name: string): string {
  return group === undefined ? name : JSON.stringify((JSON.parse(name) as unknown[]).slice(0, 2))
}

/** Whose device a name of a call to a group means, by user_id. */
export function memberOfName(name: string): string {
  return (JSON.parse(name) as [string, string])[0]
}

/** The devices of several people of one role. */
export function devicesOf(
  devices: Pick<Devices, 'of' | 'ofMembers'>,
  people: readonly Participant[],
  now: number,
): ReturnType<Devices['of']> {
  const [first, ...others] = people
  if (first === undefined) return []
  if (others.length === 0) return devices.of(first, now)
  return devices.ofMembers(
    first,
    people.map(({ userId }) => userId),
    now,
  )
}

/** Lists of `peopleAtOnce` people at the most. */
export function inGroups(people: readonly Participant[]): readonly (readonly Participant[])[] {
  const groups: (readonly Participant[])[] = []
  for (let from = 0; from < people.length; from += peopleAtOnce) groups.push(people.slice(from, from + peopleAtOnce))
  return groups
}
