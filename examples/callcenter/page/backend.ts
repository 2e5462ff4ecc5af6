/** The requests of the page to its own backend. */
import { createCallClient } from '@ringwire/client'
import { takeCapabilities } from '@ringwire/client/take'
import { createTransfers, transferCapabilities } from '@ringwire/client/transfer'

export interface Person {
  readonly user_id: string
  readonly display_name: string
  readonly role: 'agent' | 'customer'
  readonly about: string
}

export interface Start {
  readonly user: Person | null
  readonly people: readonly Person[]
  readonly serviceUrl: string
  readonly vapidPublicKey: string
}

export interface Agent {
  readonly user_id: string
  readonly display_name: string
  readonly about: string
  readonly state: 'here' | 'busy' | 'asleep' | 'away'
}

export interface DeskCall {
  readonly call_uuid: string
  readonly status: string
  readonly end_reason: string | null
  readonly caller: { readonly user_id: string; readonly role: string; readonly display_name: string }
  readonly callee: DeskCall['caller']
  readonly context_id: string
  readonly started_at: string
  readonly accepted_at: string | null
  readonly ended_at: string | null
}

/** A customer who reached nobody. */
export interface Waiting {
  readonly user_id: string
  readonly display_name: string
  readonly context_id: string
  /** In ms since the epoch. */
  readonly since: number
}

export interface Desk {
  /** Whether the backend could ask Ringwire who is there. */
  readonly reachable: boolean
  /** When customers can call. */
  readonly hours: { readonly isOpen: boolean; readonly text: string }
  /** Of a customer: the place in the queue from 1, or 0. */
  readonly place?: number
  /** Of an agent: the customers who wait, the longest first. */
  readonly queue?: readonly Waiting[]
  readonly agents: readonly Agent[]
  /** Calls that ring or go on, the longest first. */
  readonly live: readonly DeskCall[]
  /** Calls that are over, the last first. */
  readonly history: readonly DeskCall[]
}

export async function start(): Promise<Start> {
  const response = await fetch('/api/start')
  if (!response.ok) throw new Error(`start: ${response.status}`)
  return response.json()
}

const callToken = () => fetch('/api/call-token', { method: 'POST' })

export async function sessionToken(): Promise<string> {
  const response = await callToken()
  if (!response.ok) throw new Error(`token: ${response.status}`)
  return (await response.json()).token
}

/** The one connection of this page. `storage`: a page that is loaded again goes on with its call. */
export const client = createCallClient({
  ...{ getToken: callToken, storage: sessionStorage },
  can: [...takeCapabilities, ...transferCapabilities, 'group'],
})

/** An agent hands a customer over, whose page follows. */
export const transfers = createTransfers(client)

export async function signOut(): Promise<void> {
  client.close()
  await fetch('/api/sign-out', { method: 'POST' })
  location.assign('/')
}

/** The customer who waits longest, for this agent only; undefined if another agent was faster. */
export async function nextOfQueue(): Promise<(Person & { readonly context_id: string }) | undefined> {
  const response = await fetch('/api/queue/next', { method: 'POST' })
  if (!response.ok) throw new Error(`queue: ${response.status}`)
  return response.status === 204 ? undefined : response.json()
}

export async function leaveQueue(): Promise<void> {
  await fetch('/api/queue/leave', { method: 'POST' })
}

/** Reports the state of the desk from the backend, whenever it changes; undefined while the backend is out of reach. */
export function watchDesk(onDesk: (desk: Desk | undefined) => void): () => void {
  const source = new EventSource('/api/desk')
  source.onmessage = ({ data }) => onDesk(JSON.parse(data))
  source.onerror = () => {
    onDesk(undefined)
    // Refused, and not merely lost: somebody signed out in another tab, or the backend started again.
    if (source.readyState === EventSource.CLOSED) location.assign('/')
  }
  return () => source.close()
}
