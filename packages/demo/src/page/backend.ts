// HTTP: the toy application backend (/demo/api/…) and the service's call history (/v1/…).

import type { SessionToken } from '@ringwire/client/types'
import type { Person } from '../backend/people.ts'

export type Role = 'customer' | 'agent'
export type Identity = { name: string; role: Role; device_id: string }
export type Peer = { user_id: string; role: string; display_name: string; group?: string | undefined }
export type CallType = 'audio' | 'video'

/** As the service tells it. It learns the callee's name when the callee answers; before, there is none. */
type PlainRecord = Omit<CallRecord, 'peer'> & {
  peer: { user_id: string | null; role: string; group?: string; display_name: string | null }
}

export type CallRecord = {
  call_uuid: string
  status: string
  started_at: string
  ended_at: string | null
  end_reason?: string | null
  direction: 'incoming' | 'outgoing'
  peer: Peer
  call_type: string
  accepted_at?: string | null
  connected_at?: string | null
  duration_ms?: number | null
}

export class BackendError extends Error {
  readonly code: string
  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

async function post<Answer>(path: string, body: unknown): Promise<Answer> {
  const response = await fetch(`/demo/api/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const answer = (await response.json()) as Answer & { error?: { code: string; message: string } }
  if (!response.ok) {
    throw new BackendError(answer.error?.code ?? 'HTTP_ERROR', answer.error?.message ?? `HTTP ${response.status}`)
  }
  return answer
}

/** The service's answer, as the backend hands it on. */
export function fetchToken(identity: Identity): Promise<SessionToken> {
  return post('token', identity)
}

export interface Known {
  /** Whom this person may call. */
  readonly people: readonly Person[]
  /** To whom an agent may hand a call over. */
  readonly colleagues: readonly Person[]
}

export function fetchPeople(identity: Identity): Promise<Known> {
  return post<Known>('people', identity)
}

export async function fetchHistory(
  token: string,
  nameOf: (participant: { user_id: string; role: string }) => string,
): Promise<CallRecord[]> {
  const response = await fetch('/v1/calls/history?limit=20', { headers: { authorization: `Bearer ${token}` } })
  const answer = (await response.json()) as {
    success: boolean
    data?: PlainRecord[]
    error?: { code: string; message: string }
  }
  if (!answer.success || !answer.data) {
    throw new BackendError(answer.error?.code ?? 'HTTP_ERROR', answer.error?.message ?? `HTTP ${response.status}`)
  }
  return answer.data.map((record) => ({ ...record, peer: peerOf(record.peer, nameOf) }))
}

/** A group that nobody answered for has its own name. */
function peerOf(
  { user_id, role, group, display_name }: PlainRecord['peer'],
  nameOf: (participant: { user_id: string; role: string }) => string,
): Peer {
  if (user_id === null) return { user_id: '', role, group, display_name: groupName(group ?? '') }
  return { user_id, role, group, display_name: display_name ?? nameOf({ user_id, role }) }
}

/** "support" is "Support". */
const groupName = (group: string) => group.charAt(0).toUpperCase() + group.slice(1)
