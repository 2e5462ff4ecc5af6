import type { Participant } from '../../call/call.ts'
import { presenceHookBody } from '../../call/hook.ts'
import { type Coming, subjectOf } from '../../ports/online.ts'
import { newDeliveryId } from '../../ports/webhooks.ts'
import type { Subscribers } from './subscribers.ts'

export interface OnlineRow {
  readonly product: string
  readonly role: string
  readonly user_id: string
}

/** Somebody who comes or goes, with a number. */
export interface ComingRow extends OnlineRow {
  readonly n: number
  readonly comes: boolean
}

/** The delivery for an endpoint when it changes whether somebody (n) is online. */
export interface OnlineHook {
  readonly n: number
  readonly id: string
  readonly endpoint_id: string
  readonly subject: string
  readonly type: string
  readonly body: string
  readonly created_at: number
}

export function comingRows(people: readonly Coming[]): ComingRow[] {
  return people.map(({ participant: { product, role, userId }, comes }, n) => ({
    n,
    product,
    role,
    user_id: userId,
    comes,
  }))
}

export function onlineHooks(
  people: readonly Coming[],
  subscribers: Pick<Subscribers, 'wanting'>,
  at: number,
): OnlineHook[] {
  return people.flatMap(({ participant, comes }, n) => {
    const type = comes ? 'participant.online' : 'participant.offline'
    const endpoints = subscribers.wanting(participant.product, type)
    if (endpoints.length === 0) return []
    const body = presenceHookBody(type, at, participant)
    const subject = subjectOf(participant)
    return endpoints.map(({ id }) => ({
      ...{ n, id: newDeliveryId(at), endpoint_id: id, subject, type, body, created_at: at },
    }))
  })
}

export function participantOfRow({ product, role, user_id }: OnlineRow): Participant {
  return { product, role, userId: user_id }
}
