import { type Call, type LiveCall, placeOf, type Side } from '../../packages/server/src/call/call.ts'
import type { Decision, Refusal } from '../../packages/server/src/call/command.ts'
import type { Notice, Step } from '../../packages/server/src/call/effects.ts'
import { inviteRows } from './call-invites.ts'
import { lateRows, liveCalls, overCalls, type Row, requestRows, serviceRows } from './call-situations.ts'
import { code, page, table } from './tables.ts'

function refusalText({ code: name, details }: Refusal): string {
  const carried = Object.keys(details)
  return carried.length === 0 ? code(name) : `${code(name)} with ${carried.map(code).join(', ')}`
}

/** The effect of a step on a call that stays in its state. */
const quietSteps: Partial<Record<Step['event']['type'], string>> = {
  silenced: 'silences the session',
  place_taken: 'takes the place',
  place_settled: 'settles the place',
  place_lost: 'the place is vacant',
  clock_shifted: 'the lost clocks start again',
}

/** A session that only took a place by connecting has not settled it [PLACE2]. */
function isUnsettled({ call, event }: Step): boolean {
  const places = [placeOf(call, 'caller'), placeOf(call, 'callee')]
  return places.some((place) => place?.sessionId === event.by?.sessionId && place?.settled === false)
}

function stepText(step: Step): string {
  const { call, event } = step
  const quiet = quietSteps[event.type]
  const queue = event.moved === undefined ? '' : ', with its queue'
  if (quiet !== undefined && isUnsettled(step)) return `${quiet}, unsettled${queue}`
  if (quiet !== undefined) return `${quiet}${queue}`
  const reason = 'endReason' in call ? ` (${call.endReason})` : ''
  return `**${call.status}**${reason}`
}

export function noticeText({ to, event, data }: Notice, by: string | null): string {
  const reason = 'reason' in data && event === 'call.cancelled' ? ` (${data.reason})` : ''
  if (to.place !== 'rung') return `${code(event)}${reason} to the ${to.place}`
  const whom = by !== null && to.except.includes(by) ? "the callee's other sessions" : "the callee's sessions"
  return `${code(event)}${reason} to ${whom}`
}

function resultText(decision: Decision): string {
  const steps = decision.steps.map(stepText)
  const refused = decision.ok ? [] : [refusalText(decision)]
  const parts = [...refused, ...steps]
  return parts.length === 0 ? 'no change' : parts.join('; ')
}

function sentText(decision: Decision): string {
  return decision.steps
    .flatMap(({ event }) => event.notices.map((notice) => noticeText(notice, event.by?.sessionId ?? null)))
    .join('; ')
}

/** One line for all who get the same answer to the same request. */
function requestTable(rows: readonly Row[]): string {
  const merged = new Map<string, { cells: [string, string[], string, string] }>()
  for (const { request, by, decision } of rows) {
    const [result, sent] = [resultText(decision), sentText(decision)]
    const key = JSON.stringify([request, result, sent])
    const line = merged.get(key)
    if (line === undefined) merged.set(key, { cells: [request, [by], result, sent] })
    else if (!line.cells[1].includes(by)) line.cells[1].push(by)
  }
  const lines = [...merged.values()].map(({ cells: [request, by, result, sent] }) => [
    /^(?:call|webrtc)\./.test(request) ? code(request) : request,
    by.join('<br>'),
    result,
    sent,
  ])
  return table(['Request or event', 'By', 'Result', 'Sent'], lines)
}

interface Edge {
  readonly from: string
  readonly to: string
  /** Request → the sides that can make it. */
  readonly labels: Map<string, Set<Side | undefined>>
}

/** The arrows of the diagram: every change of state that some row of the tables made. */
function edgesOf(rows: readonly Row[]): Edge[] {
  const edges = new Map<string, Edge>()
  for (const { request, side, before, decision } of rows) {
    for (const { call } of decision.steps) {
      if (call.status === before.status) continue
      const key = `${before.status} ${call.status}`
      const edge = edges.get(key) ?? { from: before.status, to: call.status, labels: new Map() }
      edges.set(key, edge)
      const sides = edge.labels.get(request) ?? new Set()
      edge.labels.set(request, sides.add(side))
    }
  }
  return [...edges.values()]
}

function labelText([request, sides]: [string, Set<Side | undefined>]): string {
  const [only] = sides
  return sides.size === 1 && only !== undefined ? `${request} (${only})` : request
}

function diagram(rows: readonly Row[], ends: readonly Call['status'][]): string {
  const arrows = edgesOf(rows).map(
    ({ from, to, labels }) => `  ${from} --> ${to}: ${[...labels].map(labelText).join('<br>')}`,
  )
  return [
    '```mermaid',
    'stateDiagram-v2',
    '  [*] --> ringing: call.invite',
    '  [*] --> busy: call.invite, refused by the product',
    ...arrows,
    ...ends.map((status) => `  ${status} --> [*]`),
    '```',
  ].join('\n')
}

export function callStatesPage(): string {
  const live = Object.values<LiveCall>(liveCalls())
  const over = overCalls()
  const liveRows = live.map((call) => ({ call, requests: requestRows(call), events: serviceRows(call) }))
  const invites = inviteRows().map(({ situation, decision }) => [situation, resultText(decision), sentText(decision)])
  return page(
    'Call states',
    'Every line is what `decide` and `decideInvite` answered. Rules by their ids are in ' +
      '[protocol.md](../protocol.md).',
    diagram(
      liveRows.flatMap(({ requests, events }) => [...requests, ...events]),
      over.map(({ status }) => status),
    ),
    'In the tables, "caller" and "callee" are the session that holds the place of that side; while the call rings, ' +
      '"callee" is any session of the callee. A place is vacant while its holder has no connection, and unsettled while ' +
      'the holder only took it by connecting; its queue is what its last holder was not proven to have received ' +
      '[PLACE2]. A code is the answer in `call.error`. "No change" is success: for ' +
      '`webrtc.*` on a live call it is what is relayed [REL1, REL2], on a call that is over it is dropped [END1]. A ' +
      'participant without a part in a call gets `CALL_NOT_FOUND`. `call.status` only reaches extended sessions [EXT5].',
    '## call.invite',
    'In the order in which it is looked at [INV1].',
    table(['Situation', 'Result', 'Sent'], invites),
    ...liveRows.flatMap(({ call, requests, events }) => [`## ${call.status}`, requestTable([...requests, ...events])]),
    `## ${over.map(({ status }) => status).join(', ')}`,
    requestTable(over.flatMap(lateRows)),
  )
}
