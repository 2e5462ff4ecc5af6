/** The names of states. */
import type { ConnectionState } from '@ringwire/client'
import type { Agent, DeskCall } from './backend.ts'

/** Whose name a row of the history has. */
export type Side = (call: DeskCall) => DeskCall['caller']

export const agentWords: Record<Agent['state'], string> = {
  here: 'Here',
  busy: 'In a call',
  asleep: 'Away, a call wakes the browser',
  away: 'Away',
}

export function sidesOf({ caller, callee }: DeskCall): { customer: DeskCall['caller']; agent: DeskCall['caller'] } {
  return caller.role === 'customer' ? { customer: caller, agent: callee } : { customer: callee, agent: caller }
}

/** The subject of the call: an order, or a question between two colleagues. */
export function aboutText({ caller, callee, context_id }: DeskCall): string {
  if (caller.role !== callee.role) return `order ${context_id}`
  // An agent may have connected two customers.
  return caller.role === 'agent' ? 'between colleagues' : 'between customers'
}

/** The problem with the connection; undefined if there is none. */
export function connectionText({ name, why }: ConnectionState): string | undefined {
  if (name === 'closed' && why.code === 'replaced')
    return 'This desk is open in another tab. Go on there, or load this page again.'
  if (name === 'closed' && why.code !== 'client_closed') return 'The connection has ended. Load this page again.'
  if (name === 'waiting') return 'The connection is lost. It comes back by itself; a call that goes on is not over.'
  return undefined
}

/** 65 s are 1:05. */
export function clockText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}

/** When it was, as one says it. */
export function waitText(at: string): string {
  const date = new Date(at)
  const isToday = date.toDateString() === new Date().toDateString()
  const time = date.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })
  return isToday ? time : `${date.toLocaleDateString([], { day: 'numeric', month: 'short' })}, ${time}`
}

/** The backend's own reasons, and that of a page which had two calls already. */
const refusals: Record<string, string> = { closed: 'We were closed', queued: 'Nobody was free', busy: 'Busy' }

/** How a call went, and whether that is bad news. */
export function outcomeText(call: DeskCall, side: Side): { text: string; tone: 'good' | 'bad' } {
  const { status, end_reason, accepted_at, ended_at, caller, callee } = call
  const other = side(call) === caller ? callee.display_name : aboutText(call)
  switch (status) {
    case 'ended':
      return {
        text: `Talked for ${clockText(Date.parse(ended_at ?? '') - Date.parse(accepted_at ?? ''))} · ${other}`,
        tone: 'good',
      }
    case 'missed':
      return { text: `Nobody answered · ${other}`, tone: 'bad' }
    case 'rejected':
      return { text: `${refusals[end_reason ?? ''] ?? 'Declined'} · ${other}`, tone: 'bad' }
    case 'cancelled':
      return { text: `Given up · ${other}`, tone: 'bad' }
    case 'busy':
      return { text: `Busy · ${other}`, tone: 'bad' }
    default:
      return { text: status, tone: 'bad' }
  }
}
