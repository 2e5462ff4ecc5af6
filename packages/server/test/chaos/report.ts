import type { Verdict } from './check/check.ts'
import { kinds, type Violation } from './check/findings.ts'
import { faultKindsOf } from './fault-kinds.ts'
import type { Header, Recording } from './recording.ts'
import { storyOf, visitsOf } from './story.ts'

/** Violations that are printed one by one, and of those whose calls, or sockets, are shown in full. */
const printed = { violations: 50, stories: 3 } as const
/** A run of this many seconds has each kind of fault this many times. */
const longRunS = 1_200
const enough = 20

export function printReport({ header, ...rest }: Recording, verdict: Verdict, print: (text: string) => void): void {
  const { counts, violations } = verdict
  const { calls, transitions, relays, resumes, losses, requests, takes, faults, hooks } = counts
  const sum = Object.values(calls).reduce((total, count) => total + count, 0)
  print(`seed ${header.seed}: ${header.nodes} nodes, ${header.store}, ${header.users} users, ${header.durationS} s`)
  print(`faults: ${listOf(faults)}`)
  print(`calls: ${sum} (${listOf(calls)})`)
  print(
    `transitions: ${transitions.stored} stored, ${transitions.acknowledged} requests done, ${transitions.maybe} maybe`,
  )
  print(
    `relays: ${relays.acknowledged} acknowledged (${relays.volatile} volatile), ${relays.maybe} maybe, ${relays.arrived} arrived (${relays.long} long)`,
  )
  print(`takes: ${takes}`)
  print(`resumes: ${resumes.recovered} recovered, ${resumes.notRecovered} not, ${resumes.resets} resets`)
  print(`logs lost, and by what: ${listOf(losses)}`)
  print(`requests: ${requests.asked}, ${requests.sentAgain} sent again; errors: ${listOf(requests.errors)}`)
  print(
    `webhooks: ${hooks.arrived} arrived, ${hooks.again} of them again; ${hooks.failed} failed, ${hooks.cutOff} cut off by kill -9`,
  )
  for (const violation of violations.slice(0, printed.violations)) print(lineOf(violation))
  if (violations.length > printed.violations) print(`… and ${violations.length - printed.violations} more`)
  const told = [...new Set(violations.flatMap(({ call }) => call ?? []))].slice(0, printed.stories)
  for (const call of told) for (const line of storyOf({ header, ...rest }, call)) print(line)
  const refused = violations.filter(({ kind }) => kind === 'resume').slice(0, printed.stories)
  for (const { user = '', at = 0 } of refused) for (const line of visitsOf({ header, ...rest }, user, at)) print(line)
  for (const { node, log } of header.crashes) print(`node ${node} logged:\n${log}`)
  if (header.durationS >= longRunS) print(enoughOf(header, faults))
  print(`${violations.length} violations`)
}

/** Whether there was enough of each kind of fault; those that were done in several ways are one kind. */
function enoughOf(header: Header, faults: Readonly<Record<string, number>>): string {
  const times = faultKindsOf(header).map((kind) => {
    const ways = Object.entries(faults).filter(([name]) => name === kind || name.startsWith(`${kind} (`))
    return [kind, ways.reduce((sum, [, count]) => sum + count, 0)] as const
  })
  const isEnough = times.every(([, count]) => count >= enough)
  return `each kind of fault ${enough} times or more: ${isEnough ? 'yes' : 'NO'} (${listOf(Object.fromEntries(times))})`
}

export function lineOf({ kind, text, user, call, at }: Violation): string {
  const where = [
    user,
    call === undefined ? undefined : `call ${call}`,
    at === undefined ? undefined : `${(at / 1000).toFixed(3)} s`,
  ]
  return `VIOLATION ${kind} (${kinds[kind]}): ${text} [${where.filter((part) => part !== undefined).join(', ')}]`
}

function listOf(counts: Readonly<Record<string, number>>): string {
  const parts = Object.entries(counts).map(([name, count]) => `${name} ${count}`)
  return parts.length === 0 ? 'none' : parts.join(', ')
}
